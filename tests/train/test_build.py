"""One builder for every cell; what it writes it reads back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from exactstate.baselines.cells import CELLS
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.tasks import task
from exactstate.train import TrainConfig
from exactstate.train.build import build_model, load_model, save_model


@pytest.mark.parametrize("cell", CELLS)
def test_build_model_gives_questions_a_convolution_and_answers(cell: str) -> None:
    model = build_model(TrainConfig(task="TSO3", cell=cell, width=8, channels=4, states=2), task("TSO3"))
    assert (model.kernel_size, model.answers) == (2, 3)


@pytest.mark.parametrize("cell", CELLS)
def test_save_model_writes_what_load_model_reads(cell: str, tmp_path: Path) -> None:
    config = TrainConfig(task="S3", cell=cell, width=8, channels=4, states=2, layers=2)
    heads, starts = (((3, 2), (4,)), ((2, 1), (3,))) if cell == "nfsm" else (None, None)
    model = build_model(config, task("S3"), heads=heads, initial_states=starts)
    save_model(tmp_path / "model", model, {"note": "mine"})
    again, metadata = load_model(tmp_path / "model", config, task("S3"))
    assert metadata["note"] == "mine"
    assert len(again.layers) == 2
    words = torch.randint(0, 2, (3, 20))
    assert torch.equal(again(words)[0], model.eval()(words)[0])
    (tmp_path / "model").write_bytes(b"nothing of the kind")
    with pytest.raises(BrokenFile, match="these are not the weights of this run"):
        load_model(tmp_path / "model", config, task("S3"))


def test_build_model_of_an_nfsm_wants_heads() -> None:
    with pytest.raises(InvalidConfig, match="an NFSM is built of heads"):
        build_model(TrainConfig(task="S3"), task("S3"))

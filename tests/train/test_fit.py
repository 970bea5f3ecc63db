"""Cells without tables are trained by the same loop: paused, resumed, and failing at a finite length.

Sizes are far below what the tasks need.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate import records
from exactstate.baselines.cells import BASELINES
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.evaluate.sweep_run import sweep_run
from exactstate.nn import Backbone
from exactstate.tasks import task
from exactstate.train import Run, TrainConfig, configure, load_run, train
from exactstate.train.run_dir import RunDir


def small(name: str, cell: str, **changes: object) -> TrainConfig:
    config = configure(name, cell=cell, layers=2, width=8, channels=4, states=2, dropout=0.1)
    phase = replace(config.end_to_end, batch=4, length=8, steps=6, check_every=2, check_words=8, grow_length=False)
    return replace(config, **{"recipe": "test", "end_to_end": phase, **changes})  # type: ignore[arg-type]


def result(run: Run) -> tuple[object, ...]:
    return run.steps, run.accuracy, run.learned, run.first_error, run.history


@pytest.mark.parametrize("cell", BASELINES)
def test_fit_resumes_a_baseline_to_the_same_weights(cell: str, tmp_path: Path) -> None:
    """Dropout, words and moments included."""
    config = small("S3", cell)
    straight = train(config, out=tmp_path / "straight")
    paused = train(config, out=tmp_path / "twice", until=3)
    assert (paused.steps, paused.finished) == (3, False)
    assert RunDir(tmp_path / "straight").finished
    assert not RunDir(tmp_path / "twice").finished
    again = train(config, out=tmp_path / "twice")
    assert (straight.resumed_at, again.resumed_at) == (0, 3)
    assert (straight.steps, straight.accuracy) == (again.steps, again.accuracy) == (6, again.accuracy)
    one, other = (load_run(tmp_path / name).model.state_dict() for name in ("straight", "twice"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    histories = [
        [row["step"] for row in records.read(tmp_path / name / "history.jsonl")] for name in ("straight", "twice")
    ]
    assert histories == [[2, 4, 6], [2, 4, 6]]
    assert result(straight) == result(again)


def test_train_loads_a_finished_run(tmp_path: Path) -> None:
    config = small("S3", "mamba")
    first = train(config, out=tmp_path / "run")
    rows: list[object] = []
    again = train(config, rows.append, out=tmp_path / "run")
    assert result(again) == result(first)
    assert (again.resumed_at, again.finished) == (first.steps, True)
    assert not rows


def test_train_refuses_the_folder_of_another_cell(tmp_path: Path) -> None:
    train(small("S3", "mamba"), out=tmp_path / "run", until=2)
    with pytest.raises(InvalidConfig, match="holds a run already, with cell mamba, not aussm; name another folder"):
        train(small("S3", "aussm"), out=tmp_path / "run")


def test_load_run_refuses_other_weights(tmp_path: Path) -> None:
    train(small("S3", "mamba"), out=tmp_path / "run", until=2)
    with pytest.raises(BrokenFile, match="this run is not finished; repeat `exactstate train` to resume it"):
        load_run(tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(BrokenFile, match="these are not the weights of this run"):
        load_run(tmp_path / "run")


def test_end_to_end_phase_grows_the_length(tmp_path: Path) -> None:
    config = small("Z2", "mamba")
    config = replace(config, end_to_end=replace(config.end_to_end, length=64, grow_length=True))
    train(config, out=tmp_path / "run")
    assert [row["length"] for row in records.read(tmp_path / "run" / "history.jsonl")] == [8, 8, 8]


@pytest.mark.parametrize("name", ["FF", "S3"])
def test_sweep_run_of_a_trained_baseline_fails_at_a_finite_length(name: str, tmp_path: Path) -> None:
    """Trained at length 12 until it is right there; swept far beyond."""
    config = configure(name, cell="mamba")
    phase = replace(config.end_to_end, length=12, steps=400, check_every=20, check_words=64, stop_checks=1)
    config = replace(config, recipe="test", end_to_end=phase)
    run = train(config, out=tmp_path / name)
    assert run.learned
    assert load_run(tmp_path / name).accuracy == run.accuracy
    swept, row = sweep_run(tmp_path / name, max_length=1 << 14, batch=40)
    assert swept.failing_length is not None
    assert swept.failing_length > 12
    assert swept.accuracies[8] >= 0.9
    assert (row["cell"], row["threshold"], row["path"], row["learned"]) == ("mamba", 0.9, "network", True)
    # training drives some to the ends of (-1, 1), where float32 rounds them to the end itself
    assert largest_eigenvalue(load_run(tmp_path / name).model, name) <= 1


@torch.no_grad()
def largest_eigenvalue(model: Backbone, name: str) -> float:
    """Of every step that every layer takes along words of the sweep."""
    moduli: list[float] = []
    for layer in model.layers:
        layer.block.register_forward_pre_hook(
            lambda block, given: moduli.append(float(block.transitions(given[0]).abs().max()))
        )
    words = task(name).for_length_sweep().sample(8, 200, np.random.default_rng(0))
    model(torch.from_numpy(words.inputs.astype(np.int64)))
    assert len(moduli) == len(model.layers)
    return max(moduli)

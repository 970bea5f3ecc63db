"""The predictor on an untrained network, on a certified one, and on one whose read-out is made to drift."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.tasks import task
from exactstate.train import configure, train
from paper.experiments.campaigns import CAMPAIGNS
from paper.experiments.error_control import SHOWN, measure, vectors_of
from paper.experiments.runner import run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(configure("Z2", seed=42), out=folder / "Z2-42-gradient")
    return folder


def test_spread_of_an_nfsm_is_zero_at_every_length(runs: Path) -> None:
    options = CAMPAIGNS["error_control"].options(
        rows=runs / "rows.jsonl", runs=runs, settings=["words=24", "max_length=256"]
    )
    ((_, (row,)),) = run(CAMPAIGNS["error_control"], options)
    assert row["certified"]
    assert row["predicted"] is row["measured"] is row["failing_length"] is None
    assert row["ratios"] == dict.fromkeys(map(str, (length for length in SHOWN if length <= 256)), 0.0)
    assert row["threshold"] > 0.1
    assert [found for _, found in run(CAMPAIGNS["error_control"], options)] == [[]]


def test_measure_of_a_network_that_reads_nothing_predicts_nothing() -> None:
    from exactstate.train.build import build_model

    config = configure("S3", cell="gru", recipe="cpu")
    model = build_model(config, task("S3")).eval()
    found = measure(model, task("S3"), 64, words=16, max_length=128)
    assert found["threshold"] is found["predicted"] is None
    assert found["measured"] == 48
    assert found["failing_length"] <= 8


def test_vectors_do_not_depend_on_the_length_of_a_piece(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from exactstate.train.run import load_run

    model = load_run(runs / "Z2-42-gradient", extract=False).model.eval()
    words = np.random.default_rng(0).integers(0, 2, (3, 100))
    whole = vectors_of(model, words)
    monkeypatch.setattr("paper.experiments.error_control.PIECE", 7)
    assert np.array_equal(vectors_of(model, words), whole)
    with torch.inference_mode():
        assert np.array_equal(model.readout(torch.from_numpy(whole).float()), model(torch.from_numpy(words))[0])

"""The comparison of cells in a plain model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate import task as get_task
from paper.experiments import comparison


@pytest.mark.parametrize("cell", comparison.CELLS)
def test_comparison_row_has_an_accuracy_for_every_length(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "LENGTHS", (64, 130))
    row = comparison.comparison_row(get_task("Z2"), cell, 1, 0.05)
    assert row["steps"] >= 1
    assert set(row["accuracy"]) == {"64", "130"}
    assert all(0 <= share <= 1 for share in row["accuracy"].values())


def test_comparison_learns_the_flip_flop_with_the_nfsm() -> None:
    row = comparison.comparison_row(get_task("FF"), "nfsm", 42, 10.0)
    assert row["exact_at"] is not None
    assert row["accuracy"]["4096"] == 1.0


@pytest.mark.parametrize("cell", comparison.CELLS)
def test_accuracy_of_long_words_does_not_depend_on_the_chunk(cell: str) -> None:
    torch.manual_seed(0)
    task = get_task("S3")
    model = comparison.Tracker(task.machine.n_symbols, task.machine.n_states, comparison.CELLS[cell]())
    words, labels = comparison.sample(task, 4, 200, np.random.default_rng(0))
    assert comparison.accuracy(model, words, labels) == comparison.accuracy(model, words, labels, chunk=100)

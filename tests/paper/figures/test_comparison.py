"""The comparison figure: a panel per task, the mean of every cell, a thin line per seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactstate.errors import InvalidInput
from paper.figures import comparison
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def rows() -> list[dict]:
    return [
        {"task": task, "cell": cell, "seed": seed, "accuracy": {"512": share / seed, "64": 1.0}}
        for task in ("S3", "A5")
        for cell, share in (("gru", 0.5), ("nfsm", 1.0))
        for seed in (1, 2)
    ]


def test_paint_draws_means_and_seeds(tmp_path: Path) -> None:
    figure = comparison.paint(rows())
    first, second = figure.axes
    assert data(lines(first, "NFSM")[0]) == ([64, 512], [1.0, 0.75])
    assert data(lines(second, "GRU")[0]) == ([64, 512], [1.0, 0.375])
    assert len(lines(first, "_seed")) == 4
    assert all(word in words(figure) for word in ("S3", "A5", "NFSM", "GRU", "labels right"))
    assert svg(figure, tmp_path).startswith(b"<?xml")
    nothing_sticks_out(figure)


def test_paint_refuses_rows_without_accuracy() -> None:
    with pytest.raises(InvalidInput, match="has no 'accuracy'"):
        comparison.paint([{"task": "S3", "cell": "gru", "seed": 1}])

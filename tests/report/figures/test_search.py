"""The figure of the search: what each reading kept, in which layer, and what it left open."""

from __future__ import annotations

from typing import Any

import pytest

from exactstate.report.figures.search import Reading, paint, readings
from tests.report.figures.drawn import data, nothing_sticks_out, words


def row(step: int, kept: list[int], left: float | None, **more: object) -> dict[str, Any]:
    return {"attempt": 0, "phase": "search", "step": step, "kept": kept, "open": left, **more}


CASCADE = [
    row(100, [], 4.2, layer=0), row(200, [3], 3.1, layer=0), row(300, [3, 4], 2.0, layer=0),
    row(400, [], 2.0, layer=1, phase="search-2"), row(500, [16], 0.0, layer=1, phase="search-2"),
]  # fmt: skip


def test_readings_have_the_heads_that_are_new_in_their_layer_at_steps_of_all_layers() -> None:
    assert readings(CASCADE) == [
        Reading(100, 0, (), 4.2), Reading(200, 0, (3,), 3.1), Reading(300, 0, (4,), 2.0), Reading(700, 1, (), 2.0),
        Reading(800, 1, (16,), 0.0),
    ]  # fmt: skip


def test_readings_are_those_of_the_last_attempt_that_has_some() -> None:
    rows = [row(100, [3, 3], 0.5), row(100, [2], 1.0, attempt=1), {"attempt": 2, "phase": "wide", "step": 5}]
    assert readings(rows) == [Reading(100, 0, (2,), 1.0)]


def test_readings_of_other_and_older_runs_are_none() -> None:
    assert readings([]) == []
    assert readings([{"phase": "wide", "step": 1, "loss": 1.0}, {"phase": "search", "step": 2, "loss": 1.0}]) == []


def test_paint_draws_layers_and_open_nats() -> None:
    figure = paint(readings(CASCADE))
    told = words(figure).splitlines()
    for label in ("layer 0", "layer 1", "3", "4", "16", "step 200", "step 800", "symbols, indices below"):
        assert label in told
    (line,) = figure.axes[1].get_lines()
    assert data(line) == ([100, 200, 300, 700, 800], [4.2, 3.1, 2.0, 2.0, 0.0])
    assert nothing_sticks_out(figure)


@pytest.mark.parametrize("kept", [[], [3, 3], [2] * 9])
def test_paint_of_one_reading_has_no_curve(kept: list[int]) -> None:
    figure = paint(readings([row(100, kept, 0.0)]))
    assert len(figure.axes) == 1
    assert ("3 more" in words(figure)) == (len(kept) == 9)
    assert nothing_sticks_out(figure)

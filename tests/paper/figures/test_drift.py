"""The drift figure shows the rows: lines, crosses at the first wrong steps, what is a bound and what was run."""

from __future__ import annotations

from math import pi
from pathlib import Path

import pytest

from exactstate.errors import InvalidInput
from paper.figures import drift
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def rows() -> list[dict]:
    """One format that fails at step 10, and one whose failure is known by the bound only."""
    coarse = [
        {"kind": "step", "format": "fp8", "step": t, "phase_error": 0.05 * t, "log_norm": -0.02 * t, "by": "iteration"}
        for t in (1, 2, 5, 10, 20)
    ]
    fine = [
        {"kind": "step", "format": "fp64", "step": t, "phase_error": -1e-9 * t, "log_norm": 1e-9 * t,
         "by": "iteration" if t <= 100 else "closed form"}
        for t in (1, 100, 10**8, 10**9)
    ]  # fmt: skip
    about = {"kind": "summary", "order": 7}
    return [
        {**about, "format": "fp8", "first_wrong_step": 10, "by": "iteration"}, *coarse,
        {**about, "format": "fp64", "first_wrong_step": 448_798_951, "by": "closed form"}, *fine,
    ]  # fmt: skip


def test_paint_lines_are_the_rows() -> None:
    left, right = drift.paint(rows()).axes
    assert data(lines(left, "_fp8")[0]) == ([1, 2, 5, 10, 20], [0.05 * t for t in (1, 2, 5, 10, 20)])
    assert data(lines(right, "_fp8")[0])[1] == [-0.02 * t for t in (1, 2, 5, 10, 20)]


def test_paint_dots_the_closed_form() -> None:
    left, _ = drift.paint(rows()).axes
    run, told = lines(left, "_fp64")
    assert (data(run)[0], run.get_linestyle()) == ([1, 100], "-")
    assert (data(told)[0], told.get_linestyle()) == ([100, 1e8, 1e9], "--")


def test_paint_puts_crosses_at_the_first_wrong_step() -> None:
    left, right = drift.paint(rows()).axes
    (at, high), (at_fine, low) = (data(line) for line in lines(left, "_wrong"))
    assert (at, high) == ([10], [0.5])
    assert at_fine == [448_798_951]
    assert low[0] == pytest.approx(-pi / 7, rel=1e-6)
    assert data(lines(right, "_wrong")[0]) == ([10], [-0.2])


def test_paint_key_marks_bounds() -> None:
    figure = drift.paint(rows())
    said = words(figure)
    assert "fp8: 10\n" in said
    assert "fp64: 448.8 million (bound)" in said
    assert nothing_sticks_out(figure)


@pytest.mark.parametrize(
    ("steps", "said"), [(21, "21"), (4_797, "4 797"), (27_271_560, "27.3 million"), (13_314_249_674_211_881, "1.33e16")]
)
def test_count_is_short(steps: int, said: str) -> None:
    assert drift.count(steps) == said


def test_paint_is_deterministic(tmp_path: Path) -> None:
    assert svg(drift.paint(rows()), tmp_path) == svg(drift.paint(rows()), tmp_path)


def test_paint_refuses_other_rows() -> None:
    with pytest.raises(InvalidInput, match="rows of kind 'summary'"):
        drift.paint([{"kind": "window"}])

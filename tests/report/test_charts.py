"""The charts of a report: what is drawn, and what is said of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from exactstate.report.figures.training import MAX_POINTS, MIN_LOSS, paint, series, with_total_steps
from exactstate.report.sections import sweep, training


def run(**data: Any) -> Any:
    """Of a run only what these sections read."""
    return SimpleNamespace(**data)


def test_training_charts_show_the_last_attempt_after_all_steps_before_it() -> None:
    rows = [{"attempt": a, "phase": "end_to_end", "step": s, "loss": 1.0 / s} for a in (0, 1) for s in (10, 20)]
    assert series(with_total_steps(rows), {"loss": ""}) == {"end_to_end": [(30.0, 0.1), (40.0, 0.05)]}
    shown = training(run(history=rows))
    assert shown["picture"].startswith("<img")
    assert shown["phases"] == [("end_to_end", "end to end, from words and labels alone")]
    assert training(run(history=[])) == {"text": "The run has no history.", "picture": None, "phases": []}


def test_training_charts_leave_out_what_is_not_a_number() -> None:
    rows = [{"attempt": 0, "phase": "p", "step": 1, "loss": float("nan")}, {"attempt": 0, "phase": "p", "step": 2}]
    assert training(run(history=rows))["picture"] is None


def test_training_figure_has_a_panel_for_each_measurement_and_a_line_for_each_phase() -> None:
    rows = [
        {"phase": phase, "step": step, "loss": 0.0, "table_margin": step, "read_margin": 1.0, "accuracy": 0.5}
        for phase in ("wide", "finetune") for step in range(1, 5_000)
    ]  # fmt: skip
    figure = paint(rows)
    loss, margins, accuracy = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Loss", "Smallest margin", "Fresh words correct"]
    assert [line.get_label() for line in margins.get_lines()] == [
        "tables, wide", "read-out, wide", "tables, finetune", "read-out, finetune",
    ]  # fmt: skip
    assert len(accuracy.get_lines()) == 2
    wide, finetune = loss.get_lines()
    assert set(wide.get_ydata()) == {MIN_LOSS}
    assert len(wide.get_xdata()) <= MAX_POINTS + 1
    assert (wide.get_xdata()[-1], finetune.get_xdata()[0]) == (4_999, 5_000)


def test_training_figure_leaves_out_a_single_accuracy() -> None:
    assert len(paint([{"step": 1, "loss": 1.0, "accuracy": 1.0}]).axes) == 1


def test_length_sweep_of_answers() -> None:
    row = {"cell": "mamba", "measure": "questions", "threshold": 0.9, "failing_length": 70, "accuracies": {"64": 1.0}}
    shown = sweep(run(sweeps=[row]))
    assert shown is not None
    assert shown["sentences"] == ["mamba: fails at length 70; fewer than 90% of the words have the correct answer."]
    assert shown["title"] == "Accuracy: words with the correct answer"
    assert (shown["titles"], shown["rows"]) == (("length", "mamba"), [("64", ["1.000"])])

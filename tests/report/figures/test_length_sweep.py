"""The sweep figure: a panel per task, a line per run, crosses on the bar, arrows only for certificates."""

from __future__ import annotations

from pathlib import Path

from exactstate.report.figures import length_sweep as sweep
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def row(task: str, cell: str, seed: int, failing: int | None, **more: object) -> dict:
    return {"task": task, "cell": cell, "seed": seed, "threshold": 1.0 if cell == "nfsm" else 0.9, "max_length": 1024,
            "learned": True, "certified": cell == "nfsm", "failing_length": failing,
            "accuracies": {"64": 1.0, "1024": 1.0 if failing is None else 0.0, "128": 0.75}, **more}  # fmt: skip


ROWS = [
    row("S3", "nfsm", 42, None),
    row("S3", "mamba", 42, 117),
    row("S3", "mamba", 43, 1, learned=False),
    row("FF", "mamba", 42, None),
]


def test_paint_draws_a_run_in_order_of_length() -> None:
    first = sweep.paint(ROWS).axes[0]
    assert data(lines(first, "Mamba⁻, seed 42")[0]) == ([64, 128, 1024], [1.0, 0.75, 0.0])


def test_paint_has_a_panel_per_task() -> None:
    figure = sweep.paint(ROWS)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["S3", "FF"]
    assert not lines(figure.axes[1], "NFSM, seed 42")


def test_paint_marks_failing_lengths_of_runs_that_learned() -> None:
    first, second = sweep.paint(ROWS).axes
    assert [data(line) for line in lines(first, "_failing")] == [([117], [0.9])]
    assert not lines(second, "_failing")


def test_paint_marks_certificates_with_an_arrow() -> None:
    first, second = sweep.paint(ROWS).axes
    assert [data(line) for line in lines(first, "_certified")] == [([1024], [1.0])]
    assert not lines(second, "_certified")  # no failure found is no proof
    assert [data(line) for line in lines(second, "_held")] == [([1024], [1.0])]
    assert not lines(first, "_held")


def test_paint_dots_and_counts_a_run_that_did_not_learn() -> None:
    figure = sweep.paint(ROWS)
    assert lines(figure.axes[0], "Mamba⁻, seed 43")[0].get_linestyle() != "-"
    said = words(figure)
    assert "Mamba⁻ (2 of 3 learned)" in said
    assert "certified beyond" in said


def test_paint_draws_and_counts_the_longer_of_two_sweeps_once() -> None:
    short, longer = (row("DFF5", "mamba", 42, None, max_length=n, accuracies={str(n): 1.0}) for n in (64, 256))
    for rows in ([short, longer], [longer, short]):
        figure = sweep.paint(rows)
        assert [data(line) for line in lines(figure.axes[0], "Mamba⁻, seed 42")] == [([256], [1.0])]
        assert "Mamba⁻" in words(figure).split("\n"), "one run, so nothing is counted"


def test_paint_draws_coinciding_seeds_once_and_counts_all() -> None:
    figure = sweep.paint([row("S3", "nfsm", seed, None) for seed in (42, 43, 44)])
    assert len(lines(figure.axes[0], "_certified")) == 1
    assert "NFSM (3 of 3 learned)" in words(figure)


def test_paint_orders_panels_as_the_paper() -> None:
    rows = [row(name, "nfsm", 42, None) for name in ("mine", "TSO3", "S4", "Z2")]
    assert [axes.get_title(loc="left") for axes in sweep.paint(rows).axes[:4]] == ["Z2", "S4", "TSO3", "mine"]


def test_paint_of_one_task_fits_its_legend() -> None:
    assert nothing_sticks_out(sweep.paint(ROWS[:3]))


def test_paint_of_more_tasks_than_columns_has_no_empty_frames(tmp_path: Path) -> None:
    rows = [row(f"T{i}", "nfsm", 42, None) for i in range(4)]
    assert [axes.axison for axes in sweep.paint(rows).axes] == [True] * 4 + [False] * 2
    assert nothing_sticks_out(sweep.paint(rows))
    assert svg(sweep.paint(rows), tmp_path) == svg(sweep.paint(rows), tmp_path)

"""The paper's tables of failing lengths: rows measured here beside the published, which also check our arithmetic."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.records import Row
from paper.failing_lengths import parse_length, published, recipe_notes, results, seeds
from paper.lengths import median
from tests.paper.test_lengths import fill, sweep_row

NUMBERS = published()[1]


@pytest.mark.parametrize(("task", "cell"), NUMBERS)
def test_median_and_range_of_the_published_seeds(task: str, cell: str) -> None:
    reported = NUMBERS[task, cell]
    assert median(reported.learned) == reported.median
    assert tuple(reported.range) == ((min(reported.learned), max(reported.learned)) if reported.learned else ())


@pytest.mark.parametrize("text", ["186", "≥512k", "≥1M", "≥100"])
def test_parse_length_reads_what_is_printed(text: str) -> None:
    assert str(parse_length(text)) == text


def test_parse_length_refuses_fractions() -> None:
    assert parse_length("x") is None
    with pytest.raises(InvalidInput, match=r"a failing length is 186, >=512k or x; got '1\.5k'"):
        parse_length("1.5k")


def test_recipe_notes_describe_the_baselines(tmp_path: Path) -> None:
    assert recipe_notes(tmp_path) == ()
    row = {"task": "S4", "cell": "aussm", "recipe": "cpu", "seed": 42, "learned": False}
    size = {"size": {"layers": 2, "width": 32}, "settings": {"length": 64, "steps": 1000, "batch": 8}}
    fill(tmp_path, [], baselines=[row, {**row, **size}, {**row, **size, "recipe": "paper", "finished": False}])
    wanted = "Baselines: cpu, 2 layers of width 32, words of 64, at most 1000 steps of 8 words."
    assert recipe_notes(tmp_path) == (wanted,)
    assert wanted in results(tmp_path)[0].notes


def test_results_and_seeds_never_fill_in_published_figures_for_missing_runs(tmp_path: Path) -> None:
    table, objects = results(tmp_path)
    assert {value for entry in objects for value in entry["here"].values()} == {"not run", "–"}
    assert {row[2] for row in table.rows} == {"–", "published"}
    assert [row[:3] for row in table.rows if row[2] == "published"] == [
        (task, CELLS[cell].title, "published") for task, cell in NUMBERS
    ]
    assert {cell for row in seeds(tmp_path)[0].rows for cell in row[1:]} == {"not run"}


def test_results_and_seeds_put_runs_beside_the_published(tmp_path: Path) -> None:
    rows = [
        sweep_row(failing_length=100), sweep_row(seed=43, failing_length=140), sweep_row(seed=44, failing_length=None),
        sweep_row(seed=45, failing_length=3, learned=False),
    ]  # fmt: skip
    fill(tmp_path, rows)
    lines = [row[2:] for row in results(tmp_path)[0].rows if row[:2] == ("S3", "Mamba⁻")]
    assert lines == [
        ("cpu", "100", "140", "≥64k", "×", "–", "140", "[100; ≥64k]", "3/4"),
        ("published", "155", "163", "186", "197", "200", "186", "[155; 200]", "5/5"),
    ]
    assert line_of(tmp_path, "S3")["mamba"] == ["100", "140", "≥64k", "×", "–"]


def line_of(folder: Path, task: str) -> Row:
    """The line of a task in the table of seeds."""
    (found,) = (row for row in seeds(folder)[1] if row["task"] == task)
    return found


def test_results_and_seeds_have_no_empty_cell_and_say_how_far_runs_came(tmp_path: Path) -> None:
    failed = {"task": "A5", "cell": "aussm", "recipe": "cpu", "seed": 42, "learned": False, "first_error": 11.25}
    heads = {"task": "S4", "recipe": "paper", "heads_given": [4, 3, 2], "certified": False, "first_error": 9.5}
    fill(
        tmp_path, [sweep_row()],
        baselines=[failed, {**failed, "seed": 43, "first_error": 23.0}, {**failed, "cell": "gru", "learned": True}],
        learning=[{"task": "S4", "recipe": "gradient", "seed": 42, "certified": True}],
        paper_full=[
            {**heads, "seed": 42, "finished": False, "steps": 900}, {**heads, "seed": 43, "finished": True, "steps": 9},
            {**heads, "seed": 44, "finished": True, "steps": 50, "certified": True},
            {**heads, "seed": 44, "finished": False, "steps": 900},
            {**heads, "seed": 45, "finished": True, "steps": 50, "certified": True, "heads_given": [12] * 8},
        ],
    )  # fmt: skip
    table, objects = results(tmp_path)
    assert all(cell for row in [*table.rows, *seeds(tmp_path)[0].rows] for cell in row)
    here = {(one["task"], one["cell"], one["recipe"]): tuple(one["here"].values()) for one in objects}
    rest = ("–",) * 3
    assert here["A5", "aussm", "cpu"] == ("× 11.2", "× 23.0", *rest, "× 23.0", "–", "0/2")
    assert here["A5", "gru", "cpu"] == ("learned", *rest, "–", "learned", "–", "1/1")
    assert here["S4", "nfsm", "gradient"] == ("∞†", *rest, "–", "∞†", "–", "1/1")
    assert here["S4", "nfsm", "paper"] == ("… 9.5", "× 9.5", "∞†", *rest[1:], "∞†", "–", "1/3, 1 open")
    assert line_of(tmp_path, "S4")["nfsm"] == ["∞†", "–", "–", "–", "–"]
    assert line_of(tmp_path, "S4")["gru"] == ["not run"]


def test_results_list_other_tasks_and_recipes_too(tmp_path: Path) -> None:
    fill(tmp_path, [sweep_row(), sweep_row(recipe="paper"), sweep_row(task="mine", cell="bmru")])
    found = [(entry["task"], entry["recipe"]) for entry in results(tmp_path)[1] if entry["recipe"]]
    assert found == [("S3", "cpu"), ("S3", "paper"), ("mine", "cpu")]
    assert [row[2] for row in results(tmp_path)[0].rows if row[:2] == ("S3", "Mamba⁻")] == [
        "cpu", "paper", "published",
    ]  # fmt: skip

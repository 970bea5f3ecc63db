"""The paper's tables from rows alone; the published figures check the arithmetic of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detent import records
from detent.cli._app import run
from detent.errors import InvalidInput
from detent.evaluate.tables import Grid, Length, median, published, results, seeds, spread

FIGURES = published()[1]


def sweep_row(**changes: Any) -> dict[str, Any]:
    return {
        "task": "S3", "cell": "mamba", "recipe": "cpu", "seed": 42, "learned": True, "certified": False,
        "batch": 64, "max_length": 1 << 16, "failing_length": 120, "format": "float32", **changes,
    }  # fmt: skip


def fill(folder: Path, sweeps: list[dict[str, Any]], **others: list[dict[str, Any]]) -> Path:
    for name, rows in {"sweeps": sweeps, **others}.items():
        for row in rows:
            records.append(folder / f"{name}.jsonl", row)
    return folder


def here(folder: Path, task: str, cell: str) -> dict[str, Any]:
    (found,) = (entry for entry in results(folder)[1] if (entry["task"], entry["cell"]) == (task, cell))
    return found


@pytest.mark.parametrize(("task", "cell"), FIGURES)
def test_medians_and_ranges_are_those_of_the_paper(task: str, cell: str) -> None:
    figures = FIGURES[task, cell]
    assert median(figures.learned) == figures.median
    assert tuple(figures.range) == ((min(figures.learned), max(figures.learned)) if figures.learned else ())


@pytest.mark.parametrize("text", ["186", "≥512k", "≥1M", "≥100"])
def test_lengths_are_written_as_they_are_read(text: str) -> None:
    assert str(Length.read(text)) == text


def test_a_length_that_is_none_is_refused() -> None:
    assert Length.read("x") is None
    with pytest.raises(InvalidInput, match=r"a failing length is 186, >=512k or x; got '1\.5k'"):
        Length.read("1.5k")


def test_no_failure_comes_after_every_failure() -> None:
    assert spread([Length(10**7), Length(64, at_least=True), Length(5)]) == "[5; ≥64]"
    assert median([Length(5), Length(64, at_least=True)]) == Length(5)
    assert median([]) is None


def test_what_was_not_run_says_so_and_nothing_is_copied(tmp_path: Path) -> None:
    grid, objects = results(tmp_path)
    assert {entry["here"]["median"] for entry in objects} == {"not run"}
    assert len(grid.rows) == len(FIGURES)
    assert {row[2] for row in seeds(tmp_path)[0].rows} == {"not run", "published"}


def test_the_median_is_over_the_seeds_that_learned(tmp_path: Path) -> None:
    rows = [
        sweep_row(failing_length=100), sweep_row(seed=43, failing_length=140), sweep_row(seed=44, failing_length=None),
        sweep_row(seed=45, failing_length=3, learned=False),
    ]  # fmt: skip
    found = here(fill(tmp_path, rows), "S3", "mamba")
    assert found["here"] == {"median": "140", "range": "[100; ≥64k]", "learned": "3/4"}
    assert found["published"] == {"median": "186", "range": "[155; 200]", "learned": "5/5"}
    (line,) = (row for row in seeds(tmp_path)[0].rows if row[2] == "here, cpu")
    assert line == ("S3", "Mamba-", "here, cpu", "100", "140", "≥64k", "×", "-", "140", "[100; ≥64k]")


def test_certificates_bear_a_dagger(tmp_path: Path) -> None:
    trained = [
        {"task": "S3", "recipe": "default", "seed": seed, "certified": True, "heads_given": None} for seed in (42, 43)
    ]
    swept = sweep_row(cell="nfsm", recipe="default", failing_length=None, max_length=1 << 20, certified=True)
    fill(tmp_path, [], training=trained)
    assert here(tmp_path, "S3", "nfsm")["here"]["median"] == "certified, not swept†"
    fill(tmp_path, [swept])
    assert here(tmp_path, "S3", "nfsm")["here"] == {"median": "≥1M†", "range": "[≥1M; ≥1M]", "learned": "2/2, 1 swept"}
    fill(tmp_path, [], training=[{**trained[0], "seed": 44, "certified": False}])
    assert here(tmp_path, "S3", "nfsm")["here"]["learned"] == "2/3, 1 swept"
    fill(tmp_path, [], training=[{**trained[0], "seed": 45, "heads_given": [6]}])
    assert here(tmp_path, "S3", "nfsm")["here"]["learned"] == "2/3, 1 swept", "given heads are another experiment"


def test_no_seed_learned(tmp_path: Path) -> None:
    fill(tmp_path, [], baselines=[{"task": "S4", "cell": "aussm", "recipe": "cpu", "seed": 42, "learned": False}])
    assert here(tmp_path, "S4", "aussm")["here"] == {"median": "×", "range": "", "learned": "0/1"}


def test_notes_say_what_recipes_stand_for(tmp_path: Path) -> None:
    assert not any("Baselines here" in note for note in results(tmp_path)[0].notes)
    row = {"task": "S4", "cell": "aussm", "recipe": "cpu", "seed": 42, "learned": False}
    told = {"size": {"layers": 2, "width": 32}, "settings": {"length": 64, "steps": 1000, "batch": 8}}
    fill(tmp_path, [], baselines=[row, {**row, **told}, {**row, **told, "recipe": "paper", "over": False}])
    wanted = "Baselines here: cpu, 2 layers of width 32, words of 64, at most 1000 steps of 8 words."
    assert [note for note in results(tmp_path)[0].notes if note.startswith("Baselines")] == [wanted]
    assert wanted in seeds(tmp_path)[0].notes


def test_a_run_that_was_put_down_counts_neither_way(tmp_path: Path) -> None:
    row = {"task": "S4", "cell": "aussm", "recipe": "paper", "seed": 42, "learned": False, "over": False}
    fill(tmp_path, [], baselines=[row])
    assert here(tmp_path, "S4", "aussm")["here"]["median"] == "not run"
    fill(tmp_path, [], baselines=[{**row, "over": True}])
    assert here(tmp_path, "S4", "aussm")["here"]["learned"] == "0/1"


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_sweeps_of_a_run_the_one_that_says_more_counts(tmp_path: Path, turned: bool) -> None:
    pairs = [
        (sweep_row(task="Z2", failing_length=None, max_length=1 << 12), sweep_row(task="Z2", failing_length=9000)),
        (sweep_row(task="Z16", failing_length=None, max_length=64), sweep_row(task="Z16", failing_length=None)),
        (sweep_row(task="S3", failing_length=80, batch=8), sweep_row(task="S3", failing_length=90, batch=512)),
        (sweep_row(task="S4", failing_length=7, format="float16"), sweep_row(task="S4", failing_length=91)),
    ]
    fill(tmp_path, [row for pair in pairs for row in (reversed(pair) if turned else pair)])
    medians = [here(tmp_path, task, "mamba")["here"]["median"] for task in ("Z2", "Z16", "S3", "S4")]
    assert medians == ["9000", "≥64k", "90", "91"]


def test_other_tasks_and_recipes_have_lines_of_their_own(tmp_path: Path) -> None:
    fill(tmp_path, [sweep_row(), sweep_row(recipe="paper"), sweep_row(task="mine", cell="bmru")])
    rows = [(entry["task"], entry["recipe"]) for entry in results(tmp_path)[1] if entry["recipe"]]
    assert rows == [("S3", "cpu"), ("S3", "paper"), ("mine", "cpu")]


def test_the_three_forms() -> None:
    grid = Grid(title="T", head=("a", "b"), rows=[("1|2", "<x>"), ("", "longer")], notes=("n",))
    assert grid.text().splitlines() == ["T", "", "a    b", "---  ------", "1|2  <x>", "     longer", "", "n"]
    assert grid.markdown().splitlines()[2:5] == ["| a | b |", "| --- | --- |", r"| 1\|2 | <x> |"]
    assert "<td>1|2</td><td>&lt;x&gt;</td>" in grid.html()


@pytest.mark.parametrize("name", ["results", "seeds"])
def test_the_verb(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, [sweep_row()])
    assert run(["table", name, "--rows", str(tmp_path)]) == 0
    assert "Mamba-" in capsys.readouterr().out
    for form in ("markdown", "html"):
        assert run(["table", name, "--rows", str(tmp_path), "--format", form]) == 0
        assert {"markdown": "| --- |", "html": "<table>"}[form] in capsys.readouterr().out
    assert run(["table", name, "--rows", str(tmp_path), "--json"]) == 0
    assert {"S3", "FF"} <= {entry["task"] for entry in json.loads(capsys.readouterr().out)}
    assert run(["table", name, "--rows", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_tables_need_no_torch(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from detent.cli._app import run; run(sys.argv[1:])"
    fill(tmp_path, [sweep_row()])
    done = subprocess.run(
        [sys.executable, "-c", program, "table", "results", "--rows", str(tmp_path)], capture_output=True, text=True
    )
    assert "Mamba-" in done.stdout, done.stderr

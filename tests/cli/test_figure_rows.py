"""`detent figure NAME`: from rows in results, from a file, computed and kept; sentences for what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from detent import records
from detent.cli._app import run
from tests.paper.figures.test_drift import rows

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def keep(path: str) -> None:
    for row in rows():
        records.append(path, row)


@pytest.mark.parametrize(("ending", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_rows_in_results_are_drawn(ending: str, begins: bytes, capsys: Said) -> None:
    keep("results/drift.jsonl")
    assert run(["figure", "drift", "-o", f"drift{ending}"]) == 0
    assert Path(f"drift{ending}").read_bytes().startswith(begins)
    assert capsys.readouterr() == (f"drift, {len(rows())} rows: drift{ending}\n", "")


def test_other_rows_are_drawn_when_named_and_printed_as_json(capsys: Said) -> None:
    keep("mine.jsonl")
    assert run(["figure", "drift", "--rows", "mine.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows()


def test_rows_are_computed_where_there_are_none_and_kept_when_asked(
    capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paper.theory.drift.drift_rows", rows)
    assert run(["figure", "drift", "--keep", "results/drift.jsonl", "-o", "drift.svg"]) == 0
    assert "computing the rows of drift (paper.theory.drift.drift_rows)" in capsys.readouterr().err
    first, *rest = records.read("results/drift.jsonl")
    assert rest == rows()[1:]
    assert {"date", "machine", "command"} < set(first)
    assert Path("drift.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["geometry", "-o", "g.svg"],
            "results/geometry.jsonl: no rows are here; `python -m paper.experiments.geometry`",
        ),
        (["drift"], "name a picture with -o FILE, or ask for the rows with --json or --keep FILE"),
        (["drift", "-o", "d.gif"], "unknown picture format '.gif'"),
        (["drift", "--rows", "gone.jsonl", "-o", "d.svg"], "gone.jsonl: this is no file with rows"),
        (["drift", "--rows", "a.jsonl", "--keep", "b.jsonl"], "ask for one of the two"),
        (["geometry", "--keep", "g.jsonl"], "are not computed here; `python -m paper.experiments.geometry` makes them"),
        (["drft", "-o", "d.svg"], "unknown figure 'drft'. Did you mean 'drift'?"),
        (["realization", "S4", "-o", "r.svg"], "cells are drawn for at most 12 states; this machine has 24"),
        (["realization", "Z5", "--word", "9", "-o", "r.svg"], "unknown symbol '9'"),
        (["machine", ".", "-o", "m.svg"], "there is no machine.json here"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_nothing_left(arguments: list[str], sentence: str, capsys: Said) -> None:
    assert run(["figure", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_kept_rows_are_never_overwritten(capsys: Said) -> None:
    keep("mine.jsonl")
    before = Path("mine.jsonl").read_bytes()
    assert run(["figure", "drift", "--keep", "mine.jsonl"]) == 2
    assert "mine.jsonl is there already" in capsys.readouterr().err
    assert Path("mine.jsonl").read_bytes() == before


def test_rows_of_another_figure_are_refused(capsys: Said) -> None:
    keep("mine.jsonl")
    assert run(["figure", "geometry", "--rows", "mine.jsonl", "-o", "g.svg"]) == 2
    assert "rows of kind 'window'" in capsys.readouterr().err


def test_a_realization_says_when_the_state_is_lost(capsys: Said) -> None:
    assert run(["figure", "realization", "Z5", "--word", "1 1 1 1 1 1", "--eta", "0.2", "-o", "z5.svg"]) == 0
    assert "Z5, 6 steps, without restoration the state is lost at step 3: z5.svg" in capsys.readouterr().out


def test_tables_of_a_task_are_those_of_its_factoring(capsys: Said) -> None:
    assert run(["figure", "tables", "S3", "-o", "s3.svg", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted({(row["head"], len(row["table"])) for row in told}) == [(0, 3), (1, 2)]


def test_two_machines_side_by_side_are_compared(capsys: Said) -> None:
    assert run(["figure", "machine", "Tomita4", "--beside", "Tomita7", "-o", "both.svg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["They differ after: 0 0 0"]

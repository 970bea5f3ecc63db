"""`exactstate figure`: machines, tables of heads and length sweeps, as pictures, rows, or a sentence and no file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from exactstate import automata, records
from exactstate.automata import symmetric
from exactstate.cli._app import run
from exactstate.cli.figure import table_rows
from exactstate.runtime import Machine
from tests.certify.certificates import certificate

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("ending", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph")])
def test_figure_machine_writes_every_format(ending: str, begins: bytes, tmp_path: Path, capsys: Captured) -> None:
    picture = tmp_path / f"s3{ending}"
    assert run(["figure", "machine", "s3", "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(begins)
    out, err = capsys.readouterr()
    assert (out, err) == (f"S3, 6 states: {picture}\n", "")


def test_figure_machine_writes_dot_that_reads_back(tmp_path: Path) -> None:
    assert run(["figure", "machine", "TSO2", "-o", str(tmp_path / "tso2.dot")]) == 0
    assert automata.read_machine(tmp_path / "tso2.dot").n_states == 12


def test_figure_machine_lists_what_a_large_picture_omits(tmp_path: Path, capsys: Captured) -> None:
    assert run(["figure", "machine", "S5", "-o", str(tmp_path / "s5.svg"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["task"], printed["states"]) == ("S5", 120)
    assert printed["notes"]


@pytest.mark.parametrize(
    ("name", "output", "sentence"),
    [
        ("S3", "s3.gif", "unknown ending '.gif'"),
        ("S3", "s3", "unknown ending"),
        ("S3", "nowhere/s3.svg", "there is no folder"),
        ("S33", "s33.svg", "there is no task S33"),
        ("missing.dot", "missing.svg", "there is no such file"),
        (".", "m.svg", "there is no machine.json here"),
    ],
)
def test_figure_machine_of_bad_input_leaves_no_file(
    name: str, output: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figure", "machine", name, "-o", output]) == 2
    assert sentence in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def written(folder: Path, name: str) -> tuple[Path, dict]:
    content = certificate(name)
    (folder / "certificate.json").write_text(json.dumps(content))
    return folder / "certificate.json", content


def test_table_rows_of_a_certificate_have_tables_and_margins(tmp_path: Path) -> None:
    path, content = written(tmp_path, "S3")
    title, rows = table_rows(str(path))
    assert title == "S3"
    (layer,) = content["layers"]
    assert [row["table"] for row in rows if row["head"] == 0] == layer["tables"][0]
    assert [row["symbol"] for row in rows if row["head"] == 1] == content["symbols"]
    assert [row["margins"] for row in rows if row["head"] == 0] == content["margins"]["logits"][0][0]


def test_table_rows_of_a_run_are_those_of_its_certificate(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "S3")
    assert table_rows(str(tmp_path)) == table_rows(str(path))


def test_table_rows_of_a_stack_are_named_by_their_window(tmp_path: Path) -> None:
    path, content = written(tmp_path, "TSO2")
    _, rows = table_rows(str(path))
    first = [row["symbol"] for row in rows if (row["layer"], row["head"]) == (0, 0)]
    words = {word for window in first for word in window.split(" | ")}
    assert words <= {"·", *content["symbols"]}
    above = [row["symbol"] for row in rows if row["layer"] == 1]
    assert len(set(above)) == len(content["layers"][1]["windows"])
    assert all(row["margins"] is None for row in rows)


def test_table_rows_of_a_machine_file_are_its_heads(tmp_path: Path) -> None:
    machine = Machine.of(symmetric(3)).with_heads()
    assert machine.heads is not None
    machine.save(tmp_path / "s3.json")
    title, rows = table_rows(str(tmp_path / "s3.json"))
    assert title == "s3"
    for h, table in enumerate(machine.heads.tables):
        assert np.array_equal([row["table"] for row in rows if row["head"] == h], table)


@pytest.mark.parametrize("name", ["S3", "TSO2"])
def test_figure_tables_writes_a_picture(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = written(tmp_path, name)
    assert run(["figure", "tables", str(path), "-o", str(tmp_path / "tables.png")]) == 0
    assert (tmp_path / "tables.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.startswith(f"{name}, ")


def test_figure_tables_of_a_task_are_those_of_its_factorization(tmp_path: Path, capsys: Captured) -> None:
    assert run(["figure", "tables", "S3", "-o", str(tmp_path / "s3.svg"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sorted({(row["head"], len(row["table"])) for row in rows}) == [(0, 3), (1, 2)]


def test_figure_machine_beside_another_compares_them(tmp_path: Path, capsys: Captured) -> None:
    called = ["figure", "machine", "Tomita4", "--beside", "Tomita7", "-o", str(tmp_path / "both.svg"), "--json"]
    assert run(called) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["They differ after: 0 0 0"]


SWEEP = {"task": "S3", "cell": "nfsm", "seed": 42, "threshold": 1.0, "max_length": 64, "learned": True,
         "certified": True, "failing_length": None, "accuracies": {"64": 1.0}}  # fmt: skip


def test_figure_sweep_draws_runs_and_files_of_rows(tmp_path: Path, capsys: Captured) -> None:
    records.append(tmp_path / "run" / "sweeps.jsonl", SWEEP)
    records.append(tmp_path / "mine.jsonl", {**SWEEP, "seed": 43})
    picture = tmp_path / "sweep.png"
    assert run(["figure", "sweep", str(tmp_path / "run"), "-o", str(picture)]) == 0
    assert capsys.readouterr().out == f"sweep, 1 rows: {picture}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")
    called = ["figure", "sweep", str(tmp_path / "run"), "--rows", str(tmp_path / "mine.jsonl"), "-o", str(picture)]
    assert run([*called, "--json"]) == 0
    assert [row["seed"] for row in json.loads(capsys.readouterr().out)] == [42, 43]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name the folders of runs, or a file of rows with --rows FILE"),
        (["runs/S3"], "runs/S3/sweeps.jsonl: there are no sweeps here"),
        (["--rows", "gone.jsonl"], "gone.jsonl: there are no sweeps here"),
    ],
)
def test_figure_sweep_without_sweeps_leaves_no_file(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figure", "sweep", *arguments, "-o", "sweep.svg"]) == 2
    assert sentence in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_figure_refuses_an_unknown_name(capsys: Captured) -> None:
    assert run(["figure", "machin", "-o", "d.svg"]) == 2
    assert "unknown figure 'machin'. Did you mean 'machine'?" in capsys.readouterr().err

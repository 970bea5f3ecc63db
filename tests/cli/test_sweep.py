"""`exactstate sweep`: sentence, row, exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate import records
from exactstate.cli._app import run


def test_sweep_with_a_failure_prints_a_sentence_and_appends_a_row(
    untrained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", str(untrained), "--batch", "8", "--max-length", "1024"]) == 1
    out = capsys.readouterr().out
    assert "S3: fails at length" in out
    assert out.endswith(f"report updated: {untrained / 'report.html'}\n")
    assert "mamba: fails at length" in (untrained / "report.html").read_text()
    (row,) = records.read(untrained / "sweeps.jsonl")
    assert (row["batch"], row["threshold"], row["format"], row["max_length"]) == (8, 0.9, "float32", 1024)
    assert {"machine", "date", "command", "words_seed", "seed"} <= set(row)


def test_sweep_as_json_with_rows_in_another_file(
    untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    assert run(["sweep", str(untrained), "--json", "--format", "float16", "--rows", str(rows)]) == 1
    assert json.loads(capsys.readouterr().out) == next(records.read(rows))
    assert next(records.read(rows))["format"] == "float16"
    assert not (untrained / "report.html").exists()


def test_sweep_of_wrong_calls(untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", str(tmp_path / "nowhere")]) == 2
    assert "this is not the folder of a run" in capsys.readouterr().err
    assert run(["sweep", str(untrained), "--format", "float8"]) == 2
    assert "unknown format 'float8'" in capsys.readouterr().err

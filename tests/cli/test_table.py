"""`exactstate table`: the failing lengths of a folder of rows in every format, and no published figures among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.cli._app import run
from tests.report.test_failing_lengths import fill, sweep_row


def test_table_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, [sweep_row()])
    assert run(["table", str(tmp_path)]) == 0
    assert "Mamba⁻" in capsys.readouterr().out
    assert run(["table", str(tmp_path), "--format", "markdown"]) == 0
    assert "| --- |" in capsys.readouterr().out
    assert run(["table", str(tmp_path), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["task"], entry["cell"], entry["recipe"], entry["seeds"]) == ("S3", "mamba", "cpu", {"42": "120"})
    assert "published" not in entry


def test_table_of_a_missing_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err

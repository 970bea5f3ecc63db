"""`exactstate table`: the tables of a folder of rows in every format, and no published figures among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.cli._app import run
from tests.evaluate.test_tables import fill, sweep_row


@pytest.mark.parametrize("name", ["results", "seeds"])
def test_table_in_every_format(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path, [sweep_row()])
    assert run(["table", name, "--rows", str(tmp_path)]) == 0
    assert "Mamba⁻" in capsys.readouterr().out
    for form in ("markdown", "html"):
        assert run(["table", name, "--rows", str(tmp_path), "--format", form]) == 0
        assert {"markdown": "| --- |", "html": "<table>"}[form] in capsys.readouterr().out
    assert run(["table", name, "--rows", str(tmp_path), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["task"], entry["cell"], entry["recipe"]) == ("S3", "mamba", "cpu")
    assert "published" not in entry


@pytest.mark.parametrize("name", ["results", "seeds"])
def test_table_of_a_missing_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", name, "--rows", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err

"""`detent figure tables`: the tables of certificates, single layers and stacks, of machine files, and of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from detent.automata import symmetric
from detent.cli._app import run
from detent.cli.figure import table_rows
from detent.runtime import Machine
from tests.certify.making import certificate


def written(folder: Path, name: str) -> tuple[Path, dict]:
    content = certificate(name)
    (folder / "certificate.json").write_text(json.dumps(content))
    return folder / "certificate.json", content


def test_a_certificate_gives_its_tables_and_margins(tmp_path: Path) -> None:
    path, content = written(tmp_path, "S3")
    title, rows = table_rows(str(path))
    assert title == "S3"
    (layer,) = content["layers"]
    assert [row["table"] for row in rows if row["head"] == 0] == layer["tables"][0]
    assert [row["symbol"] for row in rows if row["head"] == 1] == content["symbols"]
    assert [row["margins"] for row in rows if row["head"] == 0] == content["margins"]["logits"][0][0]


def test_a_run_with_a_certificate_is_the_certificate(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "S3")
    assert table_rows(str(tmp_path)) == table_rows(str(path))


def test_windows_of_a_stack_are_named_by_what_was_read(tmp_path: Path) -> None:
    path, content = written(tmp_path, "TSO2")
    _, rows = table_rows(str(path))
    first = [row["symbol"] for row in rows if (row["layer"], row["head"]) == (0, 0)]
    words = {word for window in first for word in window.split(" | ")}
    assert words <= {"-", *content["symbols"]}
    above = [row["symbol"] for row in rows if row["layer"] == 1]
    assert len(set(above)) == len(content["layers"][1]["windows"])
    assert all(row["margins"] is None for row in rows)


def test_a_machine_file_gives_its_heads(tmp_path: Path) -> None:
    machine = Machine.of(symmetric(3)).with_heads()
    assert machine.heads is not None
    machine.save(tmp_path / "s3.json")
    title, rows = table_rows(str(tmp_path / "s3.json"))
    assert title == "s3"
    for h, table in enumerate(machine.heads.tables):
        assert np.array_equal([row["table"] for row in rows if row["head"] == h], table)


@pytest.mark.parametrize("name", ["S3", "TSO2"])
def test_they_are_drawn(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, _ = written(tmp_path, name)
    assert run(["figure", "tables", str(path), "-o", str(tmp_path / "tables.png")]) == 0
    assert (tmp_path / "tables.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.startswith(f"{name}, ")

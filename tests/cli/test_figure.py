"""`detent figure machine`: a picture, or text for Graphviz, or a sentence and no file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from detent import automata
from detent.cli._app import run

Said = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("ending", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".dot", b"digraph")])
def test_a_machine_is_drawn(ending: str, begins: bytes, tmp_path: Path, capsys: Said) -> None:
    picture = tmp_path / f"s3{ending}"
    assert run(["figure", "machine", "s3", "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(begins)
    out, err = capsys.readouterr()
    assert (out, err) == (f"S3, 6 states: {picture}\n", "")


def test_what_is_written_for_graphviz_is_the_machine(tmp_path: Path) -> None:
    assert run(["figure", "machine", "TSO2", "-o", str(tmp_path / "tso2.dot")]) == 0
    assert automata.read_machine(tmp_path / "tso2.dot").n_states == 12


def test_a_large_machine_says_what_was_left_out(tmp_path: Path, capsys: Said) -> None:
    assert run(["figure", "machine", "S5", "-o", str(tmp_path / "s5.svg"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["task"], said["states"]) == ("S5", 120)
    assert said["notes"]


@pytest.mark.parametrize(
    ("name", "output", "sentence"),
    [
        ("S3", "s3.gif", "unknown ending '.gif'"),
        ("S3", "s3", "unknown ending"),
        ("S3", "nowhere/s3.svg", "there is no folder"),
        ("S33", "s33.svg", "there is no task S33"),
        ("missing.dot", "missing.svg", "there is no such file"),
    ],
)
def test_nothing_is_left_when_nothing_can_be_drawn(
    name: str, output: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["figure", "machine", name, "-o", output]) == 2
    assert sentence in capsys.readouterr().err
    assert os.listdir(tmp_path) == []

"""`exactstate extract`: from a run to a machine file or a program."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from exactstate.cli._app import run as command
from exactstate.runtime import load

Captured = pytest.CaptureFixture[str]


def test_extract_writes_a_machine_that_every_verb_reads(trained: Path, tmp_path: Path, capsys: Captured) -> None:
    """Heads and all that `exactstate train` wrote; compared with the group's own multiplication."""
    assert command(["certify", str(trained / "machine.json"), "--against", "S3"]) == 0
    assert "each of 6 target states has one configuration" in capsys.readouterr().out
    assert command(["figure", "machine", str(trained / "machine.json"), "-o", str(tmp_path / "s3.dot")]) == 0
    assert command(["extract", str(trained), "-o", str(tmp_path / "s3.exactstate")]) == 0
    assert "6 states, written to " in capsys.readouterr().out
    machine = load(tmp_path / "s3.exactstate")
    assert machine == load(trained / "machine.json")
    assert machine.heads is not None
    assert machine.heads.sizes == (3, 2)
    assert machine.about["labels"] == "states"
    swaps = {"(0 1)": (1, 0, 2), "(1 2)": (0, 2, 1)}
    outputs: dict[tuple[int, ...], set[str]] = {}
    for word in product(swaps, repeat=7):
        permutation = (0, 1, 2)
        for letter, name in zip(word, machine.outputs(word), strict=True):
            permutation = tuple(swaps[letter][k] for k in permutation)
            outputs.setdefault(permutation, set()).add(name)
    assert len(outputs) == 6
    assert len({name for names in outputs.values() for name in names}) == sum(map(len, outputs.values())) == 6


def test_extract_as_json_and_as_a_c_program(trained: Path, tmp_path: Path, capsys: Captured) -> None:
    assert command(["extract", str(trained), "-o", str(tmp_path / "s3.c"), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["heads"], row["reached"], row["states"]) == ([[3, 2]], 6, 6)
    assert "int main" in (tmp_path / "s3.c").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["extract", "RUN", "-o", "s3.txt"], "unknown ending '.txt'"),
        (["extract", "EMPTY", "-o", "s3.json"], "this is not the folder of a run: there is no config.json in it."),
    ],
)
def test_extract_of_wrong_calls(
    arguments: list[str], sentence: str, trained: Path, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "empty").mkdir()
    filled = [a.replace("RUN", str(trained)).replace("EMPTY", str(tmp_path / "empty")) for a in arguments]
    assert command(filled) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err


def test_extract_of_a_baseline(untrained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["extract", str(untrained), "-o", str(tmp_path / "machine.json")]) == 2
    assert "this is a run of 'mamba', which has no tables to extract; sweep it." in capsys.readouterr().err

"""`detent table drift`: the rows of the figure, as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from detent import records
from detent.cli._app import run

Said = pytest.CaptureFixture[str]

ROWS = [
    {"kind": "summary", "format": "fp16", "order": 7, "cosine": 0.62353515625, "sine": 0.78173828125,
     "angle_error": -9.357367e-05, "log_radius": -4.4586e-05, "first_wrong_step": 4797, "by": "iteration"},
    {"kind": "step", "format": "fp16", "step": 1, "phase_error": -9.4e-05, "log_norm": 0.0, "by": "iteration"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def _rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for row in ROWS:
        records.append("results/drift.jsonl", row)


def test_a_line_is_a_format(capsys: Said) -> None:
    assert run(["table", "drift"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The rotation by 2 pi / 7, rounded once to each format and then iterated in fp64"
    assert lines[4].split() == [
        "fp16",
        "0.62353515625",
        "0.78173828125",
        "-9.357e-05",
        "-4.459e-05",
        "4,797",
        "iteration",
    ]


@pytest.mark.parametrize(("form", "said"), [("markdown", "| fp16 | 0.62353515625 |"), ("html", "<td>4,797</td>")])
def test_other_forms(form: str, said: str, capsys: Said) -> None:
    assert run(["table", "drift", "--format", form]) == 0
    assert said in capsys.readouterr().out


def test_json_is_the_summaries(capsys: Said) -> None:
    assert run(["table", "drift", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ROWS[:1]

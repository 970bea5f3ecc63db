"""`detent table census`: every architecture in every form."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from detent.cli._app import run
from paper.census import ENTRIES
from paper.tables import _rounded


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_architecture_is_named(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "census", "--format", form]) == 0
    said = capsys.readouterr().out
    for entry in ENTRIES:
        assert entry.name in said
    assert "definite automata" in said


def test_json_has_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "census", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [entry.name for entry in ENTRIES]
    assert {"recurrence", "transition", "spectrum", "branch", "realizes", "note", "rho"} <= rows[0].keys()


def test_what_is_below_one_is_never_shown_as_one() -> None:
    assert _rounded(1.0) == "1.000000"
    assert _rounded(0.99999999) == "1 - 1.0e-08"
    assert _rounded(0.25) == "0.250000"


def test_it_brings_no_torch() -> None:
    calls = "from detent.cli._app import run; run(['table', 'census', '--json'])"
    program = f"import sys; {calls}; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0

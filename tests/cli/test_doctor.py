"""`exactstate doctor`: what is installed, why a backend is missing, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate import native
from exactstate.cli import doctor
from exactstate.cli._app import run

WORKS = 0 if native.available() else 1
NAMES = (["cpu"] if native.available() else []) + ["tree", "reference"]


def test_doctor_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == WORKS
    found = json.loads(capsys.readouterr().out)
    assert found["packages"]["torch"] == __import__("torch").__version__
    assert [one["name"] for one in found["backends"] if one["available"]] == NAMES
    layer, machine = found["speeds"]
    assert {row["name"] for row in layer["rows"]} == set(NAMES)
    for measured in (layer, machine):
        assert min(row["ratio"] for row in measured["rows"]) == 1.0
        assert all(row["milliseconds"] > 0 for row in measured["rows"])


def test_doctor_prints_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert run(["doctor", "--no-measure"]) == WORKS
    out = capsys.readouterr().out
    assert "torch operations" in out
    assert "not found; it runs machines exported as JavaScript" in out
    assert " ms" not in out


def test_doctor_without_kernels_says_why_and_what_to_do() -> None:
    program = [sys.executable, "-m", "exactstate", "doctor", "--no-measure"]
    done = subprocess.run(program, env={"EXACTSTATE_NATIVE": "0", "PYTHONPATH": str(Path(__file__).parents[2])},
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "the compiled kernels are switched off by EXACTSTATE_NATIVE=0; unset it" in done.stdout

"""The page "from a log to a certified machine in C": its commands are run, and print what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from exactstate.automata import Mealy, write_machine
from tests.docs.conftest import ROOT

PAGE = ROOT / "docs" / "from-a-log.md"
SYMBOLS, OUTPUTS = ("open", "close", "lock", "unlock"), ("ok", "already", "locked", "no")


def door(*, locks_when_open):
    """States closed, open, locked."""
    tables, readout = [[1, 1, 2], [0, 0, 2], [2, 1, 2], [0, 1, 0]], [[0, 1, 2], [1, 0, 1], [0, 3, 1], [3, 3, 0]]
    if locks_when_open:
        tables[2][1], readout[2][1] = 2, 0
    return Mealy(symbols=SYMBOLS, tables=tables, states=("closed", "open", "locked"), outputs=OUTPUTS, readout=readout)


def sessions(text):
    """(command, what the page shows), from the blocks of console."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "door.txt").write_text(next(shown for command, shown in sessions(PAGE.read_text())))
    (tmp_path / "wrong.txt").write_text("open/no\n")
    (tmp_path / "today.txt").write_text("open/ok close/ok\nlock/ok open/ok\n")
    write_machine(door(locks_when_open=False), tmp_path / "specification.dot")
    write_machine(door(locks_when_open=True), tmp_path / "next.dot")
    return tmp_path


def run(command, folder):
    shell = f'python() {{ "{sys.executable}" "$@"; }}\nexactstate() {{ python -m exactstate "$@"; }}\n{command}'
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", shell], cwd=folder, env=here, capture_output=True, text=True)
    code = f"(exit code {done.returncode})\n" if done.returncode else ""
    return done.stdout + done.stderr + code


@pytest.mark.skipif(shutil.which("cc") is None, reason="the page compiles a program; there is no C compiler here")
def test_page_from_a_log_prints_what_it_says(folder):
    commands = list(sessions(PAGE.read_text()))
    assert len(commands) >= 8
    for command, shown in commands:
        assert run(command, folder) == shown, command

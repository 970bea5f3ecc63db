"""A bar for people who wait at a terminal, and for nobody else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from detent.cli._output import with_progress

PROGRAM = """
import sys, time
from detent.cli._output import with_progress
for pause in with_progress([0, {pause}, 0], name="pause {{}}".format):
    time.sleep(pause)
print("done")
"""


def at_a_terminal(pause: float) -> str:
    """What the error stream shows when it is a terminal."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", PROGRAM.format(pause=pause)]
    done = subprocess.run(program, stderr=theirs, stdout=subprocess.PIPE, text=True, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, "done\n")
    return shown


def test_a_bar_appears_while_one_item_takes_long() -> None:
    assert "pause 2" in at_a_terminal(2)


def test_what_is_quick_shows_no_bar() -> None:
    assert "pause" not in at_a_terminal(0)


def test_a_pipe_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress([1, 2, 3], name=str)) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")

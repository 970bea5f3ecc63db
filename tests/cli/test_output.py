"""Status lines: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from exactstate.cli._output import TrainingStatus, format_duration, with_progress

PROGRAM = """
import threading
from exactstate.cli._output import with_progress

class Timer:
    "Its time passes when an item says so."
    def __init__(self, seconds, call):
        Timer.seconds, Timer.ring = seconds, call
    def start(self): pass
    cancel = start

threading.Timer = Timer
for pause in with_progress([0, {pause}], name="pause {{}}".format):
    if pause > Timer.seconds:
        Timer.ring()
print("done")
"""


def at_a_terminal(pause: int) -> str:
    """What the error stream shows when it is a terminal."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", PROGRAM.format(pause=pause)]
    done = subprocess.run(program, stderr=theirs, stdout=subprocess.PIPE, text=True, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    try:
        shown = os.read(ours, 1 << 16).decode()
    except OSError:  # nothing was written
        shown = ""
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, "done\n")
    return shown


def test_with_progress_shows_a_line_while_one_item_takes_long() -> None:
    assert "pause 2" in at_a_terminal(2)


def test_with_progress_shows_no_line_for_quick_items() -> None:
    assert "pause" not in at_a_terminal(0)


def test_with_progress_shows_no_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress([1, 2, 3], name=str)) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")


def test_training_status_line() -> None:
    status = TrainingStatus({"end_to_end": 1_000, "wide": 20})
    row = {"attempt": 0, "phase": "end_to_end", "step": 50, "loss": 0.51234, "first_error": 12.0, "accuracy": 0.25}
    assert status.line(row, 10.0) == "end_to_end, step 50/1,000: loss 0.512, first error 12, accuracy 0.25"
    later = {**row, "step": 100, "accuracy": 1.0}
    assert status.line(later, 15.0).endswith("accuracy 1, at most 2 min left")
    restart = {"attempt": 2, "phase": "wide", "step": 10, "loss": 0.5}
    assert status.line(restart, 20.0) == "restart 2, wide, step 10/20: loss 0.5"
    pretraining = {"attempt": 0, "phase": "realize", "step": 20, "loss": 0.5, "table_margin": 7.71, "read_margin": 7.3}
    assert status.line(pretraining, 22.0) == "realize, step 20: loss 0.5, table margin 7.71, read-out margin 7.3"


def test_training_status_prints_nothing_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainingStatus({}) as status:
        status({"phase": "end_to_end", "step": 1, "loss": 1.0})
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9_000, "2 h"), (400_000, "5 days")]
)
def test_format_duration(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words

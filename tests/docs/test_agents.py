"""The page "watch an agent": its files are made, its commands are run and print what it says, its picture is drawn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from exactstate.automata.draw import svg
from exactstate.learning import Monitor
from tests.docs.conftest import ROOT
from tests.docs.test_from_a_log import run, sessions

PAGE, PICTURE = ROOT / "docs" / "agents.md", ROOT / "docs" / "images" / "agent-monitor.svg"


@pytest.mark.skipif(shutil.which("cc") is None, reason="the page compiles a program; there is no C compiler here")
def test_page_agents_prints_what_it_says(tmp_path: Path) -> None:
    commands = list(sessions(PAGE.read_text(encoding="utf-8")))
    assert len(commands) >= 12
    for command, shown in commands:
        name = command.removeprefix("cat ")
        if command.startswith("cat ") and not (tmp_path / name).exists():  # a file that the reader has or writes
            (tmp_path / name).write_text(shown, encoding="utf-8")
        assert run(command, tmp_path) == shown, command
    drawn = svg(Monitor.load(tmp_path / "monitor.json").language(), title="monitor")
    assert drawn == PICTURE.read_bytes()

"""The README's code runs, its commands run, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
INLINE = re.findall(r"`(?:\.venv/bin/)?detent ([^`]+)`", README)
IN_BLOCKS = [
    line.strip().removeprefix("$ ").removeprefix(".venv/bin/").removeprefix("detent ").partition("  #")[0].strip()
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if re.match(r"\s*(\$ )?(\.venv/bin/)?detent ", line)
]
COMMANDS = list(dict.fromkeys([*INLINE, *IN_BLOCKS]))
ONLY_HELP = {"demo"}
"""Tested elsewhere, at length."""


def test_the_code_runs():
    assert BLOCKS
    exec(compile("\n".join(BLOCKS), "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)`", README))))
def test_every_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_command_runs(tmp_path, capsys, monkeypatch):
    """One after another in one folder, so that a later one finds what an earlier one left."""
    from detent.automata import symmetric, write_machine
    from detent.cli._app import run

    write_machine(symmetric(3), tmp_path / "your-machine.dot")
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        words = shlex.split(command.replace("RUN", "runs/S3-42-default"))
        # a verb that is only named, not called
        if words[0] in ONLY_HELP or (len(words) == 1 and words[0] not in ("tasks", "doctor", "--version")):
            words = [words[0], "--help"]
        assert run(words) == 0, command
        assert capsys.readouterr().out, command


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def test_every_folder_named_is_there():
    for folder in re.findall(r"^\| `([a-z/]+)` \|", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder

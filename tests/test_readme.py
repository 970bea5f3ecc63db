"""The README's code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_code_runs():
    assert BLOCKS
    exec(compile("\n".join(BLOCKS), "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)`", README))))
def test_every_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("verb", sorted(set(re.findall(r"`\.venv/bin/detent ([^`]+)`", README))))
def test_every_command_is_understood(verb, capsys, tmp_path, monkeypatch):
    from detent.automata import symmetric, write_machine
    from detent.cli.app import run

    monkeypatch.chdir(tmp_path)
    write_machine(symmetric(3), "your-machine.dot")
    assert run(verb.split()) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


def test_every_folder_named_is_there():
    for folder in re.findall(r"^\| `([a-z/]+)` \|", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder

"""paper/README.md: every command exists, every figure, table, campaign and file of the folder is listed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from paper.cli import run
from paper.experiments.campaigns import CAMPAIGNS
from paper.figures.registry import FIGURES
from paper.pages import TABLES

FOLDER = Path(__file__).parents[2] / "paper"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"`python -m paper ([^`]+)`", README)))


@pytest.mark.parametrize("command", COMMANDS)
def test_readme_commands_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)
    if words[0] == "run":
        assert words[1:2] in ([], ["NAME"]) or words[1] in CAMPAIGNS
        settings = [words[i + 1].partition("=")[0] for i, word in enumerate(words) if word == "--set"]
        assert all(name in CAMPAIGNS[words[1]].settings for name in settings)
    else:
        assert run([*words[: 2 if words[0] in ("table", "figure") else 1], "--help"]) == 0
        assert all(option in capsys.readouterr().out for option in words if option.startswith("--"))


def test_readme_lists_every_figure_campaign_and_file() -> None:
    assert {command.split()[1] for command in COMMANDS if command.startswith("figure ")} == {*FIGURES, "realization"}
    assert {command.split()[1] for command in COMMANDS if command.startswith("table ")} == {*TABLES, "census"}
    assert set(re.findall(r"^\| `([a-z_]+)` \|", README, re.MULTILINE)) == set(CAMPAIGNS)
    for name in ("theory", "figures", "experiments", *(path.name for path in FOLDER.glob("[a-z]*.py"))):
        assert f"`{name}" in README, name

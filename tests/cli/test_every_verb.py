"""What every verb has: help that teaches by example, JSON for programs, silence in a pipe but for the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer

from detent.cli._app import app, run

DESIGNED = {"tasks", "train", "sweep", "extract", "certify", "check", "run", "table", "figure"}


def verbs() -> Iterator[tuple[list[str], object]]:
    """The words that lead to every command, and the command."""
    waiting: list[tuple[list[str], object]] = [([], typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        inside = getattr(command, "commands", None)
        if inside:
            waiting += [([*words, name], one) for name, one in inside.items()]
        else:
            yield words, command


VERBS = {" ".join(words): command for words, command in verbs()}


def test_all_verbs_of_the_design_are_there() -> None:
    assert {name.split()[0] for name in VERBS} >= DESIGNED


@pytest.mark.parametrize("name", VERBS)
def test_help_shows_an_example_and_how_to_get_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"(^|\s|\| )detent {name}( |$)", out.replace("│", " "), re.MULTILINE)
    assert "--json" in out


@pytest.mark.parametrize("name", VERBS)
def test_every_option_says_what_it_does(name: str) -> None:
    for option in VERBS[name].params:  # type: ignore[attr-defined]
        assert getattr(option, "help", None), f"{name}: {option.name}"


def test_completion_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out

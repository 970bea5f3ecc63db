"""Completion of verbs, tasks, cells and recipes; files are left to the shell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from exactstate.cli import _completion


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("exactstate tra", ["train"]),
        ("exactstate train S", ["S3", "S4", "S5"]),
        ("exactstate train S3 --cell m", ["mamba", "m2rnn"]),
        ("exactstate figure mach", ["machine"]),
        ("exactstate check some.js", []),
    ],
)
def test_completion_in_bash(typed: str, offered: list[str]) -> None:
    variables = {
        "_EXACTSTATE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "exactstate"], env=os.environ | variables, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.split()) == (0, offered)


def test_completion_does_not_import_torch() -> None:
    calls = "_completion.tasks('S'), _completion.cells('m'), _completion.recipes('p')"
    program = f"import sys; from exactstate.cli import _completion; {calls}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_completion_cells_are_those_of_train() -> None:
    from exactstate.baselines.cells import CELLS

    assert _completion.cells("") == list(CELLS)


def test_completion_recipes_are_those_of_train() -> None:
    from exactstate.train.recipes import RECIPES

    assert _completion.recipes("") == list(RECIPES)
    assert _completion.recipes("p") == ["paper"]
    assert _completion.cells("NF") == ["nfsm"]
    assert _completion.tasks("zz") == []


def test_completion_names_are_in_the_help_of_train(capsys: pytest.CaptureFixture[str]) -> None:
    from exactstate.cli._app import run
    from exactstate.train.recipes import RECIPES

    assert run(["train", "--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in (*RECIPES, *_completion.cells("")) if name not in text] == []

"""Half a name is completed: verbs, tasks, cells, recipes; a file is left to the shell."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from detent.cli import _completion as completing


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("detent tra", ["train"]),
        ("detent train S", ["S3", "S4", "S5"]),
        ("detent train S3 --cell m", ["mamba"]),
        ("detent figure mach", ["machine"]),
        ("detent check some.js", []),
    ],
)
def test_what_the_shell_is_told(typed: str, offered: list[str]) -> None:
    asked = {"_DETENT_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run([sys.executable, "-m", "detent"], env=os.environ | asked, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, offered)


def test_nobody_waits_for_torch() -> None:
    asked = (
        "from detent.cli import _completion; _completion.tasks('S'), _completion.cells('m'), _completion.recipes('p')"
    )
    program = f"import sys; {asked}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_every_cell_is_offered() -> None:
    from detent.train.build import CELLS

    assert completing.cells("") == list(CELLS)


def test_every_recipe_once() -> None:
    from detent.train.baseline_config import RECIPES
    from detent.train.config import ARMS

    assert completing.recipes("") == list(dict.fromkeys((*ARMS, *RECIPES)))
    assert completing.recipes("p") == ["paper"]
    assert completing.cells("NF") == ["nfsm"]
    assert completing.tasks("zz") == []


def test_the_help_of_train_names_every_cell_and_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    from detent.cli._app import run
    from detent.train.config import ARMS

    assert run(["train", "--help"]) == 0
    told = capsys.readouterr().out
    assert [name for name in (*ARMS, *completing.cells("")) if name not in told] == []

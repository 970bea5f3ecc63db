"""`exactstate table`: failing lengths from a folder of result rows."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import InvalidInput


class Form(StrEnum):
    text = "text"
    markdown = "markdown"


Format = Annotated[Form, typer.Option("--format", help="Output format.")]


def table(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder with training.jsonl, baselines.jsonl and sweeps.jsonl."),
    ] = Path("results"),
    form: Format = Form.text,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Print the median failing length of every task, cell and recipe, and how many seeds learned the task.

    The failing length is the shortest length at which accuracy falls below the threshold of the sweep. `--json` lists
    every seed.

    Examples:

        exactstate table results
        exactstate table results --format markdown > results.md
    """
    from exactstate.report.failing_lengths import failing_lengths

    found, objects = failing_lengths(existing(folder))
    print_json(objects) if as_json else print_text(getattr(found, form)())


def existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; name the one that holds training.jsonl and sweeps.jsonl.")
    return folder

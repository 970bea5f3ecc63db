"""`exactstate table`: failing lengths from a folder of result rows."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._errors import CommandGroup
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import InvalidInput

app = typer.Typer(
    cls=CommandGroup.of("table"), no_args_is_help=True, rich_markup_mode="markdown",
    help="Summarize the rows of training runs and length sweeps. Example: `exactstate table results --rows results`.",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


class Form(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"


Rows = Annotated[
    Path,
    typer.Option("--rows", metavar="FOLDER", help="Folder with training.jsonl, baselines.jsonl and sweeps.jsonl."),
]
Format = Annotated[Form, typer.Option("--format", help="Output format.")]


@app.command("results")
def results(rows: Rows = Path("results"), form: Format = Form.text, as_json: AsJson = False) -> None:
    """Print the median failing length of every task, cell and recipe, and how many seeds learned the task.

    The failing length is the shortest length at which accuracy falls below the threshold of the sweep.

    Examples:

        exactstate table results
        exactstate table results --format markdown > results.md
    """
    from exactstate.evaluate.tables import results_table

    table, objects = results_table(existing(rows))
    print_json(objects) if as_json else print_text(table.render(form.value))


@app.command("seeds")
def seeds(rows: Rows = Path("results"), form: Format = Form.text, as_json: AsJson = False) -> None:
    """Print the failing length of every seed.

    `exactstate table results` has the medians over the seeds.

    Examples:

        exactstate table seeds
        exactstate table seeds --json
    """
    from exactstate.evaluate.tables import seeds_table

    table, objects = seeds_table(existing(rows))
    print_json(objects) if as_json else print_text(table.render(form.value))


def existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; name the one that holds training.jsonl and sweeps.jsonl.")
    return folder

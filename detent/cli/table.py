"""`detent table`: the paper's tables, from the rows in a folder beside the published figures, or computed."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from detent.cli._errors import Verbs
from detent.cli._output import AsJson, print_json
from detent.errors import InvalidInput

app = typer.Typer(
    cls=Verbs.of("table"), no_args_is_help=True, rich_markup_mode="markdown",
    help="The paper's tables: from rows measured here, beside the published figures; the census from its own matrices.",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


class Form(str, Enum):
    text = "text"
    markdown = "markdown"
    html = "html"


Rows = Annotated[Path, typer.Option("--rows", metavar="FOLDER", help="Where the rows are.")]
Shape = Annotated[Form, typer.Option("--format", help="How it is printed.")]


@app.command("results")
def results(rows: Rows = Path("results"), form: Shape = Form.text, as_json: AsJson = False) -> None:
    """The median failing length of every task and cell, and how many seeds learned it.

    A failing length is the first at which too few words are right; `--json` has all figures.

    Examples:

        detent table results
        detent table results --format markdown > results.md
    """
    _print("results", rows, form, as_json)


@app.command("seeds")
def seeds(rows: Rows = Path("results"), form: Shape = Form.text, as_json: AsJson = False) -> None:
    """The failing length of every seed.

    One line for every run that was swept, in the order of the tasks.

    Examples:

        detent table seeds
        detent table seeds --json
    """
    _print("seeds", rows, form, as_json)


@app.command("census")
def census(form: Shape = Form.text, as_json: AsJson = False) -> None:
    """Affine recurrences with a parallel scan: their spectra, and what each can then keep track of.

    The last column is measured: the spectral radii of 40 random matrices of the architecture.

    Examples:

        detent table census
        detent table census --format markdown > census.md
    """
    from paper.census import census_rows
    from paper.tables import census_grid as grid
    from paper.tables import terminal

    rows = census_rows()
    if as_json:
        print_json(rows)
    elif form is Form.text:
        terminal(rows)
    else:
        print(grid(rows).markdown() if form is Form.markdown else grid(rows).html())


@app.command("drift")
def drift(form: Shape = Form.text, as_json: AsJson = False) -> None:
    """The step at which a rotation that was rounded once to each number format is first read wrongly.

    From the rows of `detent figure drift`, which are computed where `results` has none.

    Examples:

        detent table drift
        detent table drift --format markdown > drift.md
    """
    from detent.cli.figure_rows import rows_of
    from paper.figures import FIGURES
    from paper.tables import drift_grid as grid

    rows = rows_of(FIGURES["drift"])
    if as_json:
        print_json([row for row in rows if row["kind"] == "summary"])
    else:
        table = grid(rows)
        print({Form.text: table.text, Form.markdown: table.markdown, Form.html: table.html}[form]())


def _print(name: str, rows: Path, form: Form, as_json: bool) -> None:
    from detent.evaluate import tables

    if not rows.is_dir():
        raise InvalidInput(f"there is no folder {rows}; name the one that holds training.jsonl and sweeps.jsonl.")
    grid, objects = (tables.results if name == "results" else tables.seeds)(rows)
    if as_json:
        print_json(objects)
    else:
        print({Form.text: grid.text, Form.markdown: grid.markdown, Form.html: grid.html}[form]())

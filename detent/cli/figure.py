"""`detent figure`: drawings by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detent.cli.output import AsJson, print_json
from detent.cli.verbs import Verbs
from detent.errors import unknown

ENDINGS = (".svg", ".png", ".pdf", ".dot")

app = typer.Typer(
    cls=Verbs.of("figure"), no_args_is_help=True, rich_markup_mode="markdown",
    help="Draw something by name. Example: `detent figure machine S3 -o s3.svg`.",
)  # fmt: skip


@app.command("machine")
def machine(
    name: Annotated[str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to: .svg, .png, .pdf or .dot.")],
    as_json: AsJson = False,
) -> None:
    """Draw a machine: states as circles, symbols as arrows.

    The ending of the file says what it will be: `.svg`, `.png` and `.pdf` are pictures, `.dot` is text for Graphviz.
    Beyond some thirty states a picture shows less, and says what it left out.

    Examples:

        detent figure machine S3 -o s3.svg
        detent figure machine mine.dot -o mine.png
    """
    from detent.automata import write_machine
    from detent.automata.diagram import draw
    from detent.tasks import task

    if output.suffix.lower() not in ENDINGS:
        raise unknown("ending", output.suffix or str(output), ENDINGS)
    drawn = task(name)
    notes: list[str] = []
    if output.suffix.lower() == ".dot":
        write_machine(drawn.machine, output)
    else:
        notes = draw(drawn.machine, output, title=drawn.name)
    if as_json:
        print_json({"task": drawn.name, "states": drawn.machine.n_states, "file": str(output), "notes": notes})
    else:
        print(f"{drawn.name}, {drawn.machine.n_states} states: {output}", *notes, sep="\n")


@app.callback()
def _root() -> None:
    pass

"""The program `detent` and its verbs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from detent.cli import certify, check, demo, doctor, extract, figure, report, sweep, table, tasks, train
from detent.cli._errors import Verbs, guarded
from detent.cli.run import run_machine

GUIDE = """Neural finite-state machines: track state exactly, at every length, and prove it.

**Look around:**

    detent demo                 a minute that shows what this is about
    detent doctor               what is installed, what works, and how fast
    detent tasks                what there is to learn
    detent tasks mine.dot       one task at length, or a machine of yours
    detent train S3             learn it, read the machine out, prove it right

**With the folder RUN that train leaves:**

    detent report RUN           all of it as one page for a browser
    detent sweep RUN            longer and longer words: where does it fail?
    detent certify RUN          prove it once more, from the weights
    detent check RUN/certificate.json        check the proof without torch
    detent extract RUN -o s3.json            the machine, without the network
    detent run RUN/machine.json words.txt    feed it symbols, print what it says

**Figures and tables:**

    detent figure machine S3 -o s3.svg       a machine, its tables, a length sweep
    detent table results        failing lengths of all runs, by task and cell

Every verb has `--help` with examples, and `--json` for programs. Exit codes: 0 done and true, 1 done and false,
2 wrong call or bad input, 130 interrupted. `detent --install-completion` teaches your shell to complete names.
"""

app = typer.Typer(
    cls=Verbs.of("verb"), help=GUIDE, no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
app.command("tasks")(tasks.tasks)
app.command("train")(train.train)
app.command("extract")(extract.extract)
app.command("certify")(certify.certify)
app.command("check")(check.check)
app.command("sweep")(sweep.sweep)
app.command("run")(run_machine)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.add_typer(figure.app, name="figure")
app.add_typer(table.app, name="table")


def _version(asked: bool) -> None:
    if asked:
        import detent

        print(f"detent {detent.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    return guarded(lambda: app(args=list(arguments), prog_name="detent", standalone_mode=False))

"""The program `exactstate`: its verbs and its exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from exactstate.cli._errors import CommandGroup, exit_code_of

GUIDE = """Neural finite-state machines: exact state tracking at every length, with a proof.

**Start here:**

    exactstate demo                 train, certify and sweep S3
    exactstate doctor               installed packages, backends, measured speed
    exactstate tasks                list the tasks
    exactstate tasks mine.dot       describe a task, or a machine of yours
    exactstate train S3             train, extract the machine, certify it

**With the folder RUN that train writes:**

    exactstate report RUN           everything on one HTML page
    exactstate sweep RUN            find the length at which it fails
    exactstate certify RUN          certify again, from the weights
    exactstate check RUN/certificate.json        check the proof, without torch
    exactstate extract RUN -o s3.json            the machine without the network
    exactstate run RUN/machine.json words.txt    symbols in, outputs out

**Machines from logs, and between versions:**

    exactstate learn log.jsonl -o machine.dot    the machine that a log shows
    exactstate conform machine.dot log.jsonl     the first line that departs
    exactstate diff old.dot new.dot              where two machines differ
    exactstate convert machine.dot -o machine.c  other formats, programs
    exactstate suite machine.dot -o tests.jsonl  test words
    exactstate monitor calls.jsonl -o m.json     watch an agent's calls

**Figures:**

    exactstate figure machine S3 -o s3.svg       machines, tables, sweeps

Every verb has `--help` with examples, and `--json` for programs. Exit codes: 0 done and true, 1 done and false,
2 wrong call or bad input, 130 interrupted. `exactstate --install-completion` installs completion for your shell.
"""

VERBS = (
    "tasks", "train", "extract", "learn", "monitor", "diff", "convert", "conform", "suite", "certify", "check",
    "sweep", "run", "report", "doctor", "demo", "figure",
)  # fmt: skip


def program(verbs: Sequence[str] = VERBS) -> typer.Typer:
    """The command line with these verbs; only their modules are imported."""
    app = typer.Typer(
        cls=CommandGroup, help=GUIDE, no_args_is_help=True, rich_markup_mode="markdown",
        pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(_root)
    for verb in verbs:
        module = importlib.import_module(f"exactstate.cli.{verb}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb)(getattr(module, verb))
    return app


def _print_version(requested: bool) -> None:
    if requested:
        import exactstate

        print(f"exactstate {exactstate.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    known = arguments and arguments[0] in VERBS
    app = program(arguments[:1] if known else VERBS)  # the help and mistyped verbs need them all
    return exit_code_of(lambda: app(args=list(arguments), prog_name="exactstate", standalone_mode=False))

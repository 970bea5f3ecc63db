"""`detent sweep`: how long may words become before a trained run goes wrong?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from detent.cli._errors import Stopped
from detent.cli._output import AsJson, console, print_json

if TYPE_CHECKING:
    from detent.evaluate.length_sweep import Progress

LONGEST, MOST_WORDS = 1 << 40, 1 << 20
"""What is worth asking for: a million millions of symbols take days."""


def sweep(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, from `detent train`.")],
    longest: Annotated[int, typer.Option("--max-length", min=1, max=LONGEST, help="Of words.")] = 1 << 20,
    batch: Annotated[int, typer.Option(min=1, max=MOST_WORDS, help="Words per length.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Names the words.")] = 0,
    format: Annotated[
        str, typer.Option(help="float32, float16 or bfloat16, the last two with the network itself.")
    ] = "float32",
    exact_forward: Annotated[
        bool, typer.Option("--exact-forward", help="Run the network, not the tables read out of it.")
    ] = False,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the row goes; sweeps.jsonl of the run if left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read longer and longer words until the run goes wrong, and say at which length it does.

    An NFSM fails when one word of the batch has a wrong state, a baseline when more than a tenth have; a task with
    questions is scored by its answers. Exit code 0 when no failure was found, 1 when there is one. A sweep that was
    stopped goes on when the command is repeated. The row is kept in the run, and its report is written anew with it.

    Examples:

        detent sweep runs/S3-42-default
        detent sweep runs/S3-42-default --exact-forward --max-length 65536
        detent sweep runs/S3-42-mamba-cpu --batch 512 --json
    """
    from detent import records
    from detent.evaluate.sweep_run import sweep_run
    from detent.report import write_report
    from detent.train.run_dir import RunDir

    try:
        with _progress() as shown:
            swept, row = sweep_run(
                run, max_length=longest, batch=batch, seed=seed, format=format, exact_forward=exact_forward,
                progress=shown,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; the sweep of {run} is gone on with when the command is repeated.") from None
    records.append(rows or RunDir(run).sweeps_path, row)
    report = write_report(run) if rows is None else None
    if as_json:
        print_json(row if report is None else {**row, "report": str(report)})
    else:
        print(f"{swept.sentence()} ({row['cell']}, {row['format']}, by its {row['path']}, {swept.seconds:.1f} s)")
        if report is not None:
            print(f"now in {report}")
    raise typer.Exit(0 if swept.holds else 1)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on the error stream; none when that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress as Bar

    with Bar(console=console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=None)
        yield lambda read, longest: bar.update(
            shown, total=longest, completed=read, description=f"length {read:,} of {longest:,}"
        )

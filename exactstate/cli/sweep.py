"""`exactstate sweep`: the length sweep of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._errors import Interrupted
from exactstate.cli._output import AsJson, print_json, print_text, progress

MAX_LENGTH, MAX_BATCH = 1 << 40, 1 << 20
"""Limits of the options; 2^40 symbols take days."""


def sweep(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, from `exactstate train`.")],
    max_length: Annotated[
        int, typer.Option("--max-length", min=1, max=MAX_LENGTH, help="Length of the longest words.")
    ] = 1 << 20,
    batch: Annotated[int, typer.Option(min=1, max=MAX_BATCH, help="Words per length.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the words.")] = 0,
    format: Annotated[
        str, typer.Option(help="float32, float16 or bfloat16; the last two evaluate the network.")
    ] = "float32",
    exact_forward: Annotated[
        bool, typer.Option("--exact-forward", help="Evaluate the network, not the extracted tables.")
    ] = False,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the result row here. Default: sweeps.jsonl of the run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a run on longer and longer words, up to the first length at which it fails.

    An NFSM fails when one word of the batch has a wrong label, a baseline when more than a tenth have one; a task with
    questions is scored by its answers. Exit code 0 when there is no failure, 1 when there is one. An interrupted sweep
    resumes when the command is repeated. The result row is saved in the run, and its report is updated.

    Examples:

        exactstate sweep runs/S3-42-gradient
        exactstate sweep runs/S3-42-gradient --exact-forward --max-length 65536
        exactstate sweep runs/S3-42-mamba-cpu --batch 512 --json
    """
    from exactstate import records
    from exactstate.evaluate import sweep_run
    from exactstate.report import write_report
    from exactstate.train.run_dir import RunDir

    try:
        with progress("length {:,} of {:,}") as watch:
            swept, row = sweep_run(
                run, max_length=max_length, batch=batch, seed=seed, format=format, exact_forward=exact_forward,
                progress=watch,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; repeat the command to resume the sweep of {run}.") from None
    records.append(rows or RunDir(run).sweeps_path, row)
    report = write_report(run) if rows is None else None
    if as_json:
        print_json(row if report is None else {**row, "report": str(report)})
    else:
        print_text(f"{swept.sentence()} ({row['cell']}, {row['format']}, {row['path']}, {swept.seconds:.1f} s)")
        if report is not None:
            print_text(f"report updated: {report}")
    raise typer.Exit(0 if swept.holds else 1)

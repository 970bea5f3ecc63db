"""`detent report`: what a run learned and what is proved about it, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detent.cli._output import AsJson, print_json


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `detent train` left.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to; report.html in the folder if not.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run: one HTML file that needs nothing else, for any browser, screen or paper.

    It tells what was trained, the learning curve, the machine beside its target, every table, the certificate in
    words (checked again on the way), the sweep if there is one, and how to run the machine.

    Examples:

        detent report runs/S3-42-default
        detent report runs/S3-42-default -o s3.html
    """
    from detent.report import write_report

    path = write_report(run, output)
    if as_json:
        print_json({"run": str(run), "file": str(path), "bytes": path.stat().st_size})
    else:
        print(path)

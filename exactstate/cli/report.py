"""`exactstate report`: write the report of a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._output import AsJson, print_json, print_text


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, from `exactstate train`.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: report.html in the run's folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a run: one self-contained HTML file, for any browser and for print.

    It has the configuration, training curves, the machine beside its target, every transition table, the certificate
    in sentences (checked on the way), the length sweep if there is one, and how to run the machine.

    Examples:

        exactstate report runs/S3-42-gradient
        exactstate report runs/S3-42-gradient -o s3.html
    """
    from exactstate.report import write_report

    path = write_report(run, output)
    if as_json:
        print_json({"run": str(run), "file": str(path), "bytes": path.stat().st_size})
    else:
        print_text(path)

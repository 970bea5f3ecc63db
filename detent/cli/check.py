"""`detent check`: check certificates, without the network and without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from detent.cli._output import AsJson, print_json, with_progress
from detent.errors import BrokenFile


def check(
    files: Annotated[list[Path], typer.Argument(metavar="CERTIFICATE...", help="Certificates that detent wrote.")],
    as_json: AsJson = False,
) -> None:
    """Check certificates: the hash, every transition, every output, margins against rounding errors.

    Exit code 0 when all are valid, 1 when one is not (with the reason), 2 when a file is not a certificate.

    Examples:

        detent check runs/S3-42-gradient/certificate.json
        detent check runs/S3-42-gradient/certificate.json --json
        detent check results/certificates/*.json
    """
    from detent.certify.check import check as check_content
    from detent.certify.check import row_of, verdict_of

    contents = [_read(file) for file in files]
    results = [
        (file, content, check_content(content))
        for file, content in with_progress(list(zip(files, contents, strict=True)), name=lambda one: one[0].name)
    ]
    if as_json:
        print_json([row_of(*result) for result in results])
    else:
        print("\n\n".join(verdict_of(*result) for result in results))
    raise typer.Exit(0 if all(report for _, _, report in results) else 1)


def _read(file: Path) -> dict[str, Any]:
    from detent.certify.check import Unreadable, read

    try:
        return read(file)
    except Unreadable as error:
        raise BrokenFile(file, error.reason, error.line) from None

"""`detent check`: check certificates, without the network and without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli._output import AsJson, print_json, with_progress
from detent.records import Row

if TYPE_CHECKING:
    from detent.certify import Report


def check(
    files: Annotated[list[Path], typer.Argument(metavar="CERTIFICATE...", help="Certificates that detent wrote.")],
    as_json: AsJson = False,
) -> None:
    """Check certificates: the hash, every transition, every output, margins against rounding errors.

    Exit code 0 when all are valid, 1 when one is not (with the reason), 2 when a file is not a certificate.

    Examples:

        detent check runs/S3-42-default/certificate.json
        detent check runs/S3-42-default/certificate.json --json
        detent check results/certificates/*.json
    """
    from detent.certify.certificate import read_content
    from detent.certify.check import check as check_content

    contents = [read_content(file) for file in files]
    results = [
        (file, content, check_content(content))
        for file, content in with_progress(list(zip(files, contents, strict=True)), name=lambda one: one[0].name)
    ]
    if as_json:
        print_json([_row(file, content, report) for file, content, report in results])
    else:
        print("\n\n".join(_text(file, content, report) for file, content, report in results))
    raise typer.Exit(0 if all(report for _, _, report in results) else 1)


def _row(file: Path, content: dict[str, Any], report: Report) -> Row:
    keys = ("name", "weights", "counts", "proved", "sha256")
    return {"file": str(file), "valid": bool(report), "findings": list(report.findings)} | (
        {key: content[key] for key in keys} if report else {}
    )


def _text(file: Path, content: dict[str, Any], report: Report) -> str:
    from detent.certify.certificate import summary

    if not report:
        return "\n  ".join([f"{file}: not valid", *report.findings])
    return "\n  ".join([f"{file}: valid", *summary(content).splitlines()])

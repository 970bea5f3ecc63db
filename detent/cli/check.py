"""`detent check`: check certificates again, without the model, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli._output import AsJson, print_json, with_progress

if TYPE_CHECKING:
    from detent.certify import Report


def check(
    files: Annotated[list[Path], typer.Argument(metavar="CERTIFICATE...", help="Files that detent wrote.")],
    as_json: AsJson = False,
) -> None:
    """Check certificates again: the seal, every step of the machine, every read-out, margins against rounding.

    Exit code 0 when all are valid, 1 when one is refused (with the reason), 2 when a file is no certificate.

    Examples:

        detent check runs/S3-42-default/certificate.json
        detent check runs/S3-42-default/certificate.json --json
        detent check results/certificates/*.json
    """
    from detent.certify.certificate import read_content
    from detent.certify.check import check as check_content

    contents = [read_content(file) for file in files]
    found = [
        (file, content, check_content(content))
        for file, content in with_progress(list(zip(files, contents, strict=True)), name=lambda one: one[0].name)
    ]
    if as_json:
        print_json([_row(file, content, report) for file, content, report in found])
    else:
        print("\n\n".join(_words(file, content, report) for file, content, report in found))
    raise typer.Exit(0 if all(report for _, _, report in found) else 1)


def _row(file: Path, content: dict[str, Any], report: Report) -> dict[str, Any]:
    told = ("name", "weights", "counts", "proved", "sha256")
    return {"file": str(file), "valid": bool(report), "findings": list(report.findings)} | (
        {key: content[key] for key in told} if report else {}
    )


def _words(file: Path, content: dict[str, Any], report: Report) -> str:
    from detent.certify.certificate import summary

    if not report:
        return "\n  ".join([f"{file}: refused", *report.findings])
    return "\n  ".join([f"{file}: valid", *summary(content).splitlines()])

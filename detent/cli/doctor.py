"""`detent doctor`: what is installed, which backends work here and why the others do not, and how fast they are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from detent.cli.output import AsJson, print_json, show


def doctor(
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Whether to time the backends.")] = True,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which backends are available and why not, and how fast they are here.

    The measurement takes a few seconds. Times are the fastest of several turns; ratios are to the slowest.
    Exit code 0 when the compiled kernels work, 1 when everything works but slower, and the remedy is told.

    Examples:

        detent doctor
        detent doctor --no-measure --json
    """
    from detent.cli.doctoring import backends, packages, programs, speeds

    found: dict[str, Any] = {"packages": packages(), "backends": backends(), "programs": programs()}
    if measure:
        found["speeds"] = speeds([one["name"] for one in found["backends"] if one["available"]])
    if as_json:
        print_json(found)
    else:
        _tell(found)
    raise typer.Exit(0 if all(one["available"] for one in found["backends"] if one["wanted"]) else 1)


def _tell(found: dict[str, Any]) -> None:
    _table("Packages", [(name, version or "not installed") for name, version in found["packages"].items()])
    _table("Backends", [(one["name"], one["why_not"] or one["about"]) for one in found["backends"]])
    _table("Programs", [(one["name"], one["version"] or one["what_for"]) for one in found["programs"]])
    for measured in found.get("speeds", []):
        rows = [(row["name"], f"{row['milliseconds']:10.3f} ms   x {row['ratio']:.1f}") for row in measured["rows"]]
        _table(measured["what"], rows)


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    show(Text(title, style="bold"), table)

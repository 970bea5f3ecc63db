"""A report as a text table, as Markdown for `reports/`, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import Report, three_digits

HEADER = ("case", "method", "calls", "median", "rate", "ratio")


def as_text(report: Report) -> str:
    """A table in columns, the targets, and the notes."""
    rows = [HEADER, *_cells(report)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
    return "\n".join([report.title, "", *lines, "", *_verdicts(report), *report.notes]) + "\n"


def as_markdown(report: Report, stamp: dict[str, Any]) -> str:
    """The same as a section of a dated report: machine, versions and command first."""
    machine, versions = stamp["machine"], stamp["versions"]
    lines = [
        f"## {stamp['date']}: {report.title}",
        "",
        f"`{stamp['command']}` on {machine['cpu']}, {machine['cores']} cores, {machine['system']}; "
        + ", ".join(f"{name} {version}" for name, version in versions.items()),
        "",
        f"| {' | '.join(HEADER)} |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in _cells(report)),
        "",
        *(f"- {line}" for line in [*_verdicts(report), *report.notes]),
    ]
    return "\n".join(lines) + "\n\n"


def as_data(report: Report, stamp: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": report.title,
        "rows": report.rows(),
        "targets": [{**asdict(target), "met": target.met} for target in report.targets],
        "equal": report.checks,
        "notes": report.notes,
        **stamp,
    }


def append(folder: Path, name: str, report: Report, stamp: dict[str, Any]) -> Path:
    """Add the section to the report of this benchmark, machine and day."""
    cpu = re.sub(r"[^a-z0-9]+", "-", stamp["machine"]["cpu"].lower()).strip("-")
    path = folder / f"{name}_{cpu}-{stamp['machine']['cores']}-cores_{stamp['date'][:10]}.md"
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(as_markdown(report, stamp))
    return path


def _cells(report: Report) -> Iterable[tuple[str, ...]]:
    for timing in report.timings:
        yield (
            timing.case, timing.method, str(timing.calls), _time(timing.seconds),
            f"{_short(timing.rate)} {timing.unit}/s", f"{three_digits(timing.ratio)}x",
        )  # fmt: skip


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    padded = zip(row, widths, strict=True)
    return [cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(padded)]


def _verdicts(report: Report) -> list[str]:
    equal = [f"equal before timing: {check}" for check in report.checks]
    return [*equal, *(f"{'met' if target.met else 'MISSED'}: {target.sentence()}" for target in report.targets)]


def _time(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{three_digits(seconds * factor)} {unit}"
    return f"{three_digits(seconds * 1e9)} ns"


def _short(rate: float) -> str:
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{three_digits(rate / factor)} {letter}"
    return three_digits(rate)

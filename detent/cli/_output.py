"""A line on the error stream that says how far training is; nothing when that is not a terminal."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Annotated, Any, TypeVar

import typer

# -- What verbs share when they speak: rich on a terminal, plain and wide in a pipe, JSON for programs.

Item = TypeVar("Item")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

PIPE_WIDTH = 200
"""Columns of a table that no terminal limits."""


def show(*parts: Any) -> None:
    """Print on standard output; in a pipe without the blanks that fill up lines."""
    out = console()
    if out.is_terminal:
        out.print(*parts)
        return
    with out.capture() as captured:
        out.print(*parts)
    print(*(line.rstrip() for line in captured.get().splitlines()), sep="\n")


def console(*, stderr: bool = False) -> Any:
    """Where to print: as wide as the terminal, or wide enough when there is none."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def with_progress(items: Sequence[Item], *, name: Callable[[Item], str]) -> Iterator[Item]:
    """The items, with a bar on the error stream once it has taken a second; none when that is not a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from threading import Timer

    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=len(items), visible=False)
        after_a_second = Timer(1, bar.update, (shown,), {"visible": True})
        after_a_second.start()
        try:
            for item in items:
                bar.update(shown, description=name(item))
                yield item
                bar.advance(shown)
        finally:
            after_a_second.cancel()


SHOWN = {"loss": "loss", "first_error": "first error", "accuracy": "accuracy", "table_margin": "margins",
         "read_margin": "and"}  # fmt: skip


class Live:
    """Shows the last row of the history, and how long the phase may still take.

    `longest` says how many steps each phase takes at most; most end earlier.
    """

    def __init__(self, longest: dict[str, int]) -> None:
        self.longest, self.phase, self.begun = longest, "", (0, 0.0)
        self.status = console(stderr=True).status("looking at the words") if sys.stderr.isatty() else None

    def __enter__(self) -> Live:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, row: dict[str, Any]) -> None:
        if self.status is not None:
            self.status.update(self.line(row, time.monotonic()))

    def line(self, row: dict[str, Any], now: float) -> str:
        """What is shown of a row at this moment."""
        step, most = row["step"], self.longest.get(row["phase"])
        if row["phase"] != self.phase:
            self.phase, self.begun = row["phase"], (step, now)
        if row["phase"] == "released" and step == most:
            return "reading the machine out, bounding its rounding"
        told = ", ".join(f"{name} {row[key]:.3g}" for key, name in SHOWN.items() if isinstance(row.get(key), float))
        again = f"restart {row['attempt']}, " if row.get("attempt") else ""
        of, left = "" if most is None else f"/{most:,}", ""
        if most is not None and step > self.begun[0]:
            each = (now - self.begun[1]) / (step - self.begun[0])
            left = f", at most {duration((most - step) * each)} left"
        return f"{again}{row['phase']}, step {step:,}{of}: {told.replace(', and', ' and')}{left}"


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"

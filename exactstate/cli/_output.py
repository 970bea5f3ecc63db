"""Output of the verbs: rich on a terminal, plain and wide in a pipe, JSON for programs, progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Annotated, Any, TypeVar

import typer

from exactstate._text import printable
from exactstate.records import Row

Item = TypeVar("Item")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

PIPE_WIDTH = 200
"""Columns where no terminal limits them."""
MEASURES = {
    "loss": "loss", "first_error": "first error", "accuracy": "accuracy", "table_margin": "table margin",
    "read_margin": "read-out margin",
}  # fmt: skip
"""Entries of a history row that the status line shows."""


def show(*parts: Any) -> None:
    """Print on standard output; in a pipe without trailing blanks."""
    out, safe = console(), [_Escaped(part) for part in parts]
    if out.is_terminal:
        out.print(*safe)
        return
    with out.capture() as captured:
        out.print(*safe)
    print(*(line.rstrip() for line in captured.get().splitlines()), sep="\n")


def facts(rows: Iterable[tuple[str, str]]) -> Any:
    """A table of names and what is said of them."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


class _Escaped:
    """What rich shows of something, with control characters in its text escaped; styles stay."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for segment in console.render(self.part, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(*, stderr: bool = False) -> Any:
    """A rich console, as wide as the terminal, or PIPE_WIDTH where there is none."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, highlight=False)


def print_json(value: object) -> None:
    """Print JSON: letters as they are, characters that could act on a terminal escaped, as JSON allows."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def print_text(*lines: object) -> None:
    """Print lines of text; control characters in them are escaped."""
    print(printable("\n".join(map(str, lines))))


@contextmanager
def progress(line: str) -> Iterator[Callable[..., None] | None]:
    """A status line on standard error after one second, such as "{:,} traces"; None when that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from threading import Timer

    status = console(stderr=True).status("")
    after_a_second = Timer(1, status.start)
    after_a_second.start()
    try:
        yield lambda *counts: status.update(line.format(*counts))
    finally:
        after_a_second.cancel()
        status.stop()


def with_progress(items: Sequence[Item], *, name: Callable[[Item], str]) -> Iterator[Item]:
    """The items; each one's name is the status line while it is worked on."""
    with progress("{}") as watch:
        for item in items:
            if watch is not None:
                watch(name(item))
            yield item


class TrainingStatus:
    """A status line on standard error with the last row of the history; nothing when that is not a terminal.

    `max_steps` has the largest number of steps of each phase; most phases end earlier.
    """

    def __init__(self, max_steps: dict[str, int]) -> None:
        self.max_steps, self.phase, self.began = max_steps, "", (0, 0.0)
        self.status = console(stderr=True).status("reading training sequences") if sys.stderr.isatty() else None

    def __enter__(self) -> TrainingStatus:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.status is not None:
            self.status.stop()

    def __call__(self, row: Row) -> None:
        if self.status is not None:
            self.status.update(self.line(row, time.monotonic()))

    def line(self, row: Row, now: float) -> str:
        """The status line for a row at a time."""
        step, most = row["step"], self.max_steps.get(row["phase"])
        if row["phase"] != self.phase:
            self.phase, self.began = row["phase"], (step, now)
        measures = ", ".join(
            f"{name} {row[key]:.3g}" for key, name in MEASURES.items() if isinstance(row.get(key), float)
        )
        attempt = f"restart {row['attempt']}, " if row.get("attempt") else ""
        of, left = "" if most is None else f"/{most:,}", ""
        if most is not None and step > self.began[0]:
            seconds_per_step = (now - self.began[1]) / (step - self.began[0])
            left = f", at most {format_duration((most - step) * seconds_per_step)} left"
        return f"{attempt}{row['phase']}, step {step:,}{of}: {measures}{left}"


def format_duration(seconds: float) -> str:
    """Seconds, minutes, hours or days, whichever gives a small number."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{hours} h" if hours < 48 else f"{round(hours / 24)} days"

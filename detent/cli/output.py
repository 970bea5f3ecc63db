"""What verbs share when they speak: rich on a terminal, plain and wide in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

import typer

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

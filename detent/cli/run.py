"""`detent run`: a machine as a Unix filter."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from detent.cli._output import AsJson
from detent.errors import BrokenFile, InvalidWord

if TYPE_CHECKING:
    from detent.runtime.filter import Filter

CHUNK = 1 << 20


def run_machine(
    machine: Annotated[
        Path, typer.Argument(metavar="MACHINE", show_default=False, help="A machine file: .json, .detent, .dot, ...")
    ],
    text: Annotated[
        Path | None, typer.Argument(metavar="INPUT", show_default=False, help="A text; standard input without it.")
    ] = None,
    each_line: Annotated[bool, typer.Option("--each-line", "-l", help="Begin anew at every line.")] = False,
    final: Annotated[
        bool, typer.Option("--final", "-f", help="Print only what is said last: of all, or of every line with -l.")
    ] = False,
    states: Annotated[bool, typer.Option("--states", "-s", help="Print states instead of outputs.")] = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", metavar="SYMBOL", help="Print only what is said at this symbol.")
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Pass over symbols that the machine does not know.")
    ] = False,
    strategy: Annotated[str, typer.Option(help="How to run it; auto picks the fastest way.")] = "auto",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Feed symbols to a machine and print what it says.

    Symbols are separated by white space; where every symbol is one letter they need no blanks, and where they are
    words, 'Key?' is read as 'key ?'. One line of output answers one line of input, unless nothing is said to it. Memory
    does not grow with the length of the text.

    Examples:

        echo "(0 1) (1 2)" | detent run runs/S3-42-default/machine.json
        yes "(0 1)" | head -1000000 | detent run s3.json --final --json
        echo "Bob has the key. Who has the key?" | detent run tso3.json
        detent run tso3.json stories.txt --each-line --final
        tail -f events.log | detent run mine.dot --states
    """
    from detent.runtime import load
    from detent.runtime.filter import Filter

    work = Filter(
        machine=load(machine), each_line=each_line, last=final, states=states, at=tuple(at or ()),
        unknown="skip" if skip_unknown else "error", strategy=strategy, form="json" if as_json else "text",
    )  # fmt: skip
    source = sys.stdin.fileno() if text is None else _opened(text)
    try:
        _pump(source, work)
    finally:
        if text is not None:
            os.close(source)
    if work.reader.skipped:
        print(f"detent: note: {work.reader.skipped} unknown symbols were passed over.", file=sys.stderr)


def _opened(text: Path) -> int:
    if text.is_dir():
        raise BrokenFile(text, "this is a folder; wanted a text.")
    return os.open(text, os.O_RDONLY)


def _pump(source: int, work: Filter) -> None:
    """Answer what is read, as soon as it is read."""
    out = sys.stdout.buffer
    reading = True
    while reading:
        chunk = os.read(source, CHUNK)  # what there is, not a full chunk
        reading = bool(chunk)
        out.write(work.feed(chunk) if reading else work.finish())
        try:
            work.reader.refuse_unknown()
        except InvalidWord:
            out.write(work.break_off())
            raise
        finally:
            out.flush()

"""`detent run`: a machine as a Unix filter, symbols in, outputs out."""

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
"""Bytes read at a time, at most."""


def run(
    machine: Annotated[
        Path, typer.Argument(metavar="MACHINE", show_default=False, help="A machine file: .json, .detent, .dot, ...")
    ],
    text: Annotated[
        Path | None, typer.Argument(metavar="INPUT", show_default=False, help="A text file. Default: standard input.")
    ] = None,
    each_line: Annotated[bool, typer.Option("--each-line", "-l", help="Reset the machine at every line.")] = False,
    final: Annotated[
        bool, typer.Option("--final", "-f", help="Print only the last output: of all, or of every line with -l.")
    ] = False,
    states: Annotated[bool, typer.Option("--states", "-s", help="Print states instead of outputs.")] = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", metavar="SYMBOL", help="Print only the outputs at this symbol.")
    ] = None,
    skip_unknown: Annotated[bool, typer.Option("--skip-unknown", help="Skip unknown symbols.")] = False,
    strategy: Annotated[str, typer.Option(help="How to run the machine; auto selects the fastest way.")] = "auto",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Feed symbols to a machine and print its outputs.

    Symbols are separated by white space. Where every symbol is a single character they need no blanks; where symbols
    are words, 'Key?' is read as 'key ?'. A line of input gives a line of output, unless it has no outputs. Memory does
    not grow with the length of the text.

    Examples:

        echo "(0 1) (1 2)" | detent run runs/S3-42-gradient/machine.json
        yes "(0 1)" | head -1000000 | detent run s3.json --final --json
        echo "Bob has the key. Who has the key?" | detent run tso3.json
        detent run tso3.json stories.txt --each-line --final
        tail -f events.log | detent run mine.dot --states
    """
    from detent.runtime import load
    from detent.runtime.filter import Filter

    filter = Filter(
        machine=load(machine), each_line=each_line, last=final, states=states, at=tuple(at or ()),
        unknown="skip" if skip_unknown else "error", strategy=strategy, form="json" if as_json else "text",
    )  # fmt: skip
    source = sys.stdin.fileno() if text is None else _open(text)
    try:
        _pump(source, filter)
    finally:
        if text is not None:
            os.close(source)
    if filter.tokenizer.skipped:
        print(f"detent: note: {filter.tokenizer.skipped} unknown symbols were skipped.", file=sys.stderr)


def _open(text: Path) -> int:
    if text.is_dir():
        raise BrokenFile(text, "this is a folder; expected a text file.")
    return os.open(text, os.O_RDONLY)


def _pump(source: int, filter: Filter) -> None:
    """Write the outputs of what is read as soon as it is read."""
    out = sys.stdout.buffer
    reading = True
    while reading:
        chunk = os.read(source, CHUNK)  # what is available now, not a full chunk
        reading = bool(chunk)
        out.write(filter.feed(chunk) if reading else filter.finish())
        try:
            filter.tokenizer.refuse_unknown()
        except InvalidWord:
            out.write(filter.abort())
            raise
        finally:
            out.flush()

"""`exactstate run`: a machine as a Unix filter, symbols in, outputs out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactstate.cli._cluster import Cluster, Partition, Workers
from exactstate.cli._output import AsJson, progress
from exactstate.errors import BrokenFile, InvalidConfig, InvalidWord

if TYPE_CHECKING:
    from exactstate.runtime import Machine
    from exactstate.runtime.filter import Filter

CHUNK = 1 << 20
"""Bytes read at a time, at most."""


def run(
    machine: Annotated[
        Path, typer.Argument(metavar="MACHINE", show_default=False, help="A machine: .json, .exactstate, .dot, ...")
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILES]...", show_default=False, help="Read as one text. Default: standard input."),
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
    cluster: Cluster = None,
    workers: Workers = None,
    partition: Partition = 32,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Feed symbols to a machine and print its outputs.

    Symbols are separated by white space. Where every symbol is a single character they need no blanks; where symbols
    are words, 'Key?' is read as 'key ?'. A line of input gives a line of output, unless it has no outputs. Memory does
    not grow with the length of the text.

    With --cluster the files are cut into partitions, whose tables are composed in parallel by Ray; the output is the
    same, byte for byte. Every machine of the cluster needs exactstate and the files at the same path.

    Examples:

        echo "(0 1) (1 2)" | exactstate run runs/S3-42-gradient/machine.json
        yes "(0 1)" | head -1000000 | exactstate run s3.json --final --json
        echo "Bob has the key. Who has the key?" | exactstate run tso3.json
        exactstate run tso3.json stories.txt --each-line --final
        tail -f events.log | exactstate run mine.dot --states
        exactstate run mine.dot *.log --cluster local --workers 2
    """
    from exactstate.runtime import load
    from exactstate.runtime.filter import Filter

    options: dict[str, Any] = {
        "each_line": each_line, "last": final, "states": states, "at": tuple(at or ()), "strategy": strategy,
        "unknown": "skip" if skip_unknown else "error", "form": "json" if as_json else "text",
        "escape": sys.stdout.isatty(),
    }  # fmt: skip
    if cluster is not None:
        filter = _on_cluster(load(machine), files or [], cluster, workers, partition << 20, options)
    else:
        filter = Filter(machine=load(machine), **options)
        sources = [sys.stdin.fileno()] if not files else map(_open, files)
        for number, source in enumerate(sources, 1):
            try:
                _pump(source, filter, is_last=number == len(files or [None]))
            finally:
                if files:
                    os.close(source)
    if filter.tokenizer.skipped:
        print(f"exactstate: note: {filter.tokenizer.skipped} unknown symbols were skipped.", file=sys.stderr)


def _open(text: Path) -> int:
    if text.is_dir():
        raise BrokenFile(text, "this is a folder; expected a text file.")
    return os.open(text, os.O_RDONLY)


def _on_cluster(
    machine: Machine, files: list[Path], address: str, workers: int | None, partition: int, options: dict[str, Any]
) -> Filter:  # fmt: skip
    from exactstate.runtime.cluster import run_files

    if not files:
        raise InvalidConfig("a cluster reads files, not standard input; name one or more.")
    out = sys.stdout.buffer
    with progress("bytes {:,} of {:,}") as watch:
        try:
            return run_files(
                machine, files, out.write, address=address, workers=workers, partition=partition, progress=watch,
                **options,
            )  # fmt: skip
        finally:
            out.flush()


def _pump(source: int, filter: Filter, *, is_last: bool) -> None:
    """Write the outputs of what is read as soon as it is read."""
    out = sys.stdout.buffer
    reading = True
    while reading:
        chunk = os.read(source, CHUNK)  # what is available now, not a full chunk
        reading = bool(chunk)
        if reading or is_last:
            out.write(filter.feed(chunk) if reading else filter.finish())
        try:
            filter.tokenizer.refuse_unknown()
        except InvalidWord:
            out.write(filter.abort())
            raise
        finally:
            out.flush()

"""`exactstate conform`: check a log against a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate._text import one_line
from exactstate.cli._cluster import Cluster, Partition, Workers
from exactstate.cli._machines import Missing, read_any
from exactstate.cli._output import AsJson, print_json, print_text, progress


def conform(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A machine file, a task, or the folder of a run.")],
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="JSON lines, CSV, text or Abbadingo; see exactstate learn.")
    ],
    format: Annotated[str | None, typer.Option(help="jsonl, csv, text or abbadingo. Default: by the file.")] = None,
    separator: Annotated[str | None, typer.Option(help="Between the tokens of a line, for names with blanks.")] = None,
    missing: Missing = "refuse",
    transitions: Annotated[
        bool, typer.Option("--transitions", help="List every transition with how often the log takes it.")
    ] = False,
    cluster: Cluster = None,
    workers: Workers = None,
    partition: Partition = 32,
    as_json: AsJson = False,
) -> None:
    """Check every trace of a log against a machine: the first line that departs, with what was expected and seen.

    The log is read as a stream. The summary says how many transitions it covers. Exit code 0 when the log conforms, 1
    when it departs. With --cluster parts of the log are checked in parallel by Ray, with the same result.

    Examples:

        exactstate conform machine.dot traces.jsonl
        exactstate conform machine.json today.csv --transitions
        exactstate conform machine.dot blanks.txt --separator ";"
        exactstate conform machine.dot traces.jsonl --cluster local --workers 2
    """
    from exactstate.learning.conformance import conform as check
    from exactstate.learning.logs import read_log

    target = read_any(machine, missing)
    with progress("{:,} traces, {:,} symbols") as watch:
        if cluster is None:
            found = check(target, read_log(log, format=format, separator=separator), watch=watch)
        else:
            from exactstate.learning.cluster import conform_on_cluster

            found = conform_on_cluster(
                target, log, format=format, separator=separator, address=cluster, workers=workers,
                partition=partition << 20, watch=watch,
            )  # fmt: skip
    if as_json:
        first = found.first
        print_json({
            "machine": machine, "log": str(log), "conforms": bool(found), "traces": found.traces,
            "symbols": found.symbols, "departing": found.departing, "coverage": found.coverage,
            "first": None if first is None else {
                "line": first.line, "position": first.position, "inputs": list(first.inputs), "state": first.state,
                "expected": first.expected, "seen": first.seen,
            },
            "transitions": found.rows() if transitions else None,
        })  # fmt: skip
    else:
        print_text(found.explain())
        if transitions:
            for row in found.rows():
                count = row["count"] or "never"
                before, after = one_line(str(row["state"])), one_line(str(row["target"]))
                print_text(f"  {before} on {row['symbol']!r}: {row['output']!r} to {after}, {count}")
    raise typer.Exit(0 if found else 1)

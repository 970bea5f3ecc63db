"""`exactstate suite`: test words for an implementation of a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._machines import Missing, read_any
from exactstate.cli._output import AsJson, print_json, print_text

METHODS = ("w", "wp", "hsi")


def suite(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A machine file, a task, or the folder of a run.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the words here, as JSON lines.")
    ] = None,
    method: Annotated[str, typer.Option(help="w, wp or hsi.")] = "wp",
    extra_states: Annotated[
        int, typer.Option(min=0, help="Find errors of implementations with so many states more.")
    ] = 0,
    missing: Missing = "refuse",
    as_json: AsJson = False,
) -> None:
    """Test words with the right outputs: an implementation that passes all of them is the machine.

    That holds for implementations with at most as many states as the minimized machine, and --extra-states more. A line
    is a trace, as `exactstate learn` and `exactstate conform` read it.

    Examples:

        exactstate suite machine.dot -o tests.jsonl
        exactstate suite machine.dot --extra-states 1 -o tests.jsonl
        exactstate suite machine.dot --json
    """
    from exactstate.learning.suites import conformance_suite
    from exactstate.records import write_atomically

    found = conformance_suite(read_any(machine, missing), method=method, extra_states=extra_states)  # type: ignore[arg-type]
    lines = [{"inputs": word, "outputs": outputs} for word, outputs in found.named()]
    if output is not None:
        write_atomically(output, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    if as_json:
        states, transitions = found.coverage()
        print_json({
            "machine": machine, "method": found.method, "extra_states": extra_states, "words": len(found.words),
            "symbols": found.symbols, "states": found.machine.n_states, "states_covered": states,
            "transitions_covered": transitions, "file": None if output is None else str(output),
        })  # fmt: skip
        return
    if output is None:
        for line in lines:
            print_text(json.dumps(line, ensure_ascii=False))
    else:
        print_text(found.explain(), f"written to {output}")

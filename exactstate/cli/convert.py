"""`exactstate convert`: a machine file as another format, a program or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._machines import Missing, read_any
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import unknown

MACHINES = (".json", ".exactstate", ".dot", ".gv")
PROGRAMS = (".c", ".js", ".mjs", ".onnx")
PICTURES = (".svg", ".png", ".pdf")


def convert(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A machine file, a task, or the folder of a run.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help=f"Its ending: {', '.join(MACHINES + PROGRAMS + PICTURES)}."
        ),
    ],
    missing: Missing = "refuse",
    minimal: Annotated[bool, typer.Option("--minimal", help="Merge equivalent states first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a machine in another format: a machine file, a program that does not need exactstate, or a picture.

    The ending of the file selects the format. A file with missing transitions is refused unless --missing completes it.

    Examples:

        exactstate convert machine.dot -o machine.json
        exactstate convert machine.dot -o machine.c
        exactstate convert partial.dot --missing sink -o machine.js
        exactstate convert machine.json -o machine.svg
    """
    from exactstate.runtime import Machine

    suffix = output.suffix.lower()
    if suffix not in MACHINES + PROGRAMS + PICTURES:
        raise unknown("ending", output.suffix or str(output), MACHINES + PROGRAMS + PICTURES)
    automaton = read_any(machine, missing)
    if minimal:
        from exactstate.automata import minimize

        automaton = minimize(automaton)  # type: ignore[type-var]
    notes: list[str] = []
    if suffix in PICTURES:
        from exactstate.automata.draw import draw

        notes = draw(automaton, output, title=Path(machine).stem) or []
    elif suffix in PROGRAMS:
        Machine.of(automaton).export(output)
    else:
        Machine.of(automaton).save(output)
    if as_json:
        print_json({
            "machine": machine, "file": str(output), "kind": type(automaton).__name__.lower(),
            "states": automaton.n_states, "symbols": list(automaton.symbols), "outputs": list(automaton.outputs),
        })  # fmt: skip
    else:
        print_text(*notes, f"{automaton.n_states} states, {automaton.n_symbols} symbols, written to {output}")

"""`exactstate convert`: a machine file as another format, a program, a grammar or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.cli._machines import Missing, read_any
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import InvalidConfig, unknown

if TYPE_CHECKING:
    from exactstate.learning.monitor import Monitor

MACHINES = (".json", ".exactstate", ".dot", ".gv")
PROGRAMS = (".c", ".js", ".mjs", ".onnx")
GRAMMARS = (".ebnf", ".gbnf", ".lark")
PICTURES = (".svg", ".png", ".pdf")
ENDINGS = MACHINES + PROGRAMS + GRAMMARS + PICTURES


def convert(
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A machine file, a task, or the folder of a run.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help=f"Its ending: {', '.join(ENDINGS)}."),
    ],
    missing: Missing = "refuse",
    minimal: Annotated[bool, typer.Option("--minimal", help="Merge equivalent states first.")] = False,
    accept: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="For a grammar: outputs after which a word may end.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="For a grammar: what stands between symbols.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a machine in another format: a machine file, a program without exactstate, a grammar, or a picture.

    The ending of the file selects the format. A file with missing transitions is refused unless --missing completes it.
    A grammar (EBNF and GBNF for xgrammar and llama.cpp, Lark for llguidance) has the words that a DFA accepts, or those
    that end with an output of --accept. It is read back and proved equivalent before it is written.

    Examples:

        exactstate convert machine.dot -o machine.json
        exactstate convert machine.dot -o machine.c
        exactstate convert partial.dot --missing sink -o machine.js
        exactstate convert machine.json -o machine.svg
        exactstate convert machine.dot --accept on -o calls.lark
        exactstate convert machine.dot --accept on --separator , -o calls.gbnf
    """
    from exactstate.runtime import Machine

    suffix = output.suffix.lower()
    if suffix not in ENDINGS:
        raise unknown("ending", output.suffix or str(output), ENDINGS)
    if suffix not in GRAMMARS and (accept is not None or separator is not None):
        raise InvalidConfig("--accept and --separator are for grammars: .ebnf, .gbnf, .lark.")
    automaton = read_any(machine, missing)
    monitor = _monitor(machine)
    if monitor is not None and suffix in GRAMMARS + PICTURES:
        automaton = monitor.language()  # the traces that it allows
    if minimal:
        from exactstate.automata import minimize

        automaton = minimize(automaton)  # type: ignore[type-var]
    notes: list[str] = []
    if suffix in PICTURES:
        from exactstate.automata.draw import draw

        notes = draw(automaton, output, title=Path(machine).stem) or []
    elif suffix in GRAMMARS:
        from exactstate.records import write_atomically
        from exactstate.runtime.export.grammar import DIALECTS, verified_grammar

        names = None if accept is None else [name.strip() for name in accept.split(",")]
        between = None if separator is None else separator.replace("\\n", "\n").replace("\\t", "\t")
        text, automaton = verified_grammar(automaton, DIALECTS[suffix], accept=names, separator=between)
        write_atomically(output, text)
        notes = ["the grammar has the language of the machine: read back and compared on words of every length"]
    elif suffix in PROGRAMS:
        about = {} if monitor is None else monitor.to_machine().about
        Machine.of(automaton, about=about).export(output)
    else:
        Machine.of(automaton).save(output)
    if as_json:
        print_json({
            "machine": machine, "file": str(output), "kind": type(automaton).__name__.lower(),
            "states": automaton.n_states, "symbols": list(automaton.symbols), "outputs": list(automaton.outputs),
        })  # fmt: skip
    else:
        print_text(*notes, f"{automaton.n_states} states, {automaton.n_symbols} symbols, written to {output}")


def _monitor(name: str) -> Monitor | None:
    """The monitor that a file holds, if it does."""
    from exactstate.learning.monitor import Monitor
    from exactstate.runtime import load

    if Path(name).suffix.lower() not in (".json", ".exactstate") or not Path(name).is_file():
        return None
    machine = load(name)
    return Monitor.of(machine, name) if "monitor" in machine.about else None

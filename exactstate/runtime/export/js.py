"""A machine as one JavaScript module, for browsers and Node: tables, and functions over them; see machine.mjs.in."""

from __future__ import annotations

import json
from collections.abc import Sequence

from exactstate._types import Ints
from exactstate.runtime.export.template import filled, other_symbol
from exactstate.runtime.machine import Machine


def to_javascript(machine: Machine) -> str:
    """The machine as an ES module."""
    other = other_symbol(machine)
    return filled(
        "machine.mjs.in",
        symbols=_names(machine.symbols), states=_names(machine.states), output_names=_names(machine.output_names),
        n_symbols=machine.n_symbols, n_states=machine.n_states, n_outputs=len(machine.output_names),
        start=machine.start, next=_table(machine.automaton.tables), table=_table(machine.readout),
        cut="Array.from(word)" if machine.alphabet.by_letter else "cut(word.split(/\\s+/).filter(Boolean))",
        most_words=machine.alphabet.most_words, other="" if other < 0 else f" ?? {other}",
    )  # fmt: skip


def _names(names: Sequence[str]) -> str:
    # ASCII only, and no angle bracket: the module may stand inside an HTML page
    return json.dumps(list(names)).replace("<", "\\u003c").replace(">", "\\u003e")


def _table(table: Ints) -> str:
    kind = {1: "Uint8Array", 2: "Uint16Array", 4: "Uint32Array"}[table.itemsize]
    rows = ",\n  ".join(",".join(map(str, row)) for row in table.tolist())
    return f"{kind}.of(\n  {rows},\n)" if table.size < 1000 else f"new {kind}([\n  {rows},\n])"

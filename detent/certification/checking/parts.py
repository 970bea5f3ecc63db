"""The parts of a certificate, each taken apart and found to be in form: target, grammar, question, layers.

A  symbols     n  states of the target
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from detent.certification.checking.form import Refused, distinct, entries, listed, names, ranged, row, rows, whole

MOST = 1 << 31


@dataclass(frozen=True)
class Layer:
    heads: list[int]
    start: list[int]
    inputs: list[list[int]]
    number_of_input: dict[tuple[int, ...], int]
    windows: list[list[int]]
    number_of_window: dict[tuple[int, ...], int]
    tables: list[list[list[int]]]
    """head, window, index"""


def target_of(value: Any, A: int) -> tuple[list[str], int, list[list[int]], list[str], list[list[int]]]:
    """(states, start, tables, labels, wanted)"""
    by_output = isinstance(value, dict) and value.get("says") == "outputs"
    entries(value, "target", "says", "states", "start", "tables", *(("outputs", "readout") if by_output else ()))
    states = names(value["states"], "target.states")
    n = len(states)
    start = whole(value["start"], "target.start", 0, n)
    tables = rows(value["tables"], "target.tables", A, n, 0, n)
    if by_output:
        outputs = names(value["outputs"], "target.outputs")
        return states, start, tables, outputs, rows(value["readout"], "target.readout", A, n, 0, len(outputs))
    if value["says"] != "states":
        raise Refused(f"target.says is {value['says']!r:.40}; wanted 'states' or 'outputs'.")
    return states, start, tables, states, tables


def grammar_of(value: Any, A: int) -> tuple[int, list[list[int]], list[int]]:
    """(start, tables, refused); without a grammar there is one place, where every symbol may follow."""
    if value is None:
        return 0, [[0]] * A, [0]
    entries(value, "grammar", "places", "start", "tables", "refused")
    count = len(names(value["places"], "grammar.places"))
    start = whole(value["start"], "grammar.start", 0, count)
    tables = rows(value["tables"], "grammar.tables", A, count, 0, count)
    return start, tables, row(value["refused"], "grammar.refused", count, 0, 2)


def question_of(value: Any, A: int, n: int) -> dict[str, Any] | None:
    if value is None:
        return None
    entries(value, "question", "answers", "start", "tables", "asked", "right")
    answers = names(value["answers"], "question.answers")
    tables = listed(value["tables"], "question.tables", A)
    z = len(listed(tables[0], "question.tables[0]"))
    items = len(listed(listed(value["right"], "question.right", n)[0], "question.right[0]"))
    whole(value["start"], "question.start", 0, z)
    rows(tables, "question.tables", A, z, 0, z)
    rows(value["asked"], "question.asked", A, z, -1, items)
    # one more than there are answers: where none is right
    rows(value["right"], "question.right", n, items, 0, len(answers) + 1)
    return value


def layers_of(value: Any, A: int, reach: int) -> list[Layer]:
    layers: list[Layer] = []
    for number, layer in enumerate(listed(value, "layers")):
        where = f"layers[{number}]"
        entries(layer, where, "heads", "start", "inputs", "windows", "tables")
        heads = row(layer["heads"], f"{where}.heads", None, 1, MOST)
        if not heads:
            raise Refused(f"{where}.heads is empty.")
        start = row(layer["start"], f"{where}.start", len(heads), 0, MOST)
        for h, (k, d) in enumerate(zip(start, heads, strict=True)):
            whole(k, f"{where}.start[{h}]", 0, d)
        below = layers[-1] if layers else None
        inputs = ranged(
            layer["inputs"],
            f"{where}.inputs",
            [(0, A)] if below is None else [(0, len(below.inputs)), *((0, d) for d in below.heads)],
        )
        if not layer["windows"] or not inputs:
            raise Refused(f"{where} has no inputs or no windows.")
        if below is None and inputs != [[symbol] for symbol in range(A)]:
            raise Refused(f"{where}.inputs are not the {A} symbols in order.")
        windows = rows(layer["windows"], f"{where}.windows", None, reach, -1, len(inputs))
        tables = [
            rows(table, f"{where}.tables[{h}]", len(windows), d, -1, d)
            for h, (d, table) in enumerate(
                zip(heads, listed(layer["tables"], f"{where}.tables", len(heads)), strict=True)
            )
        ]
        layers.append(
            Layer(
                heads=heads, start=start, inputs=inputs, number_of_input=distinct(inputs, f"{where}.inputs"),
                windows=windows, number_of_window=distinct(windows, f"{where}.windows"), tables=tables,
            )
        )  # fmt: skip
    if not layers:
        raise Refused("layers is empty.")
    return layers

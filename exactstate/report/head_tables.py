"""Tables of a report: the transition tables of every head with their margins, and one word read step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from exactstate.report.sentences import smallest_margin
from exactstate.runtime import Machine

MAX_COLUMNS, MAX_ROWS, MAX_TABLES = 24, 40, 24
MAX_WINDOWS = 24
"""Rows of a table in a stack, which has a row for every window that is read."""


class HeadTable(NamedTuple):
    """The transition table of one head, as far as it is shown."""

    head: int
    size: int
    start: int
    columns: range
    rows: list[tuple[str, list[tuple[int, float | None, bool]]]]
    """Of every symbol: its name, and for every index where it goes (-1 for an entry that no word uses), the margin, and
    whether that is the smallest of all."""
    omitted: list[str]


def head_tables(content: dict[str, Any]) -> dict[str, Any]:
    """One table per head, from a certificate."""
    if len(content["layers"]) > 1 or content["reach"] > 1:
        return {"layers": [_layer(content, depth) for depth in range(len(content["layers"]))]}
    (layer,), smallest = content["layers"], smallest_margin(content)
    window = {newest[-1]: number for number, newest in enumerate(layer["windows"])}
    tables = []
    for head, d in enumerate(layer["heads"]):
        rows = [layer["tables"][head][window[a]] if a in window else [-1] * d for a in range(len(content["symbols"]))]
        at = (smallest.symbol, smallest.column) if smallest is not None and smallest.head == head else None
        margins = content["margins"]["logits"][0][head]
        tables.append(_table(head, content["symbols"], rows, layer["start"][head], margins=margins, smallest=at))
    return _first_of(tables, with_margins=True)


def machine_tables(machine: Machine) -> dict[str, Any]:
    """One table per head, from a machine file, which has no margins."""
    assert machine.heads is not None
    heads = zip(machine.heads.tables, machine.heads.starts, strict=True)
    tables = [_table(head, machine.symbols, table.tolist(), start) for head, (table, start) in enumerate(heads)]
    return _first_of(tables, with_margins=False)


def _first_of(tables: list[HeadTable], *, with_margins: bool) -> dict[str, Any]:
    omitted = max(len(tables) - MAX_TABLES, 0)
    return {"tables": tables[:MAX_TABLES], "omitted": omitted, "with_margins": with_margins}


def _table(
    head: int, names: Sequence[str], entries: Sequence[Sequence[int]], start: int, *, max_rows: int = MAX_ROWS,
    margins: Sequence[Sequence[float | None]] | None = None, smallest: tuple[str, int] | None = None,
) -> HeadTable:  # fmt: skip
    """`entries[a][k]` is where symbol a sends index k; `smallest` is the symbol and index of the smallest margin."""
    d = len(entries[0])
    columns, rows = range(min(d, MAX_COLUMNS)), range(min(len(names), max_rows))
    cells = [
        (names[a], [(entries[a][k], None if margins is None else margins[a][k], smallest == (names[a], k))
                    for k in columns])
        for a in rows
    ]  # fmt: skip
    counts = ((len(columns), d, "columns"), (len(rows), len(names), "rows"))
    omitted = [f"{shown} of {all_of_them} {what}" for shown, all_of_them, what in counts if shown < all_of_them]
    return HeadTable(head, d, start, columns, cells, omitted)


def _layer(content: dict[str, Any], depth: int) -> dict[str, Any]:
    """A row for every window: the last symbols, in upper layers with the indices of the layer below."""
    layer = content["layers"][depth]
    windows = [" ".join(input_name(content, depth, one) for one in window) for window in layer["windows"]]
    tables = [
        _table(head, windows, layer["tables"][head], layer["start"][head], max_rows=MAX_WINDOWS)
        for head in range(min(len(layer["heads"]), MAX_TABLES))
    ]
    return {"sizes": " ".join(map(str, layer["heads"])), "windows": f"{len(windows):,}", "tables": tables}


def input_name(content: dict[str, Any], depth: int, number: int) -> str:
    """What a layer reads at a step: the symbol, and the indices of the heads below; a dot before the word began."""
    if number < 0:
        return "·"
    source = content["layers"][depth]["inputs"][number]
    if depth == 0:
        return str(content["symbols"][source[0]])
    symbol = input_name(content, depth - 1, source[0])
    return f"{symbol} ({' '.join(map(str, source[1:]))})"


class Step(NamedTuple):
    """What happens at one symbol."""

    symbol: str
    indices: tuple[tuple[int, ...], ...]
    """Of every head of every layer, after the step."""
    state: str
    """Of the target, after the step."""


def steps_of(content: dict[str, Any], word: Sequence[str]) -> list[Step]:
    """The word read by the tables of a certificate, layer by layer from the bottom."""
    layers, target = content["layers"], content["target"]
    input_numbers = [{tuple(row): k for k, row in enumerate(layer["inputs"])} for layer in layers]
    window_numbers = [{tuple(row): k for k, row in enumerate(layer["windows"])} for layer in layers]
    indices = [tuple(layer["start"]) for layer in layers]
    last_inputs: list[tuple[int, ...]] = [(-1,) * (content["reach"] - 1) for _ in layers]
    symbol_numbers = {name: a for a, name in enumerate(content["symbols"])}
    state, steps = target["start"], []
    for symbol in word:
        a = symbol_numbers[symbol]
        source: tuple[int, ...] = (a,)
        for depth, layer in enumerate(layers):
            number = input_numbers[depth][source]
            window = (*last_inputs[depth], number)
            tables = [table[window_numbers[depth][window]] for table in layer["tables"]]
            indices[depth] = tuple(table[k] for table, k in zip(tables, indices[depth], strict=True))
            last_inputs[depth], source = window[1:], (number, *indices[depth])
        state = target["tables"][a][state]
        steps.append(Step(symbol, tuple(indices), target["states"][state]))
    return steps


def step_table(content: dict[str, Any], word: Sequence[str], outputs: Sequence[str]) -> dict[str, Any]:
    """The steps as a table, in a stack with the layers above their heads; `outputs` are those of the machine."""
    steps = steps_of(content, word)
    with_states = any(step.state != output for step, output in zip(steps, outputs, strict=True))
    sizes = [len(layer["heads"]) for layer in content["layers"]]
    titles = ["symbol", "output", *(f"head {head}" for size in sizes for head in range(size))]
    rows = [
        (step.symbol, [output, *(k for layer in step.indices for k in layer), *([step.state] if with_states else [])])
        for step, output in zip(steps, outputs, strict=True)
    ]
    last = ["state of the target"] if with_states else []
    return {"layers": sizes, "titles": [*titles, *last], "rows": rows, "with_states": with_states}

"""Tables of a report: the transition tables of every head with their margins, and one word read step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from exactstate.report.html import Html, element, joined
from exactstate.report.sentences import smallest_margin
from exactstate.runtime import Machine

MAX_COLUMNS, MAX_ROWS, MAX_TABLES = 24, 40, 24
MAX_WINDOWS = 24
"""Rows of a table in a stack, which has a row for every window that is read."""


@dataclass(frozen=True)
class HeadTable:
    """The transition table of one head."""

    head: int
    symbols: Sequence[str]
    entries: Sequence[Sequence[int]]
    """A d: where each symbol sends each index, -1 for an entry that no word uses."""
    start: int
    margins: Sequence[Sequence[float | None]] | None = None
    smallest: tuple[str, int] | None = None
    """The symbol and the index of the entry with the smallest margin."""


def head_tables(content: dict[str, Any]) -> Html:
    """One table per head, from a certificate."""
    if len(content["layers"]) > 1 or content["reach"] > 1:
        return _stack(content)
    (layer,), smallest = content["layers"], smallest_margin(content)
    window = {newest[-1]: number for number, newest in enumerate(layer["windows"])}
    tables = []
    for head, d in enumerate(layer["heads"]):
        rows = [
            layer["tables"][head][window[a]] if a in window else [-1] * d for a in range(len(content["symbols"]))
        ]  # fmt: skip
        at = (smallest.symbol, smallest.column) if smallest is not None and smallest.head == head else None
        margins = content["margins"]["logits"][0][head]
        tables.append(HeadTable(head, content["symbols"], rows, layer["start"][head], margins, at))
    return _tables(tables)


def machine_tables(machine: Machine) -> Html:
    """One table per head, from a machine file, which has no margins."""
    assert machine.heads is not None
    heads = zip(machine.heads.tables, machine.heads.starts, strict=True)
    return _tables([
        HeadTable(number, machine.symbols, table.tolist(), start) for number, (table, start) in enumerate(heads)
    ])  # fmt: skip


def _tables(tables: list[HeadTable]) -> Html:
    omitted = len(tables) - MAX_TABLES
    more = [element("p", f"{omitted} more heads are not shown.", class_="soft")] if omitted > 0 else []
    return joined([_legend(tables), element("div", *map(_table, tables[:MAX_TABLES]), class_="tables"), *more])


def _legend(tables: list[HeadTable]) -> Html:
    text = (
        "Rows are symbols, columns are indices; an entry is the index that the symbol sends the column's index to. The "
        "initial index is underlined"
    )
    if any(table.margins is not None for table in tables):
        text += "; the entry with the smallest margin is outlined; a dash marks an entry that no word uses"
    return element("p", f"{text}.", class_="soft")


def _table(table: HeadTable, max_rows: int = MAX_ROWS) -> Html:
    d = len(table.entries[0])
    columns, rows = min(d, MAX_COLUMNS), min(len(table.symbols), max_rows)
    top = element("tr", element("th", "", scope="col"), *(_column(k, table.start) for k in range(columns)))
    body = []
    for a in range(rows):
        cells = [
            _entry(table.entries[a][k], None if table.margins is None else table.margins[a][k],
                   table.smallest == (table.symbols[a], k))
            for k in range(columns)
        ]  # fmt: skip
        body.append(element("tr", element("th", table.symbols[a], scope="row"), *cells))
    content = element("div", element("table", element("thead", top), element("tbody", *body)), class_="scroll")
    title = element("h3", f"Head {table.head}: {d} indices")
    return element("figure", title, content, *_omitted(d, columns, len(table.symbols), rows))


def _column(index: int, start: int) -> Html:
    return element("th", element("u", str(index)) if index == start else str(index), scope="col")


def _entry(entry: int, margin: float | None, is_smallest: bool) -> Html:
    if entry < 0:
        return element("td", "–", class_="unused")
    title = {} if margin is None else {"title": f"margin {margin:.4g}"}
    return element("td", str(entry), **title, **({"class_": "smallest"} if is_smallest else {}))


def _omitted(d: int, columns: int, symbols: int, rows: int) -> list[Html]:
    parts = []
    if d > columns:
        parts.append(f"{columns} of {d} columns")
    if symbols > rows:
        parts.append(f"{rows} of {symbols} rows")
    return [element("figcaption", f"Shown: {' and '.join(parts)}; the files of the run have all.")] if parts else []


def _stack(content: dict[str, Any]) -> Html:
    """Layer by layer, a row for every window: the last symbols, in upper layers with the indices of the layer below."""
    text = (
        "In this network a table depends on the last symbols and, in an upper layer, on the indices of the layer below "
        "(in brackets). A dash marks an entry that no word uses. certificate.json has all tables."
    )
    parts = [element("p", text, class_="soft")]
    for depth, layer in enumerate(content["layers"]):
        windows = [" ".join(_input(content, depth, one) for one in window) for window in layer["windows"]]
        sizes = " ".join(map(str, layer["heads"]))
        title = f"Layer {depth}: heads of {sizes} indices, tables for {len(windows):,} windows"
        tables = [
            HeadTable(head, windows, layer["tables"][head], layer["start"][head]) for head in range(len(layer["heads"]))
        ]
        shown = element("div", *(_table(table, MAX_WINDOWS) for table in tables[:MAX_TABLES]), class_="tables")
        parts.append(element("details", element("summary", title), shown))
    return joined(parts)


def _input(content: dict[str, Any], depth: int, number: int) -> str:
    """What a layer reads at a step: the symbol, and the indices of the heads below; a dot before the word began."""
    if number < 0:
        return "·"
    source = content["layers"][depth]["inputs"][number]
    if depth == 0:
        return str(content["symbols"][source[0]])
    symbol = _input(content, depth - 1, source[0])
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


def step_table(content: dict[str, Any], word: Sequence[str], outputs: Sequence[str]) -> Html:
    """The steps as a table; `outputs` are those of the extracted machine."""
    steps = steps_of(content, word)
    with_states = any(step.state != output for step, output in zip(steps, outputs, strict=True))
    body = []
    for step, output in zip(steps, outputs, strict=True):
        cells = [output, *(str(k) for layer in step.indices for k in layer), *([step.state] if with_states else [])]
        body.append(element("tr", element("th", step.symbol, scope="row"), *(element("td", cell) for cell in cells)))
    titles = _titles(content, ["state of the target"] if with_states else [])
    return element("div", element("table", element("thead", *titles), element("tbody", *body)), class_="scroll")


def _titles(content: dict[str, Any], last: Sequence[str]) -> list[Html]:
    """Titles of the columns; in a stack, the names of the layers above those of their heads."""
    sizes = [len(layer["heads"]) for layer in content["layers"]]
    names = ["symbol", "output", *(f"head {head}" for size in sizes for head in range(size)), *last]
    row = element("tr", *(element("th", name, scope="col") for name in names))
    if len(sizes) == 1:
        return [row]
    layers = [
        element("th", f"layer {depth}", scope="colgroup", colspan=size, class_="group")
        for depth, size in enumerate(sizes)
    ]
    return [element("tr", element("td", "", colspan=2), *layers, *(element("td", "") for _ in last)), row]

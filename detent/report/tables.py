"""The tables of every head: where each symbol sends each index, with the margin by which it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from detent.report.html import Html, element, joined
from detent.report.sentences import weakest
from detent.runtime import Machine

MOST_COLUMNS, MOST_ROWS, MOST_TABLES = 24, 40, 24
MOST_WINDOWS = 24
"""Rows of a table in a stack, which has a row for every window that is read."""


@dataclass(frozen=True)
class Shown:
    """A head as far as a table shows it."""

    number: int
    symbols: Sequence[str]
    entries: Sequence[Sequence[int]]
    """A d: where each symbol sends each index, -1 where no word looks."""
    start: int
    margins: Sequence[Sequence[float | None]] | None
    weakest: tuple[str, int] | None
    """The symbol and the index of the entry with the smallest margin."""


def head_tables(content: dict[str, Any]) -> Html:
    """One table per head, out of a certificate."""
    if len(content["layers"]) > 1 or content["reach"] > 1:
        return _stack(content)
    (layer,), closest = content["layers"], weakest(content)
    window = {newest[-1]: number for number, newest in enumerate(layer["windows"])}
    shown = []
    for head, d in enumerate(layer["heads"]):
        rows = [
            layer["tables"][head][window[a]] if a in window else [-1] * d for a in range(len(content["symbols"]))
        ]  # fmt: skip
        at = (closest.symbol, closest.column) if closest is not None and closest.head == head else None
        margins = content["margins"]["logits"][0][head]
        shown.append(Shown(head, content["symbols"], rows, layer["start"][head], margins, at))
    return _tables(shown)


def plain_tables(machine: Machine) -> Html:
    """The same out of a machine, without margins."""
    assert machine.heads is not None
    heads = zip(machine.heads.tables, machine.heads.starts, strict=True)
    return _tables([
        Shown(number, machine.symbols, table.tolist(), start, None, None) for number, (table, start) in enumerate(heads)
    ])  # fmt: skip


def _tables(heads: list[Shown]) -> Html:
    left_out = len(heads) - MOST_TABLES
    more = [element("p", f"{left_out} more heads are not shown.", class_="soft")] if left_out > 0 else []
    return joined([_how_to_read(heads), element("div", *map(_table, heads[:MOST_TABLES]), class_="tables"), *more])


def _how_to_read(heads: list[Shown]) -> Html:
    said = (
        "A row is a symbol, a column an index; the entry says where the symbol sends the index. The start is underlined"
    )
    if any(head.margins is not None for head in heads):
        said += ", the entry with the smallest margin outlined, and a dash stands where no word ever looks"
    return element("p", f"{said}.", class_="soft")


def _table(head: Shown, most_rows: int = MOST_ROWS) -> Html:
    d = len(head.entries[0])
    columns, rows = min(d, MOST_COLUMNS), min(len(head.symbols), most_rows)
    top = element("tr", element("th", "", scope="col"), *(_column(k, head.start) for k in range(columns)))
    body = []
    for a in range(rows):
        cells = [
            _entry(head.entries[a][k], None if head.margins is None else head.margins[a][k],
                   head.weakest == (head.symbols[a], k))
            for k in range(columns)
        ]  # fmt: skip
        body.append(element("tr", element("th", head.symbols[a], scope="row"), *cells))
    held = element("div", element("table", element("thead", top), element("tbody", *body)), class_="scroll")
    title = element("h3", f"Head {head.number}: {d} indices")
    return element("figure", title, held, *_left_out(d, columns, len(head.symbols), rows))


def _column(index: int, start: int) -> Html:
    return element("th", element("u", str(index)) if index == start else str(index), scope="col")


def _entry(entry: int, margin: float | None, is_weakest: bool) -> Html:
    if entry < 0:
        return element("td", "–", class_="unused")
    told = {} if margin is None else {"title": f"margin {margin:.4g}"}
    return element("td", str(entry), **told, **({"class_": "weakest"} if is_weakest else {}))


def _left_out(d: int, columns: int, symbols: int, rows: int) -> list[Html]:
    parts = []
    if d > columns:
        parts.append(f"{columns} of {d} columns")
    if symbols > rows:
        parts.append(f"{rows} of {symbols} rows")
    said = f"Shown: {' and '.join(parts)}; the rest stands in the files of the run."
    return [element("figcaption", said)] if parts else []


def _stack(content: dict[str, Any]) -> Html:
    """Layer by layer, a row for every window: the symbols before and now, above with the indices below them."""
    said = (
        "Here a table depends on the last symbols, and in a layer above on where the heads below stand (in brackets). "
        "There are many; certificate.json holds them all. A dash stands where no word ever looks."
    )
    parts = [element("p", said, class_="soft")]
    for depth, layer in enumerate(content["layers"]):
        rows = [" ".join(_read(content, depth, one) for one in window) for window in layer["windows"]]
        told = f"Layer {depth}: heads of {' '.join(map(str, layer['heads']))} indices, tables for {len(rows):,} windows"
        shown = [
            Shown(head, rows, layer["tables"][head], layer["start"][head], None, None)
            for head in range(len(layer["heads"]))
        ]
        tables = element("div", *(_table(head, MOST_WINDOWS) for head in shown[:MOST_TABLES]), class_="tables")
        parts.append(element("details", element("summary", told), tables))
    return joined(parts)


def _read(content: dict[str, Any], depth: int, number: int) -> str:
    """What a layer reads at a step: the symbol, and the indices of the heads below; a dot before the word began."""
    if number < 0:
        return "·"
    told = content["layers"][depth]["inputs"][number]
    if depth == 0:
        return str(content["symbols"][told[0]])
    symbol = _read(content, depth - 1, told[0])
    return f"{symbol} ({' '.join(map(str, told[1:]))})"

"""Figure `tables`: the transition tables of heads, as matrices.

One square per head and symbol. A mark at column k, row j means that the symbol sends index k to j: a permutation has
one mark in every row, a reset a full row. The darker a mark, the larger the margin of its logit over the runner-up,
where margins are known. Rows are {"layer", "head", "symbol", "table", "margins"}. An entry -1, which no word uses, is
hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata.draw.scene import abbreviate
from exactstate.records import Row
from exactstate.report.figures.style import GREY, INK, PAGE, of_kind, sheet, styled

MAX_SYMBOLS = 8
"""Symbols of a layer, or windows of symbols, that are shown; the title says how many there are."""
MAX_NUMBERED = 12
"""Up to so many indices, the matrix has their numbers beside it."""


def rows_of_heads(symbols: Sequence[str], heads: Sequence[Ints]) -> list[Row]:
    """The tables of heads, A d each."""
    return [
        {"layer": 0, "head": h, "symbol": symbol, "table": table, "margins": None}
        for h, head in enumerate(heads) for symbol, table in zip(symbols, head.tolist(), strict=True)
    ]  # fmt: skip


@styled
def paint(rows: Sequence[Row], title: str = "") -> Any:
    """One row of squares per head; every layer has symbols of its own."""
    selected = of_kind(rows, "table", "layer", "head", "symbol", "table")
    heads = list(dict.fromkeys((row["layer"], row["head"]) for row in selected))
    symbols: dict[int, list[str]] = {}
    for row in selected:
        known = symbols.setdefault(row["layer"], [])
        if row["symbol"] not in known:
            known.append(row["symbol"])
    columns = min(max(map(len, symbols.values())), MAX_SYMBOLS)
    most = max((m for row in selected for m in (row.get("margins") or []) if m is not None), default=None)
    square = min(1.45, (PAGE - 0.9) / columns)
    figure = sheet(min(PAGE, max(square * columns + 0.9, 2.6)), square * len(heads) + 0.75 + 0.2 * (len(symbols) - 1))
    panels = figure.subplots(len(heads), columns, squeeze=False)
    tables = {(row["layer"], row["head"], row["symbol"]): row for row in selected}
    for line, (layer, head) in zip(panels, heads, strict=True):
        for axes, symbol in zip_longest(line, symbols[layer][:columns]):
            table = tables.get((layer, head, symbol))
            axes.set_axis_off() if table is None else _square(axes, table, most)
            if (layer, head) == next(one for one in heads if one[0] == layer) and symbol is not None:
                axes.set_title(abbreviate(symbol, 14), fontsize=8 if columns < 6 else 6, pad=3, parse_math=False)
        line[0].set_ylabel(_head_name(layer, head, len(symbols)), fontsize=7)
    figure.suptitle("; ".join(_title(title, symbols, most)), fontsize=8.5, parse_math=False)
    figure.supxlabel("from index k (column) to index j (row)", fontsize=7, color=GREY)
    return figure


def _title(title: str, symbols: dict[int, list[str]], most: float | None) -> list[str]:
    """The title, what is omitted, and the margin of the darkest mark."""
    parts = [title] if title else []
    for layer, known in symbols.items():
        if len(known) > MAX_SYMBOLS:
            where = f" of layer {layer + 1}" if len(symbols) > 1 else ""
            parts.append(f"the first {MAX_SYMBOLS} of {len(known)} symbols{where}")
    if most is not None:
        parts.append(f"darkest mark: margin {most:.3g}")
    return parts


def matrix(table: Sequence[int], margins: Sequence[float | None] | None, most: float | None) -> Any:
    """d d: how dark the mark at row j, column k is; 0 where there is none."""
    d = len(table)
    dark = np.zeros((d, d))
    for k, j in enumerate(table):
        margin = None if margins is None else margins[k]
        if j >= 0:
            dark[j, k] = 1.0 if margin is None or not most else 0.35 + 0.65 * margin / most
    return dark


def _square(axes: Any, row: Row, most: float | None) -> None:
    table = row["table"]
    d = len(table)
    axes.imshow(np.ma.masked_equal(matrix(table, row.get("margins"), most), 0), cmap="Greys", vmin=0, vmax=1.15,
                origin="lower", extent=(-0.5, d - 0.5, -0.5, d - 0.5), interpolation="nearest")  # fmt: skip
    for k in (k for k, j in enumerate(table) if j < 0):
        axes.axvspan(k - 0.5, k + 0.5, facecolor="none", edgecolor=GREY, hatch="////", linewidth=0)
    ticks = list(range(d)) if d <= MAX_NUMBERED else [0, d - 1]
    axes.set(xticks=ticks, yticks=ticks, xlim=(-0.5, d - 0.5), ylim=(-0.5, d - 0.5))
    axes.tick_params(labelsize=6, length=0, pad=1.5)
    axes.grid(False)
    for edge in range(1, d if d <= MAX_NUMBERED else 0):
        axes.axhline(edge - 0.5, color="#DDDDDD", linewidth=0.4)
        axes.axvline(edge - 0.5, color="#DDDDDD", linewidth=0.4)
    for side in axes.spines.values():
        side.set(visible=True, color=INK, linewidth=0.5)


def _head_name(layer: int, head: int, layers: int) -> str:
    return f"head {head + 1}" if layers == 1 else f"layer {layer + 1}\nhead {head + 1}"

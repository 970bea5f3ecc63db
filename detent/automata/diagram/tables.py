"""A picture of a machine that is too large for circles and arrows: where every symbol sends every state.

One square per symbol; a mark at column q, row p says that the symbol sends state q to p. The identity is the
diagonal, a permutation has one mark in every row, a reset is a horizontal line. Works for any number of states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detent.automata.diagram.arrows import brief
from detent.automata.diagram.captions import LINE, write_below, write_title
from detent.automata.machine import Semiautomaton

PANELS = 12
"""Symbols that are shown."""
CELLS = 200
"""Rows and columns of a square; more states share a cell."""
SQUARE = 2.3
"""Inches that a square takes, with its margins."""


def paint_tables(onto: Any, machine: Semiautomaton, title: str | None) -> list[str]:
    """Fill a figure, or axes that lie in one; the sentences say what was left out, and stand below a figure."""
    n, shown = machine.n_states, min(machine.n_symbols, PANELS)
    sentences = [f"{n} states and their arrows are too many to draw: a mark at column q, row p says that q goes to p."]
    if machine.n_symbols > shown:
        sentences.append(f"The first {shown} of {machine.n_symbols} symbols are shown.")
    columns = min(shown, 4)
    rows = -(-shown // columns)
    below, above = LINE * len(sentences) + 0.15, 0.3 * (title is not None) + 0.05
    width, height = max(SQUARE * columns, 4.6), SQUARE * 1.02 * rows + below + above
    is_figure = not hasattr(onto, "inset_axes")
    if is_figure:
        onto.set_size_inches(width, height)
        write_title(onto, title, height)
        write_below(onto, sentences, height)
    else:
        below = above = 0.0
        height = SQUARE * 1.02 * rows
    for a in range(shown):
        row, column = divmod(a, columns)
        low = (below + (rows - 1 - row + 0.1) * SQUARE * 1.02) / height
        place = ((column + 0.13) / columns, low, 0.8 / columns, 0.8 * SQUARE / height)
        _panel(onto.add_axes(place) if is_figure else onto.inset_axes(place), machine, a)
    return sentences


def _panel(axes: Any, machine: Semiautomaton, a: int) -> None:
    n, cells = machine.n_states, min(machine.n_states, CELLS)
    counts = np.zeros((cells, cells))
    np.add.at(counts, (machine.tables[a].astype(np.int64) * cells // n, np.arange(n) * cells // n), 1)
    # a single mark among 200 x 200 cells must be seen, so whatever is there is rather dark
    darkness = np.ma.masked_equal(np.where(counts > 0, 0.6 + 0.4 * counts / max(counts.max(), 1), 0.0), 0.0)
    axes.imshow(darkness, cmap="Blues", vmin=0, vmax=1, origin="lower", extent=(0, n, 0, n), interpolation="nearest")
    axes.set_title(brief(machine.symbols[a], 24), fontsize=8, pad=3, parse_math=False)
    axes.set_xticks([0, n])
    axes.set_yticks([0, n])
    axes.tick_params(labelsize=6, length=2, pad=1)

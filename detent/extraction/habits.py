"""What symbols do to the index of one head: which of them was read last, how many were read modulo a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from detent.automata.running import Ints

if TYPE_CHECKING:
    from detent.extraction.extracted import Extracted

_SHOWN = 6


def habit(found: Extracted, column: int) -> str | None:
    """What the head in this column of the configurations tracks by what symbols do to it; None if nothing simple."""
    moves = own_moves(found, column)
    if moves is None:
        return None
    return _last_read(moves, found.symbols) or _counted(moves, found.symbols)


def own_moves(found: Extracted, column: int) -> Ints | None:
    """A d: where each symbol sends the index, -1 where that never came up; None if it depends on more than those."""
    index = found.configurations[:, column].astype(np.int64)
    symbols, before = np.nonzero(found.tables >= 0)
    after = index[found.tables[symbols, before]]
    moves = np.full((len(found.symbols), int(index.max()) + 1), -1)
    moves[symbols, index[before]] = after
    return moves if np.array_equal(moves[symbols, index[before]], after) else None


def _last_read(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol leaves the index alone or sends all indices to one."""
    resets = []
    for symbol, table in zip(symbols, moves, strict=True):
        met = np.flatnonzero(table >= 0)
        if len(np.unique(table[met])) == 1 and len(met) > 1:
            resets.append(symbol)
        elif not np.array_equal(table[met], met):
            return None
    return f"the last reset, which of {_listed(resets)} was read last" if resets else None


def _counted(moves: Ints, symbols: tuple[str, ...]) -> str | None:
    """Every symbol goes a number of steps along one circle."""
    met = np.flatnonzero((moves >= 0).any(axis=0))
    k = len(met)
    for table in moves:
        order = _circle(table, int(met[0]), k)
        if order is None:
            continue
        place = np.full(moves.shape[1], -1)
        place[order] = np.arange(k)
        steps = [np.unique((place[row[row >= 0]] - place[np.flatnonzero(row >= 0)]) % k) for row in moves]
        if any(len(step) > 1 for step in steps):
            return None
        by = {symbol: int(step[0]) for symbol, step in zip(symbols, steps, strict=True) if len(step) and step[0]}
        if k == 2:
            return f"the parity of the number of {_listed(list(by))}"
        weighed = [symbol if count == 1 else f"{symbol} counted {count} times" for symbol, count in by.items()]
        return f"the number mod {k} of {_listed(weighed)}"
    return None


def _circle(table: Ints, first: int, k: int) -> list[int] | None:
    """The k indices in the order in which a table goes through them, if it does."""
    order = [first]
    while (then := int(table[order[-1]])) >= 0 and then not in order:
        order.append(then)
    return order if len(order) == k and then == first else None


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown

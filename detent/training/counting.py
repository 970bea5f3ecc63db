"""Count what depends on what: whether some columns determine another, and the moves that this makes.

K  joint values that a move depends on     A  symbols     d  values of a register
"""

from __future__ import annotations

import numpy as np

from detent.automata.running import Bools, Ints

NONE = -1


def determined(keys: Ints, values: Ints) -> bool:
    """Whether equal rows of keys always come with equal values."""
    pairs = np.unique(np.concatenate([keys, values[:, None]], axis=1), axis=0)
    return len(np.unique(pairs[:, :-1], axis=0)) == len(pairs)


def rule(below: Ints, symbols: Ints, before: Ints, after: Ints, A: int, d: int) -> Ints:
    """K A d: where each symbol sends each value, given what it depends on; as counted, and completed."""
    shape = (int(below.max(initial=0)) + 1, A, d)
    table, seen = np.zeros(shape, np.int64), np.zeros(shape, bool)
    table[below, symbols, before] = after
    seen[below, symbols, before] = True
    return completed(table.reshape(-1, d), seen.reshape(-1, d)).reshape(shape)


def completed(table: Ints, seen: Bools) -> Ints:
    """Moves (R d) with those that nothing shows: where all that were seen go to one index these go there, else none."""
    d = table.shape[1]
    to = np.where(seen, table, d).min(axis=1, keepdims=True)
    resets = (np.where(seen, table, to) == to).all(axis=1, keepdims=True) & (to < d)
    resets &= ~(seen & (table == np.arange(d))).any(axis=1, keepdims=True)
    return np.where(seen, table, np.where(resets, to, np.arange(d)))


def different(rows: Ints) -> Ints:
    """The different rows, in the order of their bytes."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return np.unique(packed).view(rows.dtype).reshape(-1, rows.shape[1])

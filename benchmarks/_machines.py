"""The machines of the runtime benchmark: 16 random states, a protocol of 57, the groups A5 and M11."""

from __future__ import annotations

import numpy as np

from exactstate.automata import Moore, alternating, mathieu11, permutation
from exactstate.runtime import Heads, Machine

PROTOCOL_STATES, PROTOCOL_SYMBOLS = 57, 12


def sixteen(rng: np.random.Generator) -> Machine:
    """16 states, 16 symbols, tables at random; accepts in half of the states."""
    return Machine.of(_accepting(rng.integers(0, 16, (16, 16))))


def protocol(rng: np.random.Generator) -> Machine:
    """A protocol-like machine: from a state a few symbols lead on, an error leads to one of a few error states, and
    one symbol closes the connection."""
    n, A = PROTOCOL_STATES, PROTOCOL_SYMBOLS
    tables = np.where(rng.random((A, n)) < 0.4, rng.integers(0, 4, (A, n)), rng.integers(0, n, (A, n)))
    tables[0] = 0
    return Machine.of(_accepting(tables))


def rotations() -> Machine:
    """A5 by its word problem: 60 states that never merge."""
    return Machine.of(alternating(5))


def mathieu(rng: np.random.Generator) -> Machine:
    """M11 with 7,920 states, and four heads of 11 as a network learns them: each numbers its points differently."""
    a, b = permutation([range(11)], 11), permutation([(2, 6, 10, 7), (3, 9, 4, 5)], 11)
    action = np.stack([a, b, np.argsort(a), np.argsort(b)])
    tables, starts = [], []
    for point in range(4):
        called = rng.permutation(11)
        tables.append(called[action[:, np.argsort(called)]])
        starts.append(int(called[point]))
    return Machine.of(mathieu11(), heads=Heads(tuple(tables), tuple(starts)))


def _accepting(tables: np.ndarray) -> Moore:
    A, n = tables.shape
    symbols = tuple(f"x{a}" for a in range(A))
    return Moore(symbols=symbols, tables=tables, outputs=("reject", "accept"), readout=np.arange(n) % 2)

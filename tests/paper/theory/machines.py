"""Small automata: shift registers, and all of a size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from exactstate.automata import Semiautomaton


def last_symbols(k: int, A: int = 2) -> Semiautomaton:
    """The state is the last k symbols: definite of order k."""
    q = np.arange(A**k)
    return Semiautomaton(symbols=tuple("abcd"[:A]), tables=np.stack([(q * A + x) % A**k for x in range(A)]))


def all_of(n: int, A: int) -> Iterator[Semiautomaton]:
    """Every semiautomaton with n states and A symbols."""
    maps = list(product(range(n), repeat=n))
    for tables in product(maps, repeat=A):
        yield Semiautomaton(symbols=tuple("abcd"[:A]), tables=np.array(tables))


def hold(n: int = 2) -> Semiautomaton:
    """One symbol that changes nothing: the simplest automaton that is not definite."""
    return Semiautomaton(symbols=("keep",), tables=np.arange(n)[None])

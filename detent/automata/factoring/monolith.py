"""Is there only the trivial factoring? It is so when every congruence that merges anything merges the same two states.

    n  states

Such a pair generates the monolith, the one finest congruence beside equality. Look for a finest congruence by going
down from any pair; then see whether every other pair generates one above it. A pair that a word sends to a settled pair
is settled too, so few pairs have to be tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata.factoring.work import Work
from detent.automata.merging import Pair, merge, merge_steps
from detent.automata.pairs import PairsBefore
from detent.automata.running import Bools, Ints
from detent.errors import BudgetExceeded

STATES = 2_000
"""Up to how many states all pairs are looked at."""
_CHUNK = 4_096


@dataclass(frozen=True)
class Monolith:
    """A pair that every congruence merges which merges anything, or two pairs whose congruences meet in equality."""

    pair: Pair
    other: Pair | None
    """None when `pair` is in every congruence."""


def monolith(tables: Ints, work: Work) -> Monolith:
    """The monolith's pair, or two pairs that show there is none; BudgetExceeded when that takes too long to tell."""
    n = tables.shape[1]
    if n > STATES:
        raise BudgetExceeded(f"all pairs are looked at in machines of up to {STATES} states; this one has {n}.")
    work.claim(n * tables.size // 16)
    before = PairsBefore(tables)
    pair: Pair = (0, 1)
    inside: Ints = np.zeros(n, np.int64)
    while True:
        settled = np.eye(n, dtype=bool)
        before.spread(settled, np.array(pair[:1]), np.array(pair[1:]))
        finer = _apart(tables, before, settled, pair, inside[:, None] == inside, work)
        if finer is None:
            break
        pair, inside = finer, merge(tables, [finer])
    return Monolith(pair, _apart(tables, before, settled, pair, np.ones((n, n), bool), work))


def _apart(tables: Ints, before: PairsBefore, settled: Bools, pair: Pair, among: Bools, work: Work) -> Pair | None:
    """A pair among these whose congruence leaves `pair` apart, or None; what is found out is noted in `settled`."""
    p, q = np.nonzero(np.triu(among & ~settled))
    for begin in range(0, len(p), _CHUNK):
        chunk = slice(begin, begin + _CHUNK)
        while len(still := np.flatnonzero(~settled[p[chunk], q[chunk]])):
            at = begin + int(still[0])
            tried = int(p[at]), int(q[at])
            work.claim(merge_steps(tables))
            found = merge(tables, [tried])
            if found[pair[0]] != found[pair[1]]:
                return tried
            before.spread(settled, p[at : at + 1], q[at : at + 1])
    return None

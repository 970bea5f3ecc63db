"""Pairs of states and the pairs they come from: what merges, and what follows from a merger, seen backwards.

A  symbols     n  states
"""

from __future__ import annotations

import numpy as np

from detent.automata.running import Bools, Ints


class PairsBefore:
    """For each symbol, the pairs of states that it sends to given pairs."""

    def __init__(self, tables: Ints) -> None:
        self.symbols, self.n = tables.shape
        self.sources = [np.argsort(table, kind="stable")[np.count_nonzero(table < 0) :] for table in tables]
        self.counts = [np.bincount(table[table >= 0], minlength=self.n) for table in tables]
        self.begins = [np.cumsum(count) - count for count in self.counts]

    def __call__(self, a: int, p: Ints, q: Ints) -> tuple[Ints, Ints]:
        """Every state that symbol a sends to p[i] with every state that it sends to q[i], for all i."""
        width = self.counts[a][q]
        many = self.counts[a][p] * width
        which = np.repeat(np.arange(len(p)), many)
        within = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
        i, j = np.divmod(within, width[which])
        return self.sources[a][self.begins[a][p[which]] + i], self.sources[a][self.begins[a][q[which]] + j]

    def spread(self, known: Bools, p: Ints, q: Ints) -> None:
        """Mark in `known` (n n) the pairs p[i], q[i] and all that words send to them, in both orders."""
        new = ~known[p, q]
        p, q = p[new], q[new]
        known[p, q] = known[q, p] = True
        while len(p):
            found = []
            for a in range(self.symbols):
                from_p, from_q = self(a, p, q)
                new = ~known[from_p, from_q]
                from_p, from_q = from_p[new], from_q[new]
                known[from_p, from_q] = known[from_q, from_p] = True
                found.append((from_p, from_q))
            p, q = (np.concatenate(side) for side in zip(*found, strict=True))

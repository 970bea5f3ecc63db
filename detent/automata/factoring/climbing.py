"""Make a congruence as coarse as it can be while it still separates what others do not.

    A  symbols     n  states     b  blocks

`rest` is what the others together merge: a partition that must meet the congruence in equality, so two blocks may be
merged only when they hold no two states of one block of the rest. Pairs of blocks are tried in random order until none
is left that can be merged. A pair that cannot be merged never can be later; and whatever a symbol sends to such a pair
cannot be merged either, which saves most attempts.
"""

from __future__ import annotations

import numpy as np

from detent.automata.congruences import root
from detent.automata.factoring.work import Work
from detent.automata.refinement import numbered
from detent.automata.running import Bools, Ints

_ALL_PAIRS = 256
_PATIENCE = 40


def coarsen(
    tables: Ints, partition: Ints, rest: Ints, rng: np.random.Generator, work: Work, *, from_first: bool = False
) -> Ints:
    """A congruence above `partition` that still meets `rest` in equality, as coarse as could be found.

    `from_first` says that merging with the first block is enough to try, as in a transitive group.
    """
    climb = _Climb(tables, partition, rest, work)
    failures = 0
    while work.left and (failures < _PATIENCE or climb.forbidden is not None):
        pair = climb.choose(rng, from_first)
        if pair is None:
            break
        failures = 0 if climb.merge(*pair) else failures + 1
    return climb.blocks


class _Climb:
    def __init__(self, tables: Ints, partition: Ints, rest: Ints, work: Work) -> None:
        self.original, self.work = tables, work
        self.blocks = partition
        crowded = np.bincount(rest)[rest] > 1
        self.crowd = np.where(crowded, rest, -1)
        self.forbidden: Bools | None = None
        self._settle()

    def _settle(self) -> None:
        """The machine on the blocks, what each block holds of the rest, and which blocks cannot be merged."""
        first = np.unique(self.blocks, return_index=True)[1]
        self.tables = self.blocks[self.original[:, first]]
        self.successors = self.tables.T.tolist()
        self.holds: list[set[int]] = [set() for _ in first]
        held = np.flatnonzero(self.crowd >= 0)
        for block, crowd in zip(self.blocks[held].tolist(), self.crowd[held].tolist(), strict=True):
            self.holds[block].add(crowd)
        b = len(first)
        self.work.spend(200 + len(self.blocks))
        if b <= _ALL_PAIRS:
            self.forbidden = self._closed(self._clashes(b) if self.forbidden is None else self.forbidden)

    def _clashes(self, b: int) -> Bools:
        held = self.crowd >= 0
        crowds = numbered(self.crowd[held])
        members = np.zeros((b, int(crowds.max(initial=0)) + 1), np.float32)
        members[self.blocks[held], crowds] = 1
        clash = members @ members.T > 0
        np.fill_diagonal(clash, False)
        return clash

    def _closed(self, forbidden: Bools) -> Bools:
        while True:
            before = np.count_nonzero(forbidden)
            for table in self.tables:
                forbidden = forbidden | forbidden[table][:, table]
            self.work.spend(forbidden.size * len(self.tables) // 64)
            if np.count_nonzero(forbidden) == before:
                return forbidden

    def choose(self, rng: np.random.Generator, from_first: bool) -> tuple[int, int] | None:
        b = len(self.holds)
        if self.forbidden is not None:
            first, second = np.nonzero(np.triu(~self.forbidden[: 1 if from_first else b], 1))
            if not len(first):
                return None
            which = rng.integers(len(first))
            return int(first[which]), int(second[which])
        p = 0 if from_first else int(rng.integers(b))
        return p, int((p + rng.integers(1, b)) % b)

    def merge(self, p: int, q: int) -> bool:
        """Merge two blocks and all that follows, unless that merges too much."""
        parent = list(range(len(self.holds)))
        holds: dict[int, set[int]] = {}
        waiting = [(p, q)]
        steps = 0
        possible = True
        while waiting and possible:
            u, v = waiting.pop()
            u, v = root(parent, u), root(parent, v)
            if u == v:
                continue
            steps += 1
            mine, others = holds.get(u, self.holds[u]), holds.get(v, self.holds[v])
            if mine and others:
                possible = mine.isdisjoint(others)
            if others:
                holds[u] = mine | others
            parent[v] = u
            waiting.extend(zip(self.successors[u], self.successors[v], strict=True))
        self.work.spend(50 + 2 * steps * len(self.original))
        if not possible:
            if self.forbidden is not None:
                self.forbidden[p, q] = self.forbidden[q, p] = True
            return False
        merged = numbered(np.array([root(parent, block) for block in range(len(parent))]))
        self.blocks = merged[self.blocks]
        if self.forbidden is not None:
            coarse = np.zeros((int(merged.max()) + 1,) * 2, bool)
            i, j = np.nonzero(self.forbidden)
            coarse[merged[i], merged[j]] = True
            self.forbidden = coarse
        self._settle()
        return True

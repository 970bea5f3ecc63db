"""Make a congruence as coarse as possible while it still separates what the other heads do not.

    A  symbols     n  states     b  blocks

`rest` is the meet of the other congruences. The result must meet it in equality, so two blocks may be merged only if
they hold no two states of one block of `rest`. While there are many blocks, random pairs are drawn and merged where
possible. When few are left, all pairs are tried until none can be merged: a pair that some symbol sends to an
unmergeable pair is unmergeable too, and unmergeable pairs stay so.
"""

from __future__ import annotations

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata.congruence import merged_rows, quotient_tables
from exactstate.automata.factor.lattice import Work
from exactstate.automata.minimize import numbered

_MIN_DRAWN_BLOCKS = 64
_MAX_CLOSED_BLOCKS = 256
_MAX_FAILURES = 40
_GREED = (1, 4, 16)


def coarsen(
    tables: Ints, partition: Ints, rest: Ints, rng: np.random.Generator, work: Work, *, from_first: bool = False
) -> Ints:
    """A congruence above `partition` that still meets `rest` in equality, as coarse as the search finds.

    With `from_first`, only pairs with the first block are tried, which suffices in a transitive group.
    """
    crowded = np.flatnonzero(np.bincount(rest)[rest] > 1)
    blocks = _draw(tables, partition, rest, crowded, rng, work, from_first)
    b = int(blocks.max()) + 1
    if b > _MAX_CLOSED_BLOCKS:
        return blocks
    apart = _clashes(blocks[crowded], rest[crowded], b)
    while work.left:
        small = quotient_tables(tables, blocks)
        apart = _closed(small, apart, work)
        merged = _merge_any(Forest(small, _held(blocks, rest, crowded), work), apart, rng, from_first)
        if merged is None:
            break
        blocks, apart = merged[blocks], _on_blocks(apart, merged)
    return blocks


def _draw(
    tables: Ints, blocks: Ints, rest: Ints, crowded: Ints, rng: np.random.Generator, work: Work, from_first: bool
) -> Ints:
    """Merge random pairs of blocks until few blocks are left or many draws have failed in a row."""
    forest = Forest(quotient_tables(tables, blocks), _held(blocks, rest, crowded), work)
    failures = 0
    # with many MISSING transitions nearly everything can be merged; mergers that cause others are worth most
    greed = int(rng.choice(_GREED)) if forest.partial else 1
    while work.left and forest.count > _MIN_DRAWN_BLOCKS and failures < _MAX_FAILURES:
        drawn = [(0 if from_first else forest.draw(rng), forest.draw(rng)) for _ in range(greed)]
        best = max(drawn, key=lambda pair: forest.would_merge(*pair)) if greed > 1 else drawn[0]
        failures = 0 if forest.merge(*best) else failures + 1
    return forest.partition()[blocks]


def _merge_any(forest: Forest, apart: Bools, rng: np.random.Generator, from_first: bool) -> Ints | None:
    """The partition of the blocks after one possible merger and all that follows; None when there is none."""
    first, second = np.nonzero(np.triu(~apart[: 1 if from_first else len(apart)], 1))
    for which in rng.permutation(len(first)).tolist():
        p, q = int(first[which]), int(second[which])
        if forest.merge(p, q):
            return forest.partition()
        apart[p, q] = apart[q, p] = True
    return None


class Forest:
    """Union-find over blocks with undo. Two trees cannot be merged when their `held` sets intersect.

    Paths are not compressed, so that mergers can be undone one by one.
    """

    def __init__(self, tables: Ints, held: list[set[int]], work: Work) -> None:
        self.successors: list[list[int]] = tables.T.tolist()
        self.partial = bool((tables == MISSING).any())
        self.held = held
        self.count = len(held)
        self.parent = list(range(self.count))
        self.size = [1] * self.count
        self.roots = list(range(self.count))  # all roots, and some former ones
        self.work = work
        work.spend(200 + tables.size)

    def root(self, block: int) -> int:
        while self.parent[block] != block:
            block = self.parent[block]
        return block

    def draw(self, rng: np.random.Generator) -> int:
        """A root at random."""
        while True:
            place = int(rng.integers(len(self.roots)))
            block = self.roots[place]
            if self.parent[block] == block:
                return block
            self.roots[place] = self.roots[-1]
            self.roots.pop()

    def merge(self, p: int, q: int) -> bool:
        """Merge two trees and all that follows; False and no change when they are the same or cannot be merged."""
        done = self._merge(p, q)
        self.count -= len(done)
        return bool(done)

    def would_merge(self, p: int, q: int) -> int:
        """The number of mergers that this would cause; 0 when it is impossible."""
        done = self._merge(p, q)
        self._undo(done)
        return len(done)

    def _merge(self, p: int, q: int) -> list[tuple[int, int, set[int], list[int]]]:
        done: list[tuple[int, int, set[int], list[int]]] = []
        worklist = [(p, q)]
        possible = True
        while worklist and possible:
            u, v = worklist.pop()
            u, v = self.root(u), self.root(v)
            if u == v:
                continue
            if self.size[u] < self.size[v]:
                u, v = v, u
            possible = self.held[u].isdisjoint(self.held[v])
            done.append((u, v, self.held[u], self.successors[u]))
            if self.partial:
                follows, self.successors[u] = merged_rows(self.successors[u], self.successors[v])
                worklist.extend(follows)
            else:
                worklist.extend(zip(self.successors[u], self.successors[v], strict=True))
            if self.held[v]:
                self.held[u] = self.held[u] | self.held[v]
            self.parent[v] = u
            self.size[u] += self.size[v]
        self.work.spend(50 + 2 * len(done) * len(self.successors[0]))
        if not possible:
            self._undo(done)
            return []
        return done

    def _undo(self, done: list[tuple[int, int, set[int], list[int]]]) -> None:
        for u, v, held, row in reversed(done):
            self.parent[v], self.held[u], self.successors[u] = v, held, row
            self.size[u] -= self.size[v]

    def partition(self) -> Ints:
        """The tree of each block, numbered by its first."""
        return numbered(np.array([self.root(block) for block in range(len(self.parent))]))


def _held(blocks: Ints, rest: Ints, crowded: Ints) -> list[set[int]]:
    """For each block, the blocks of `rest` with more than one state that it intersects."""
    held: list[set[int]] = [set() for _ in range(int(blocks.max()) + 1)]
    for block, crowd in zip(blocks[crowded].tolist(), rest[crowded].tolist(), strict=True):
        held[block].add(crowd)
    return held


def _clashes(blocks: Ints, crowds: Ints, b: int) -> Bools:
    """b b: which two blocks intersect the same block of `rest`."""
    crowds = numbered(crowds)
    members = np.zeros((b, int(crowds.max(initial=0)) + 1), np.float32)
    members[blocks, crowds] = 1
    clash = members @ members.T > 0
    np.fill_diagonal(clash, False)
    return clash


def _closed(small: Ints, apart: Bools, work: Work) -> Bools:
    """`apart` with all pairs that some word sends to a pair in it."""
    b = len(apart)
    padded = np.zeros((b + 1, b + 1), bool)  # the last row and column are those of MISSING = -1
    padded[:b, :b] = apart
    before = -1
    while before < (before := int(np.count_nonzero(padded))):
        for table in small:
            padded[:b, :b] |= padded[table][:, table]
        work.spend(200 + apart.size * len(small) // 64)
    return padded[:b, :b].copy()


def _on_blocks(apart: Bools, merged: Ints) -> Bools:
    coarse = np.zeros((int(merged.max()) + 1,) * 2, bool)
    p, q = np.nonzero(apart)
    coarse[merged[p], merged[q]] = True
    return coarse

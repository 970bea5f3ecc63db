"""Make a congruence as coarse as it can be while it still separates what others do not.

    A  symbols     n  states     b  blocks

`rest` is what the others together merge: a partition that must meet the congruence in equality, so two blocks may be
merged only when they hold no two states of one block of the rest. While there are many blocks, pairs are drawn and
merged where that is possible. When few are left, all pairs are kept in sight until none can be merged: whatever a
symbol sends to two blocks that cannot be merged cannot be merged either, and what cannot be merged now never can be.
"""

from __future__ import annotations

import numpy as np

from detent._types import MISSING, Bools, Ints
from detent.automata.congruence import both, on_blocks
from detent.automata.factor.budget import Work
from detent.automata.minimize import numbered

# -- Blocks that are merged with all that follows from it, or left as they were when that would merge too much.


class Forest:
    """Trees of blocks. Two trees cannot be merged when they hold something in common.

    The way to a root is never shortened, so that mergers can be taken back one by one.
    """

    def __init__(self, tables: Ints, held: list[set[int]], work: Work) -> None:
        self.goes: list[list[int]] = tables.T.tolist()
        self.partial = bool((tables == MISSING).any())
        self.held = held
        self.count = len(held)
        self.parent = list(range(self.count))
        self.size = [1] * self.count
        self.roots = list(range(self.count))  # all roots, and some that were
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
        """Merge two trees and all that follows; False, and nothing done, when they are one or that is not possible."""
        done = self._merge(p, q)
        self.count -= len(done)
        return bool(done)

    def would_merge(self, p: int, q: int) -> int:
        """How many mergers this would bring about; none when it is not possible."""
        done = self._merge(p, q)
        self._take_back(done)
        return len(done)

    def _merge(self, p: int, q: int) -> list[tuple[int, int, set[int], list[int]]]:
        done: list[tuple[int, int, set[int], list[int]]] = []
        waiting = [(p, q)]
        possible = True
        while waiting and possible:
            u, v = waiting.pop()
            u, v = self.root(u), self.root(v)
            if u == v:
                continue
            if self.size[u] < self.size[v]:
                u, v = v, u
            possible = self.held[u].isdisjoint(self.held[v])
            done.append((u, v, self.held[u], self.goes[u]))
            if self.partial:
                follows, self.goes[u] = both(self.goes[u], self.goes[v])
                waiting.extend(follows)
            else:
                waiting.extend(zip(self.goes[u], self.goes[v], strict=True))
            if self.held[v]:
                self.held[u] = self.held[u] | self.held[v]
            self.parent[v] = u
            self.size[u] += self.size[v]
        self.work.spend(50 + 2 * len(done) * len(self.goes[0]))
        if not possible:
            self._take_back(done)
            return []
        return done

    def _take_back(self, done: list[tuple[int, int, set[int], list[int]]]) -> None:
        for u, v, held, goes in reversed(done):
            self.parent[v], self.held[u], self.goes[u] = v, held, goes
            self.size[u] -= self.size[v]

    def partition(self) -> Ints:
        """The tree of each block, numbered by its first."""
        return numbered(np.array([self.root(block) for block in range(len(self.parent))]))


_FEW = 64
_NOT_MANY = 256
_PATIENCE = 40
_GREED = (1, 4, 16)


def coarsen(
    tables: Ints, partition: Ints, rest: Ints, rng: np.random.Generator, work: Work, *, from_first: bool = False
) -> Ints:
    """A congruence above `partition` that still meets `rest` in equality, as coarse as could be found.

    `from_first` says that merging with the first block is enough to try, as in a transitive group.
    """
    crowded = np.flatnonzero(np.bincount(rest)[rest] > 1)
    blocks = _draw(tables, partition, rest, crowded, rng, work, from_first)
    b = int(blocks.max()) + 1
    if b > _NOT_MANY:
        return blocks
    apart = _clashes(blocks[crowded], rest[crowded], b)
    while work.left:
        small = on_blocks(tables, blocks)
        apart = _closed(small, apart, work)
        merged = _merge_any(Forest(small, _held(blocks, rest, crowded), work), apart, rng, from_first)
        if merged is None:
            break
        blocks, apart = merged[blocks], _on_blocks(apart, merged)
    return blocks


def _draw(
    tables: Ints, blocks: Ints, rest: Ints, crowded: Ints, rng: np.random.Generator, work: Work, from_first: bool
) -> Ints:
    """Merge pairs of blocks as they are drawn, until few blocks are left or many draws have failed in a row."""
    forest = Forest(on_blocks(tables, blocks), _held(blocks, rest, crowded), work)
    failures = 0
    # where much never happens nearly everything can be merged, and the mergers that bring others with them mean most
    greed = int(rng.choice(_GREED)) if forest.partial else 1
    while work.left and forest.count > _FEW and failures < _PATIENCE:
        drawn = [(0 if from_first else forest.draw(rng), forest.draw(rng)) for _ in range(greed)]
        best = max(drawn, key=lambda pair: forest.would_merge(*pair)) if greed > 1 else drawn[0]
        failures = 0 if forest.merge(*best) else failures + 1
    return forest.partition()[blocks]


def _merge_any(forest: Forest, apart: Bools, rng: np.random.Generator, from_first: bool) -> Ints | None:
    """The blocks after a merger of two of them and all that follows; None when none is possible."""
    first, second = np.nonzero(np.triu(~apart[: 1 if from_first else len(apart)], 1))
    for which in rng.permutation(len(first)).tolist():
        p, q = int(first[which]), int(second[which])
        if forest.merge(p, q):
            return forest.partition()
        apart[p, q] = apart[q, p] = True
    return None


def _held(blocks: Ints, rest: Ints, crowded: Ints) -> list[set[int]]:
    """For each block the blocks of the rest of which it holds a state, as far as they have more than one."""
    held: list[set[int]] = [set() for _ in range(int(blocks.max()) + 1)]
    for block, crowd in zip(blocks[crowded].tolist(), rest[crowded].tolist(), strict=True):
        held[block].add(crowd)
    return held


def _clashes(blocks: Ints, crowds: Ints, b: int) -> Bools:
    """b b: which blocks hold states of one crowd."""
    crowds = numbered(crowds)
    members = np.zeros((b, int(crowds.max(initial=0)) + 1), np.float32)
    members[blocks, crowds] = 1
    clash = members @ members.T > 0
    np.fill_diagonal(clash, False)
    return clash


def _closed(small: Ints, apart: Bools, work: Work) -> Bools:
    """With all pairs that some word sends to a pair that must stay apart."""
    b = len(apart)
    padded = np.zeros((b + 1, b + 1), bool)  # the last row and column stand for what never happens: index -1
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

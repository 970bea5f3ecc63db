"""Blocks that are merged with all that follows from it, or left as they were when that would merge too much."""

from __future__ import annotations

import numpy as np

from detent.automata.factoring.work import Work
from detent.automata.merging import NEVER, both
from detent.automata.refinement import numbered
from detent.automata.running import Ints


class Forest:
    """Trees of blocks. Two trees cannot be merged when they hold something in common.

    The way to a root is never shortened, so that mergers can be taken back one by one.
    """

    def __init__(self, tables: Ints, held: list[set[int]], work: Work) -> None:
        self.goes: list[list[int]] = tables.T.tolist()
        self.partial = bool((tables == NEVER).any())
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

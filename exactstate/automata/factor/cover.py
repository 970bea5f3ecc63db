"""Choose congruences that together separate all states, at the smallest sum of squared block counts.

    d  blocks of a candidate

A weighted set cover, solved by branch and bound. The sets are bits of an integer. Branch on the element that the fewest
candidates cover; bound below by the cheapest sizes whose product is at least the number of states; start from the
greedy cover (Chvatal, "A greedy heuristic for the set-covering problem", 1979).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactstate._types import Bools
from exactstate.automata.factor.lattice import Work


@dataclass(frozen=True)
class Cover:
    """The chosen candidates, and whether no family is cheaper."""

    chosen: tuple[int, ...]
    proven: bool


class _Branch(NamedTuple):
    chosen: tuple[int, ...]
    cost: int
    product: int
    """Of the sizes of the chosen candidates."""
    left: int
    """Bits of the pairs not separated yet."""
    tried: frozenset[int]
    """Candidates that other branches try."""

    def then(self, candidate: int, size: int, separates: int, tried: Iterable[int]) -> _Branch:
        left = self.left & ~separates
        return _Branch(
            (*self.chosen, candidate), self.cost + size**2, self.product * size, left, self.tried.union(tried)
        )


def cheapest_cover(sizes: Sequence[int], apart: Bools, *, states: int, work: Work) -> Cover:
    """The cheapest family of candidates that separates every pair; each pair must be separated by some candidate.

    apart[c, i] is whether candidate c separates pair i. Families with fewer than `states` tuples are pruned.
    """
    separates = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in apart]
    everything = (1 << apart.shape[1]) - 1
    useful = _undominated(sizes, separates)
    by_bit = [[c for c in useful if separates[c] >> bit & 1] for bit in range(apart.shape[1])]
    at_least = CheapestProduct({sizes[c] for c in useful})
    best = _greedy(sizes, separates, everything, useful)
    cheapest = sum(sizes[c] ** 2 for c in best)
    stack = [_Branch((), 0, 1, everything, frozenset())]
    while stack and work.left:
        here = stack.pop()
        if not here.left:
            if here.cost < cheapest:
                best, cheapest = here.chosen, here.cost
            continue
        if here.cost + at_least(-(-states // here.product)) >= cheapest:
            continue
        hardest = min(_bits(here.left), key=lambda bit: len(by_bit[bit]))
        options = [c for c in by_bit[hardest] if c not in here.tried and here.cost + sizes[c] ** 2 < cheapest]
        work.spend(20 + len(by_bit) + len(options))
        branches = [here.then(c, sizes[c], separates[c], options[:i]) for i, c in enumerate(options)]
        stack.extend(reversed(branches))
    return Cover(tuple(sorted(best, key=lambda c: -sizes[c])), proven=not stack)


def _undominated(sizes: Sequence[int], separates: Sequence[int]) -> list[int]:
    """The candidates, cheapest first, without those dominated by a cheaper one."""
    kept: list[int] = []
    for c in sorted(range(len(sizes)), key=lambda c: (sizes[c], -separates[c].bit_count(), c)):
        if not any(separates[c] & ~separates[k] == 0 for k in kept):
            kept.append(c)
    return kept


def _greedy(sizes: Sequence[int], separates: Sequence[int], everything: int, useful: list[int]) -> tuple[int, ...]:
    """Repeatedly the candidate that separates most for its cost; then drop redundant ones."""
    chosen: list[int] = []
    left = everything
    while left:
        c = max(useful, key=lambda c: ((separates[c] & left).bit_count() / sizes[c] ** 2, -c))
        chosen.append(c)
        left &= ~separates[c]
    for c in sorted(chosen, key=lambda c: -sizes[c]):
        others = 0
        for k in chosen:
            others |= separates[k] if k != c else 0
        if not everything & ~others:
            chosen.remove(c)
    return tuple(chosen)


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


class CheapestProduct:
    """The least sum of squares of sizes whose product is at least a given number."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = [d for d in sizes if d > 1]
        self.known = {1: 0}

    def __call__(self, wanted: int) -> int:
        if wanted not in self.known:
            self.known[wanted] = min(d**2 + self(-(-wanted // d)) for d in self.sizes)
        return self.known[wanted]

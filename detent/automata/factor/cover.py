"""Choose congruences that together separate all states, at the smallest sum of squared block counts.

    d  blocks of a candidate

Every candidate separates some of the things to be separated (bits of an integer); a family is wanted that leaves none.
Branch and bound: take what the fewest candidates separate, try each of them, and stop where even heads of the cheapest
sizes could not number all states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from detent._types import Bools
from detent.automata.factor.budget import Work


@dataclass(frozen=True)
class Cover:
    """Which candidates were chosen, and whether no cheaper choice is left to try."""

    chosen: tuple[int, ...]
    proven: bool


class _Branch(NamedTuple):
    chosen: tuple[int, ...]
    cost: int
    product: int
    """Of the sizes of what is chosen."""
    left: int
    """The pairs that are not separated yet."""
    tried: frozenset[int]
    """Candidates whose families are looked at in other branches."""

    def then(self, candidate: int, size: int, separates: int, tried: Iterable[int]) -> _Branch:
        left = self.left & ~separates
        return _Branch(
            (*self.chosen, candidate), self.cost + size**2, self.product * size, left, self.tried.union(tried)
        )


def cheapest_cover(sizes: Sequence[int], apart: Bools, *, states: int, work: Work) -> Cover:
    """The cheapest family of candidates that separates every pair; some candidate must separate each.

    apart[c, i] says whether candidate c separates pair i. Families that could not number `states` states are left out.
    """
    separates = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in apart]
    everything = (1 << apart.shape[1]) - 1
    useful = _undominated(sizes, separates)
    by_bit = [[c for c in useful if separates[c] >> bit & 1] for bit in range(apart.shape[1])]
    at_least = CheapestProduct({sizes[c] for c in useful})
    best = _greedy(sizes, separates, everything, useful)
    cheapest = sum(sizes[c] ** 2 for c in best)
    waiting = [_Branch((), 0, 1, everything, frozenset())]
    while waiting and work.left:
        here = waiting.pop()
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
        waiting.extend(reversed(branches))
    return Cover(tuple(sorted(best, key=lambda c: -sizes[c])), proven=not waiting)


def _undominated(sizes: Sequence[int], separates: Sequence[int]) -> list[int]:
    """Candidates, cheapest first, without those that a cheaper one makes superfluous."""
    kept: list[int] = []
    for c in sorted(range(len(sizes)), key=lambda c: (sizes[c], -separates[c].bit_count(), c)):
        if not any(separates[c] & ~separates[k] == 0 for k in kept):
            kept.append(c)
    return kept


def _greedy(sizes: Sequence[int], separates: Sequence[int], everything: int, useful: list[int]) -> tuple[int, ...]:
    """Always the candidate that separates most for its cost; then drop what became superfluous."""
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
    """The least sum of squares of sizes whose product is at least so much."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self.sizes = [d for d in sizes if d > 1]
        self.known = {1: 0}

    def __call__(self, wanted: int) -> int:
        if wanted not in self.known:
            self.known[wanted] = min(d**2 + self(-(-wanted // d)) for d in self.sizes)
        return self.known[wanted]

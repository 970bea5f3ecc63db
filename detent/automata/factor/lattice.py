"""Is there only the trivial factoring? It is so when every congruence that merges anything merges the same two states.

    n  states

Such a pair generates the monolith, the one finest congruence beside equality. Look for a finest congruence by going
down from any pair; then see whether every other pair generates one above it. A pair that a word sends to a settled pair
is settled too, so few pairs have to be tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import MISSING, Bools, Ints
from detent.automata.congruence import Pair, PairsBefore, merge, merge_steps, telling_pairs
from detent.automata.factor.budget import Work
from detent.errors import BudgetExceeded

# -- All congruences of a machine, when there are not too many.


@dataclass(frozen=True, eq=False)
class Lattice:
    """Every congruence of a machine but the one that merges all states."""

    congruences: Ints
    """count n: for each congruence and state the first state of its block; equality is the first of them."""
    atoms: Ints
    """atoms 2: a pair of states for each of the finest congruences that merge anything."""

    @property
    def sizes(self) -> Ints:
        """How many blocks each congruence has."""
        return (self.congruences == np.arange(self.congruences.shape[1])).sum(axis=1)

    @property
    def separates(self) -> Bools:
        """count atoms: which congruences keep the pair of which atom apart; meeting in equality is leaving out none."""
        return self.congruences[:, self.atoms[:, 0]] != self.congruences[:, self.atoms[:, 1]]


def lattice(tables: Ints, work: Work) -> Lattice:
    """All congruences; BudgetExceeded when they are too many to be found with this work."""
    n = tables.shape[1]
    pairs = list(telling_pairs(tables))
    work.claim(len(pairs) * merge_steps(tables))
    principal: dict[bytes, Pair] = {}
    for pair in pairs:
        principal.setdefault(first_states(merge(tables, [pair])).tobytes(), pair)
    generators = np.frombuffer(b"".join(principal), np.int64).reshape(-1, n)
    generated_by = np.array(list(principal.values()), np.int64).reshape(-1, 2)

    sweep = _Joins(generators)
    partial = bool((tables == MISSING).any())  # then a join may have to be merged further
    found = [np.arange(n)]
    kept, seen = {found[0].tobytes()}, {found[0].tobytes()}
    for congruence in found:
        work.claim(generators.size // 4 + 300)
        for joined in sweep(congruence):
            if (key := joined.tobytes()) in seen:
                continue
            seen.add(key)
            if partial:
                work.claim(merge_steps(tables))
                joined = first_states(merge(tables, enumerate(joined.tolist())))
            if joined.any() and (key := joined.tobytes()) not in kept:
                kept.add(key)
                found.append(joined)
    # a principal congruence is an atom when it merges the pair of no other
    merges = generators[:, generated_by[:, 0]] == generators[:, generated_by[:, 1]]
    return Lattice(np.stack(found), generated_by[merges.sum(axis=1) == 1])


def first_states(partition: Ints) -> Ints:
    """For each state the first state of its block."""
    return np.unique(partition, return_index=True)[1][partition]


class _Joins:
    """Joins of one congruence with all generators (P n) at once: spread the smallest label until it spreads no more."""

    def __init__(self, generators: Ints) -> None:
        self.shape = P, n = generators.shape
        self.by_generator = _Blocks((generators + n * np.arange(P)[:, None]).ravel())

    def __call__(self, congruence: Ints) -> Ints:
        by_congruence = _Blocks(congruence)
        labels = np.broadcast_to(congruence, self.shape)
        while True:
            spread = by_congruence.smallest(self.by_generator.smallest(labels.ravel()).reshape(self.shape))
            if np.array_equal(spread, labels):
                return labels
            labels = spread


class _Blocks:
    """Equal labels, gathered so that the smallest of what belongs to each can be taken in one go."""

    def __init__(self, labels: Ints) -> None:
        self.order = np.argsort(labels, kind="stable")
        begins = np.diff(labels[self.order], prepend=-1) != 0
        self.begins = np.flatnonzero(begins)
        self.block = np.empty(len(labels), np.int64)
        self.block[self.order] = np.cumsum(begins) - 1

    def smallest(self, values: Ints) -> Ints:
        """For each place of the last axis the smallest value in its block."""
        return np.minimum.reduceat(values[..., self.order], self.begins, axis=-1)[..., self.block]


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

"""The congruences of a machine: all of them (`lattice`), or the one that all others contain (`monolith`).

    n  states

`lattice` joins principal congruences until nothing new appears (Freese, "Computing congruences efficiently", Algebra
Universalis 59, 2008). `monolith` decides whether there is only the trivial factoring: it exists when every congruence
that merges anything merges the same two states. It descends from any pair to a finest congruence, then checks that
every other pair generates one above it; a pair that a word sends to a decided pair is decided too, so few pairs are
tried.

`Work` is the budget that all steps of the search are charged to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata.congruence import Pair, PairPredecessors, generating_pairs, merge, merge_steps
from exactstate.errors import BudgetExceeded


class Work:
    """A budget of steps rather than seconds, so that a search gives the same result on every machine.

    A step is about one table entry visited, a third of a microsecond.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.spent = budget, 0

    def spend(self, steps: int) -> None:
        """Charge so many steps."""
        self.spent += steps

    @property
    def left(self) -> bool:
        return self.spent < self.budget

    def claim(self, steps: int) -> None:
        """Charge so many steps, or raise BudgetExceeded before they are taken."""
        if self.spent + steps > self.budget:
            raise BudgetExceeded(f"this takes more than the budget of {self.budget} steps; raise the budget.")
        self.spent += steps


@dataclass(frozen=True, eq=False)
class Lattice:
    """Every congruence of a machine except the one that merges all states."""

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
        """count atoms: which congruence separates which atom's pair; a family that separates all meets in equality."""
        return self.congruences[:, self.atoms[:, 0]] != self.congruences[:, self.atoms[:, 1]]


def lattice(tables: Ints, work: Work) -> Lattice:
    """All congruences; BudgetExceeded when the work does not suffice."""
    n = tables.shape[1]
    pairs = list(generating_pairs(tables))
    work.claim(len(pairs) * merge_steps(tables))
    principal: dict[bytes, Pair] = {}
    for pair in pairs:
        principal.setdefault(first_states(merge(tables, [pair])).tobytes(), pair)
    generators = np.frombuffer(b"".join(principal), np.int64).reshape(-1, n)
    generated_by = np.array(list(principal.values()), np.int64).reshape(-1, 2)

    joins = _Joins(generators)
    partial = bool((tables == MISSING).any())  # then a join need not be a congruence
    found = [np.arange(n)]
    kept, seen = {found[0].tobytes()}, {found[0].tobytes()}
    for congruence in found:
        work.claim(generators.size // 4 + 300)
        for joined in joins(congruence):
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
    """Joins of one congruence with all generators (P n) at once, by propagating the smallest label to a fixed point."""

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
    """Blocks of equal labels, sorted so that minima over all blocks take one reduction."""

    def __init__(self, labels: Ints) -> None:
        self.order = np.argsort(labels, kind="stable")
        begins = np.diff(labels[self.order], prepend=-1) != 0
        self.begins = np.flatnonzero(begins)
        self.block = np.empty(len(labels), np.int64)
        self.block[self.order] = np.cumsum(begins) - 1

    def smallest(self, values: Ints) -> Ints:
        """For each position of the last axis the smallest value in its block."""
        return np.minimum.reduceat(values[..., self.order], self.begins, axis=-1)[..., self.block]


MAX_MONOLITH_STATES = 2_000
"""The largest machine whose pairs are all tried."""
_CHUNK = 4_096


@dataclass(frozen=True)
class Monolith:
    """A pair in every congruence but equality, or two pairs whose congruences meet in equality."""

    pair: Pair
    other: Pair | None
    """None when `pair` is in every congruence but equality."""


def monolith(tables: Ints, work: Work) -> Monolith:
    """The monolith's pair, or two pairs that prove there is none; BudgetExceeded when the work does not suffice."""
    n = tables.shape[1]
    if n > MAX_MONOLITH_STATES:
        raise BudgetExceeded(
            f"the search for a monolith takes machines of up to {MAX_MONOLITH_STATES} states; this one has {n}."
        )
    work.claim(n * tables.size // 16)
    before = PairPredecessors(tables)
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


def _apart(tables: Ints, before: PairPredecessors, settled: Bools, pair: Pair, among: Bools, work: Work) -> Pair | None:
    """A pair in `among` whose congruence separates `pair`, or None; updates `settled`."""
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

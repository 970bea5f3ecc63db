"""All congruences of a machine, when there are not too many.

    n  states     P  principal congruences

Every congruence is a join of principal ones, so joining with these until nothing new comes finds all. A congruence is
kept as n labels, the first state of each state's block, and joined with all principal ones in one sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata.congruences import telling_pairs
from detent.automata.factoring.work import Work
from detent.automata.merging import NEVER, Pair, merge, merge_steps
from detent.automata.running import Bools, Ints


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
    partial = bool((tables == NEVER).any())  # then a join may have to be merged further
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

"""Share the state of a machine among heads whose sizes are given.

    n  states     d  indices of a head

A head of d indices follows a congruence of at most d blocks. The cheapest family is tried first; if it does not fit,
all congruences are listed and one is chosen for each head until together they tell all states apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detent.automata.factoring.heads import BUDGET, Factoring, factor
from detent.automata.factoring.lattice import lattice
from detent.automata.factoring.work import Work
from detent.automata.machine import Semiautomaton
from detent.automata.merging import NEVER
from detent.automata.refinement import numbered
from detent.automata.running import Bools, Ints
from detent.errors import BudgetExceeded


def factor_into(
    machine: Semiautomaton, heads: Sequence[int], *, occurs: Bools | None = None, seed: int = 0, budget: int = BUDGET
) -> Factoring | None:
    """A congruence for every head, in the order of the heads, that together carry the machine; None if none is found.

    >>> from detent.automata import alternating
    >>> factor_into(alternating(5), (5, 12)).sizes
    (5, 12)
    """
    n = machine.n_states
    if np.prod([min(d, n) for d in heads], dtype=object) < n:
        return None
    if max(heads) >= n:  # one head is enough, the others repeat it as far as they can: not at all
        largest = int(np.argmax(heads))
        return _factoring(machine, [np.arange(n) if h == largest else None for h in range(len(heads))], occurs)
    cheapest = factor(machine, occurs=occurs, seed=seed, budget=budget)
    fitted = _fit(cheapest.partitions, heads)
    if fitted is None:
        known = np.where(occurs, machine.tables.astype(np.int64), NEVER) if occurs is not None else machine.tables
        fitted = _choose(known.astype(np.int64), heads, budget)
    return None if fitted is None else _factoring(machine, fitted, occurs)


def _factoring(machine: Semiautomaton, chosen: Sequence[Ints | None], occurs: Bools | None) -> Factoring:
    """Heads that got no congruence follow the one that merges everything: they stay where they are."""
    nothing = np.zeros(machine.n_states, np.int64)
    partitions = tuple(nothing if chi is None else np.asarray(chi) for chi in chosen)
    return Factoring(machine, partitions, complete=False, occurs=occurs)


def _fit(partitions: Sequence[Ints], heads: Sequence[int]) -> list[Ints | None] | None:
    """The partitions in heads that are large enough for them, the largest in the largest."""
    if len(partitions) > len(heads):
        return None
    order = np.argsort([-d for d in heads], kind="stable")
    largest_first = sorted(partitions, key=lambda chi: -int(chi.max()))
    placed: list[Ints | None] = [None] * len(heads)
    for head, chi in zip(order, largest_first, strict=False):
        if int(chi.max()) + 1 > heads[head]:
            return None
        placed[head] = chi
    return placed


def _choose(tables: Ints, heads: Sequence[int], budget: int) -> list[Ints | None] | None:
    """One of all congruences for every head, by trying; the finest that fit come first."""
    try:
        known = lattice(tables, Work(budget))
    except BudgetExceeded:
        return None
    sizes, apart = known.sizes, known.separates
    order = list(np.argsort([-d for d in heads], kind="stable"))
    fits = {d: [int(c) for c in np.argsort(-sizes, kind="stable") if sizes[c] <= d] for d in set(heads)}
    work = Work(budget)
    chosen: list[int] = []

    def place(covered: Bools) -> bool:
        if covered.all():
            return True
        if len(chosen) == len(order):
            return False
        for c in fits[heads[order[len(chosen)]]]:
            if not work.left:
                return False
            work.spend(len(covered))
            if (apart[c] & ~covered).any():
                chosen.append(c)
                if place(covered | apart[c]):
                    return True
                chosen.pop()
        return False

    if not place(np.zeros(apart.shape[1], bool)):
        return None
    placed: list[Ints | None] = [None] * len(heads)
    for head, c in zip(order, chosen, strict=False):
        placed[head] = numbered(known.congruences[c])
    return placed

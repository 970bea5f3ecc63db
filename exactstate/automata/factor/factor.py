"""Factor the state of a machine into heads: congruences that together separate all states.

    A  symbols     n  states     d  indices of a head

`factor` finds the cheapest heads, `factor_into` heads of given sizes: a head of d indices tracks a congruence of at
most d blocks. See the package docstring for the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata.congruence import equivalent_tables, meet, quotient_tables, respects
from exactstate.automata.factor.cover import cheapest_cover
from exactstate.automata.factor.lattice import Work, lattice, monolith
from exactstate.automata.factor.search import search
from exactstate.automata.machine import Semiautomaton
from exactstate.automata.minimize import numbered
from exactstate.errors import BudgetExceeded, InvalidInput

BUDGET = 12_000_000
"""The default budget of a search in steps: some seconds."""


@dataclass(frozen=True, eq=False)
class Factoring:
    """Heads that together determine the state of a machine; checked on construction."""

    machine: Semiautomaton = field(repr=False)
    partitions: tuple[Ints, ...] = field(repr=False)
    """For each head, chi: the index it is in at each state (n)."""
    complete: bool
    """Whether it is proven that no family of congruences is cheaper."""
    always_merged: tuple[str, str] | None = None
    """Two states that every congruence but equality merges, if there are: then only one head is possible."""
    occurs: Bools | None = field(default=None, repr=False)
    """A n: whether a symbol is ever read in a state; None for always."""

    def __post_init__(self) -> None:
        check_factoring(self.machine, self.partitions, occurs=self.occurs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """d: how many indices each head needs."""
        return tuple(int(chi.max()) + 1 for chi in self.partitions)

    @property
    def cost(self) -> int:
        """The sum of the squared sizes."""
        return sum(d * d for d in self.sizes)

    @property
    def trivial(self) -> bool:
        """Whether a single head holds the whole state."""
        return len(self.partitions) == 1

    @cached_property
    def tables(self) -> tuple[Ints, ...]:
        """For each head, sigma (A d): where each symbol sends each index; what never occurs changes nothing."""
        known = _known(self.machine, self.occurs)
        heads = (quotient_tables(known, chi) for chi in self.partitions)
        return tuple(np.where(sigma == MISSING, np.arange(sigma.shape[1]), sigma) for sigma in heads)

    def explain(self) -> str:
        """The heads, their cost, and whether it is proven that nothing is cheaper."""
        n = self.machine.n_states
        if not self.trivial:
            sizes = ", ".join(map(str, self.sizes[:-1])) + f" and {self.sizes[-1]}"
            sure = "no congruences are cheaper" if self.complete else "the cheapest found, not proven cheapest"
            where = "" if self.occurs is None else ", on the transitions that occur,"
            return f"heads of {sizes} indices hold the {n} states{where} at cost {self.cost} instead of {n * n}; {sure}"
        head = f"one head of {n} indices, cost {self.cost}"
        if self.always_merged is not None:
            p, q = self.always_merged
            why = f"every congruence but equality merges {p!r} and {q!r}"
            return f"{head}: only the trivial factoring exists, because {why}"
        if self.complete:
            return f"{head}: " + (
                "there is only one state" if n == 1 else "other factorings exist, but none is cheaper"
            )
        return f"{head}: no cheaper factoring was found, which does not prove that there is none"


def factor(machine: Semiautomaton, *, occurs: Bools | None = None, seed: int = 0, budget: int = BUDGET) -> Factoring:
    """The cheapest heads for a machine, or the cheapest that a search found; deterministic for a seed and budget.

    Outputs are ignored: `minimize` first if only they matter. `occurs` (A n) says which symbols are ever read in which
    states; the heads are then correct on words of such transitions only.

    >>> from exactstate.automata import symmetric
    >>> factor(symmetric(4)).sizes
    (4, 3, 2)
    """
    n, equality = machine.n_states, (np.arange(machine.n_states),)
    if n == 1:
        return Factoring(machine, equality, complete=True, occurs=occurs)
    tables = equivalent_tables(_known(machine, occurs))
    try:
        lowest = monolith(tables, Work(budget // 2))
        if lowest.other is None:
            names = (machine.states[lowest.pair[0]], machine.states[lowest.pair[1]])
            return Factoring(machine, equality, complete=True, always_merged=names, occurs=occurs)
    except BudgetExceeded:
        pass
    try:
        known = lattice(tables, Work(budget // 2))
    except BudgetExceeded:
        family, proven = search(tables, np.random.default_rng(seed), Work(budget)), False
    else:
        chosen = cheapest_cover(known.sizes.tolist(), known.separates, states=n, work=Work(budget))
        family, proven = [numbered(known.congruences[c]) for c in chosen.chosen], chosen.proven
    largest_first = sorted(family, key=lambda chi: (-int(chi.max()), chi.tolist()))
    return Factoring(machine, tuple(largest_first), complete=proven, occurs=occurs)


def factor_into(
    machine: Semiautomaton, heads: Sequence[int], *, occurs: Bools | None = None, seed: int = 0, budget: int = BUDGET
) -> Factoring | None:
    """Congruences for heads of these sizes, in their order, that together separate all states; None if none are found.

    >>> from exactstate.automata import alternating
    >>> factor_into(alternating(5), (5, 12)).sizes
    (5, 12)
    """
    n = machine.n_states
    if np.prod([min(d, n) for d in heads], dtype=object) < n:
        return None
    if max(heads) >= n:  # one head holds the whole state, the others stay constant
        largest = int(np.argmax(heads))
        return _factoring(machine, [np.arange(n) if h == largest else None for h in range(len(heads))], occurs)
    cheapest = factor(machine, occurs=occurs, seed=seed, budget=budget)
    fitted = _fit(cheapest.partitions, heads)
    if fitted is None:
        known = np.where(occurs, machine.tables.astype(np.int64), MISSING) if occurs is not None else machine.tables
        fitted = _choose(known.astype(np.int64), heads, budget)
    return None if fitted is None else _factoring(machine, fitted, occurs)


def check_factoring(machine: Semiautomaton, partitions: tuple[Ints, ...], *, occurs: Bools | None = None) -> None:
    """Refuse heads that are not congruences, or that together do not separate all states."""
    known = _known(machine, occurs)
    together: Ints = np.zeros(machine.n_states, np.int64)
    for head, chi in enumerate(partitions):
        if not respects(known, numbered(chi)):
            raise InvalidInput(f"head {head} cannot track this machine: some symbol sends one of its blocks to two.")
        together = meet(together, chi)
    twice = np.flatnonzero(together != np.arange(machine.n_states))
    if len(twice):
        p = int(np.flatnonzero(together == together[twice[0]])[0])
        one, other = machine.states[p], machine.states[twice[0]]
        raise InvalidInput(f"these heads do not separate the states {one!r} and {other!r}.")


def _known(machine: Semiautomaton, occurs: Bools | None) -> Ints:
    """The tables, with MISSING where nothing occurs."""
    tables = machine.tables.astype(np.int64)
    if occurs is None:
        return tables
    if np.shape(occurs) != tables.shape:
        raise InvalidInput(
            f"occurs has one entry for each symbol and state, shape {tables.shape}; got {np.shape(occurs)}."
        )
    return np.where(occurs, tables, MISSING)


def _factoring(machine: Semiautomaton, chosen: Sequence[Ints | None], occurs: Bools | None) -> Factoring:
    """Heads without a congruence get the one that merges all states: they stay constant."""
    nothing = np.zeros(machine.n_states, np.int64)
    partitions = tuple(nothing if chi is None else np.asarray(chi) for chi in chosen)
    return Factoring(machine, partitions, complete=False, occurs=occurs)


def _fit(partitions: Sequence[Ints], heads: Sequence[int]) -> list[Ints | None] | None:
    """The partitions assigned to heads, the largest to the largest; None if some do not fit."""
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
    """A congruence for every head by exhaustive search, the finest that fit first."""
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

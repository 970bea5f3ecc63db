"""Share the state of a machine among heads: congruences that together tell all states apart, at the smallest cost.

    A  symbols     n  states     d  indices of a head

A head of d indices can follow a congruence of d blocks, and heads side by side follow the machine when their
congruences meet in equality. The cost is the sum of d squared, the number of logits. When the congruences can be listed
the answer is proven cheapest; when every one of them merges the same two states there is but one head; else it is the
best that a search found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from detent.automata.congruences import essential, is_congruence, meet
from detent.automata.factoring.cover import cheapest_cover
from detent.automata.factoring.lattice import lattice
from detent.automata.factoring.monolith import monolith
from detent.automata.factoring.search import search
from detent.automata.factoring.work import Work
from detent.automata.machine import Semiautomaton
from detent.automata.refinement import numbered
from detent.automata.running import Ints
from detent.errors import BudgetExceeded, InvalidInput

BUDGET = 12_000_000
"""Steps of work spent on a search unless told otherwise: some seconds."""


@dataclass(frozen=True, eq=False)
class Factoring:
    """Heads that together carry the state of a machine; checked when made."""

    machine: Semiautomaton = field(repr=False)
    partitions: tuple[Ints, ...] = field(repr=False)
    """For each head, chi: the index it is in at each state (n)."""
    complete: bool
    """Whether it is proven that no family of congruences is cheaper."""
    always_merged: tuple[str, str] | None = None
    """Two states that every congruence merges which merges anything, if there are: then only one head is possible."""

    def __post_init__(self) -> None:
        check_factoring(self.machine, self.partitions)

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
        """Whether a single head carries the whole state."""
        return len(self.partitions) == 1

    @cached_property
    def tables(self) -> tuple[Ints, ...]:
        """For each head, sigma (A d): where each symbol sends each of its indices."""
        heads = []
        for chi in self.partitions:
            first = np.unique(chi, return_index=True)[1]
            heads.append(chi[self.machine.tables[:, first]])
        return tuple(heads)

    def explain(self) -> str:
        """The heads, their cost, and how sure it is that there is nothing cheaper."""
        n = self.machine.n_states
        if not self.trivial:
            sizes = ", ".join(map(str, self.sizes[:-1])) + f" and {self.sizes[-1]}"
            sure = "no congruences do it cheaper" if self.complete else "the cheapest found, not proven cheapest"
            return f"heads of {sizes} indices carry the {n} states at cost {self.cost} instead of {n * n}; {sure}"
        head = f"one head of {n} indices, cost {self.cost}"
        if self.always_merged is not None:
            p, q = self.always_merged
            why = f"every congruence that merges anything merges {p!r} and {q!r}"
            return f"{head}: only the trivial factoring exists, for {why}"
        if self.complete:
            return f"{head}: " + (
                "there is only one state" if n == 1 else "other factorings exist, but none is cheaper"
            )
        return f"{head}: no cheaper factoring was found, which does not prove that there is none"


def factor(machine: Semiautomaton, *, seed: int = 0, budget: int = BUDGET) -> Factoring:
    """The cheapest heads for a machine, or the cheapest that a search found; the same for the same seed and budget.

    Only the states and symbols count, so drop and merge states first (`minimize`) when only the outputs matter.

    >>> from detent.automata import symmetric
    >>> factor(symmetric(4)).sizes
    (4, 3, 2)
    """
    n, equality = machine.n_states, (np.arange(machine.n_states),)
    if n == 1:
        return Factoring(machine, equality, complete=True)
    tables = essential(machine.tables)
    try:
        lowest = monolith(tables, Work(budget // 2))
        if lowest.other is None:
            p, q = lowest.pair
            return Factoring(machine, equality, complete=True, always_merged=(machine.states[p], machine.states[q]))
    except BudgetExceeded:
        pass
    try:
        known = lattice(tables, Work(budget // 2))
    except BudgetExceeded:
        found = search(tables, np.random.default_rng(seed), Work(budget))
        return Factoring(machine, _sorted(found), complete=False)
    chosen = cheapest_cover(known.sizes.tolist(), known.separates, states=n, work=Work(budget))
    return Factoring(machine, _sorted([numbered(known.congruences[c]) for c in chosen.chosen]), complete=chosen.proven)


def check_factoring(machine: Semiautomaton, partitions: tuple[Ints, ...]) -> None:
    """Refuse heads that some symbol tears, or that leave two states together."""
    for head, chi in enumerate(partitions):
        if not is_congruence(machine, chi):
            raise InvalidInput(f"head {head} cannot follow this machine: some symbol sends one of its blocks to two.")
    together = meet(np.zeros(machine.n_states, np.int64), *partitions)
    q = next((q for q, block in enumerate(together.tolist()) if block != q), None)
    if q is not None:
        p = int(np.flatnonzero(together == together[q])[0])
        raise InvalidInput(f"these heads do not tell state {machine.states[p]!r} from state {machine.states[q]!r}.")


def _sorted(family: list[Ints]) -> tuple[Ints, ...]:
    """Largest heads first."""
    return tuple(sorted(family, key=lambda chi: (-int(chi.max()), chi.tolist())))

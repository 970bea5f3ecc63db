"""Does a machine count? Whether its words make a group, or hide one, or none at all.

    w  a word     f  what it does to the states

The powers of f end in a cyclic group whose order is the least common multiple of the lengths of f's circles, so a word
hides a group of more than one element exactly when it leads some states round a circle of more than one. A machine
without such a word is aperiodic. To be sure of it takes the whole transition monoid, so the search is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from detent.automata.facts.definite_order import definite
from detent.automata.facts.transitions import ELEMENTS, levels, transition_monoid
from detent.automata.facts.wording import spelt
from detent.automata.machine import Semiautomaton
from detent.automata.running import Ints


@dataclass(frozen=True)
class Group:
    """Whether the transition monoid is a group: whether every symbol permutes the states. True if it is."""

    symbol: str | None
    """A symbol that merges two states, when there is one."""
    merged: tuple[str, str] | None
    """Those two states."""

    def __bool__(self) -> bool:
        return self.symbol is None

    def explain(self) -> str:
        if self.merged is None:
            return "a group: every symbol permutes the states"
        one, other = self.merged
        return f"not a group: {self.symbol!r} sends {one!r} and {other!r} to the same state"


def group(machine: Semiautomaton) -> Group:
    """Whether the transition monoid is a group, or which symbol merges which states."""
    for symbol, table in zip(machine.symbols, machine.tables, strict=True):
        targets, first, count = np.unique(table, return_index=True, return_counts=True)
        if len(targets) < machine.n_states:
            twice = int(count.argmax())
            other = int(np.flatnonzero(table == targets[twice])[1])
            return Group(symbol, (machine.states[first[twice]], machine.states[other]))
    return Group(None, None)


@dataclass(frozen=True)
class Subgroup:
    """A word whose powers, from `index` on, are a cyclic group of `order` elements, more than one."""

    word: tuple[str, ...]
    index: int
    order: int

    def explain(self) -> str:
        since = f" from power {self.index} on" if self.index > 1 else ""
        return f"the powers of {spelt(self.word)}{since} are a group of order {self.order}"


@dataclass(frozen=True)
class Aperiodic:
    """Whether no word hides a group, or a word that does."""

    answer: bool | None
    """None when the search was stopped before it could tell."""
    subgroup: Subgroup | None = None
    """The witness against."""
    looked_at: int = 0
    """How many elements of the transition monoid were looked at."""

    def explain(self) -> str:
        if self.subgroup is not None:
            return f"not aperiodic: {self.subgroup.explain()}"
        if self.answer:
            return "aperiodic: no word leads states round a circle"
        return f"perhaps aperiodic: no subgroup among the first {self.looked_at} elements of the transition monoid"


def aperiodic(machine: Semiautomaton, *, limit: int = ELEMENTS) -> Aperiodic:
    """Whether no word leads states round a circle of more than one, looking at `limit` elements at most."""
    if definite(machine):
        return Aperiodic(answer=True)
    looked_at = 0
    for maps, _, _, complete in levels(machine.tables, limit):
        circling = np.flatnonzero([_circles(f) for f in maps])
        if len(circling):
            element = looked_at + int(circling[0])
            word = transition_monoid(machine, limit=element + 1).word(element)
            return Aperiodic(answer=False, subgroup=cyclic_powers(word, maps[circling[0]]), looked_at=element + 1)
        looked_at += len(maps)
        if complete:
            return Aperiodic(answer=True, looked_at=looked_at)
    return Aperiodic(answer=None, looked_at=looked_at)


def cyclic_powers(word: tuple[str, ...], acts: Ints) -> Subgroup:
    """When the powers of a word that acts so begin to repeat, and how many of them do."""
    acts = acts.astype(np.int64)
    image, index = np.unique(acts), 1
    while len(after := np.unique(acts[image])) < len(image):
        image, index = after, index + 1
    order, left = 1, set(image.tolist())
    while left:
        state, length = left.pop(), 1
        while (state := int(acts[state])) in left:
            left.remove(state)
            length += 1
        order = lcm(order, length)
    return Subgroup(word, index, order)


def _circles(acts: Ints) -> bool:
    """Whether some state goes round a circle of more than one."""
    within = np.unique(acts)
    while len(after := np.unique(acts[within])) < len(within):
        within = after
    return not np.array_equal(acts[within], within)

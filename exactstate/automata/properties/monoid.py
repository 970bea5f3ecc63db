"""The transition monoid of a machine, and what it decides: whether the machine is a group, whether it is aperiodic.

    N  elements     n  states

The powers of an element f end in a cyclic group whose order is the least common multiple of the lengths of f's cycles,
so a word generates a group of more than one element exactly when it has a cycle of more than one state. A machine
without such a word is aperiodic (Schutzenberger, "On finite monoids having only trivial subgroups", 1965). The
transition monoid may have up to n^n elements, so its enumeration is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lcm

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Semiautomaton, format_word
from exactstate.automata.properties.definite import definite
from exactstate.automata.run import smallest_dtype

MAX_ELEMENTS = 20_000
"""The default largest number of elements that are enumerated."""
_MAX_ENTRIES = 1 << 24


@dataclass(frozen=True, eq=False)
class TransitionMonoid:
    """The maps of the states that words induce, breadth-first: the first is the identity, of the empty word."""

    machine: Semiautomaton
    maps: Ints
    """N n: maps[i, q] is where element i sends state q."""
    before: Ints
    """N: the element before the last symbol of its shortest word; -1 for the identity."""
    last: Ints
    """N: that last symbol."""
    complete: bool
    """Whether these are all elements."""

    def __len__(self) -> int:
        return len(self.maps)

    def word(self, element: int) -> tuple[str, ...]:
        """A shortest word that acts as this element."""
        symbols = []
        while self.before[element] >= 0:
            symbols.append(self.machine.symbols[self.last[element]])
            element = int(self.before[element])
        return tuple(reversed(symbols))

    @cached_property
    def idempotents(self) -> Ints:
        """The elements f with f f = f."""
        return np.array([i for i, once in enumerate(self.maps) if np.array_equal(once[once], once)])

    def explain(self) -> str:
        count = (
            f"{len(self)} elements" if self.complete else f"more than {len(self) - 1} elements (enumeration stopped)"
        )
        return f"transition monoid of {count}, {len(self.idempotents)} of them idempotent"


def transition_monoid(machine: Semiautomaton, *, limit: int = MAX_ELEMENTS) -> TransitionMonoid:
    """The transition monoid, up to `limit` elements; fewer for large machines, to save memory."""
    maps, before, last, complete = zip(*levels(machine.tables, limit), strict=True)
    return TransitionMonoid(
        machine, np.concatenate(maps), np.concatenate(before), np.concatenate(last), complete=complete[-1]
    )


def levels(tables: Ints, limit: int) -> Iterator[tuple[Ints, Ints, Ints, bool]]:
    """Per word length: (new maps, preceding element, last symbol, whether the enumeration is complete)."""
    A, n = tables.shape
    limit = max(1, min(limit, _MAX_ENTRIES // n))
    tables = tables.astype(smallest_dtype(n))
    level = np.arange(n, dtype=tables.dtype)[None, :]
    seen = {level.tobytes()}
    begin, width = 0, level.nbytes
    yield level, np.array([-1]), np.array([-1]), False
    while True:
        fresh: list[bytes] = []
        before: list[int] = []
        last: list[int] = []
        for element, once in enumerate(level, start=begin):
            raw = tables[:, once].tobytes()
            for a in range(A):
                key = raw[a * width : (a + 1) * width]
                if key in seen:
                    continue
                if len(seen) >= limit:
                    if fresh:
                        yield _stack(fresh, tables), np.array(before), np.array(last), False
                    return
                seen.add(key)
                fresh.append(key)
                before.append(element)
                last.append(a)
        if not fresh:
            yield level[:0], np.array([], np.int64), np.array([], np.int64), True
            return
        begin += len(level)
        level = _stack(fresh, tables)
        yield level, np.array(before), np.array(last), False


def _stack(keys: list[bytes], tables: Ints) -> Ints:
    return np.frombuffer(b"".join(keys), tables.dtype).reshape(len(keys), -1)


@dataclass(frozen=True)
class Group:
    """Whether the transition monoid is a group, that is, whether every symbol permutes the states. True if it is."""

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
    """A word whose powers from `index` on form a cyclic group of order `order` > 1."""

    word: tuple[str, ...]
    index: int
    order: int

    def explain(self) -> str:
        since = f" from power {self.index} on" if self.index > 1 else ""
        return f"the powers of {format_word(self.word)}{since} are a group of order {self.order}"


@dataclass(frozen=True)
class Aperiodic:
    """Whether every subgroup of the transition monoid is trivial, or a word that generates another one."""

    answer: bool | None
    """None when the enumeration was stopped before an answer."""
    subgroup: Subgroup | None = None
    """The witness against."""
    enumerated: int = 0
    """The number of elements of the transition monoid that were enumerated."""

    def explain(self) -> str:
        if self.subgroup is not None:
            return f"not aperiodic: {self.subgroup.explain()}"
        if self.answer:
            return "aperiodic: no word has a cycle of more than one state"
        return f"perhaps aperiodic: no subgroup among the first {self.enumerated} elements of the transition monoid"


def aperiodic(machine: Semiautomaton, *, limit: int = MAX_ELEMENTS) -> Aperiodic:
    """Whether no word has a cycle of more than one state, enumerating at most `limit` elements."""
    if definite(machine):
        return Aperiodic(answer=True)
    enumerated = 0
    for maps, _, _, complete in levels(machine.tables, limit):
        cyclic = np.flatnonzero([_has_cycle(f) for f in maps])
        if len(cyclic):
            element = enumerated + int(cyclic[0])
            word = transition_monoid(machine, limit=element + 1).word(element)
            return Aperiodic(answer=False, subgroup=cyclic_powers(word, maps[cyclic[0]]), enumerated=element + 1)
        enumerated += len(maps)
        if complete:
            return Aperiodic(answer=True, enumerated=enumerated)
    return Aperiodic(answer=None, enumerated=enumerated)


def cyclic_powers(word: tuple[str, ...], acts: Ints) -> Subgroup:
    """The index and period of the powers of a word that acts as this map."""
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


def _has_cycle(acts: Ints) -> bool:
    """Whether the map has a cycle of more than one state."""
    within = np.unique(acts)
    while len(after := np.unique(acts[within])) < len(within):
        within = after
    return not np.array_equal(acts[within], within)

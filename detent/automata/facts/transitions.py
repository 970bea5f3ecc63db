"""The transition monoid: every map of the states that some word makes.

    A  symbols     n  states     N  elements

A monoid can have n ** n elements, so the search is bounded and says whether it came to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from detent.automata.machine import Semiautomaton
from detent.automata.running import Ints, smallest_dtype

ELEMENTS = 20_000
"""How many elements are looked at unless told otherwise."""
_ENTRIES = 1 << 24


@dataclass(frozen=True, eq=False)
class TransitionMonoid:
    """The maps that words make, found breadth-first: the first is the identity, of the empty word."""

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
        spelt = []
        while self.before[element] >= 0:
            spelt.append(self.machine.symbols[self.last[element]])
            element = int(self.before[element])
        return tuple(reversed(spelt))

    @cached_property
    def idempotents(self) -> Ints:
        """The elements that change nothing when done twice."""
        return np.array([i for i, once in enumerate(self.maps) if np.array_equal(once[once], once)])

    def explain(self) -> str:
        count = f"{len(self)} elements" if self.complete else f"more than {len(self) - 1} elements (stopped there)"
        return f"transition monoid of {count}, {len(self.idempotents)} of them idempotent"


def transition_monoid(machine: Semiautomaton, *, limit: int = ELEMENTS) -> TransitionMonoid:
    """The transition monoid, as far as `limit` elements reach; large machines are stopped earlier to save memory."""
    maps, before, last, complete = zip(*levels(machine.tables, limit), strict=True)
    return TransitionMonoid(
        machine, np.concatenate(maps), np.concatenate(before), np.concatenate(last), complete=complete[-1]
    )


def levels(tables: Ints, limit: int) -> Iterator[tuple[Ints, Ints, Ints, bool]]:
    """By length of their words: (new maps, element before, last symbol, whether everything has been found)."""
    A, n = tables.shape
    limit = max(1, min(limit, _ENTRIES // n))
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

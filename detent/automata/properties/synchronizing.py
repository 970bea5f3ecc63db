"""Is there a word after which the state is known, wherever the machine began? The word, or two states no word merges.

    n  states

A machine is synchronizing when every two states can be merged. Which can, and how fast, is found backwards from the
merged ones over all pairs; the reset word then merges the nearest two of the states still possible, until one is left.
It is short but not always shortest, which would be a hard problem (Eppstein 1990).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import Ints
from detent.automata.congruence import PairsBefore
from detent.automata.machine import Semiautomaton, format_word
from detent.automata.properties.monoid import group

STATES = 3_000
"""Up to how many states all pairs are looked at."""
_CLOSEST_OF = 256


@dataclass(frozen=True)
class Synchronizing:
    """Whether some word sends all states to one, with the word, or with two states that no word merges."""

    answer: bool | None
    """None when the machine is too large to tell."""
    word: tuple[str, ...] | None = None
    state: str | None = None
    """Where the word leads."""
    apart: tuple[str, str] | None = None

    def explain(self) -> str:
        if self.word is not None:
            return f"synchronizing: after {format_word(self.word)} the state is {self.state!r}, whatever it was"
        if self.apart is not None:
            return f"not synchronizing: no word merges {self.apart[0]!r} and {self.apart[1]!r}"
        return f"perhaps synchronizing: it has more than {STATES} states, too many to look at all pairs"


def synchronizing(machine: Semiautomaton) -> Synchronizing:
    """Whether some word sends all states to one."""
    if machine.n_states > 1 and group(machine):
        return Synchronizing(answer=False, apart=(machine.states[0], machine.states[1]))
    for a, table in enumerate(machine.tables):
        if (table == table[0]).all():
            return _reset(machine, [a] if machine.n_states > 1 else [])
    if machine.n_states > STATES:
        return Synchronizing(answer=None)
    steps, by = _distances(machine.tables)
    for p, q in np.argwhere(steps < 0):
        return Synchronizing(answer=False, apart=(machine.states[p], machine.states[q]))
    return _reset(machine, _merge_all(machine.tables, steps, by))


def _reset(machine: Semiautomaton, word: list[int]) -> Synchronizing:
    ends = np.unique(machine.act(np.array(word, np.int64)))
    assert len(ends) == 1
    named = tuple(machine.symbols[a] for a in word)
    return Synchronizing(answer=True, word=named, state=machine.states[ends[0]])


def _distances(tables: Ints) -> tuple[Ints, Ints]:
    """For every two states (n n): symbols until they can be merged, -1 if never; the first of those symbols."""
    A, n = tables.shape
    steps, by = np.full((n, n), -1, np.int32), np.full((n, n), -1, np.int32)
    np.fill_diagonal(steps, 0)
    before = PairsBefore(tables)
    p = q = np.arange(n)
    distance, unknown = 0, n * (n - 1) // 2
    while len(p) and unknown:
        distance += 1
        found = []
        for a in range(A):
            from_p, from_q = before(a, p, q)
            new = (steps[from_p, from_q] < 0) & ((from_p < from_q) if distance == 1 else True)
            from_p, from_q = from_p[new], from_q[new]
            steps[from_p, from_q] = steps[from_q, from_p] = distance
            by[from_p, from_q] = by[from_q, from_p] = a
            unknown -= len(from_p)
            found.append((from_p, from_q))
        p, q = (np.concatenate(side) for side in zip(*found, strict=True))
    return steps, by


def _merge_all(tables: Ints, steps: Ints, by: Ints) -> list[int]:
    word: list[int] = []
    possible = np.arange(tables.shape[1])
    while len(possible) > 1:
        near = possible[:_CLOSEST_OF]
        among = steps[np.ix_(near, near)] + np.where(np.eye(len(near), dtype=bool), np.iinfo(np.int32).max // 2, 0)
        i, j = np.unravel_index(among.argmin(), among.shape)
        p, q = int(near[i]), int(near[j])
        while p != q:
            a = int(by[p, q])
            word.append(a)
            p, q = int(tables[a, p]), int(tables[a, q])
            possible = np.unique(tables[a, possible])
    return word

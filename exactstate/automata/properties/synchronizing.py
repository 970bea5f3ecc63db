"""Synchronizing machines: a reset word, which sends all states to one, or two states that no word merges.

    n  states

A machine is synchronizing when every two states can be merged (Cerny 1964). A breadth-first search backwards over pairs
finds which can, and by how many symbols; the reset word then repeatedly merges the nearest two of the states still
possible. It is short but not always shortest: finding a shortest one is NP-hard (Eppstein, "Reset sequences for
monotonic automata", 1990).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate._types import Ints
from exactstate.automata.congruence import PairPredecessors
from exactstate.automata.machine import Semiautomaton, format_word
from exactstate.automata.properties.monoid import group

MAX_STATES = 3_000
"""The largest machine whose pairs are all searched."""
_MAX_COMPARED = 256


@dataclass(frozen=True)
class Synchronizing:
    """Whether some word sends all states to one, with the word, or with two states that no word merges."""

    answer: bool | None
    """None when the machine is too large to decide."""
    word: tuple[str, ...] | None = None
    state: str | None = None
    """The state that the word leads to."""
    apart: tuple[str, str] | None = None

    def explain(self) -> str:
        if self.word is not None:
            return f"synchronizing: after {format_word(self.word)} the state is {self.state!r}, whatever it was before"
        if self.apart is not None:
            return f"not synchronizing: no word merges {self.apart[0]!r} and {self.apart[1]!r}"
        return f"perhaps synchronizing: more than {MAX_STATES} states, too many to search all pairs"


def synchronizing(machine: Semiautomaton) -> Synchronizing:
    """Whether some word sends all states to one."""
    if machine.n_states > 1 and group(machine):
        return Synchronizing(answer=False, apart=(machine.states[0], machine.states[1]))
    for a, table in enumerate(machine.tables):
        if (table == table[0]).all():
            return _reset(machine, [a] if machine.n_states > 1 else [])
    if machine.n_states > MAX_STATES:
        return Synchronizing(answer=None)
    steps, symbol = _distances(machine.tables)
    for p, q in np.argwhere(steps < 0):
        return Synchronizing(answer=False, apart=(machine.states[p], machine.states[q]))
    return _reset(machine, _merge_all(machine.tables, steps, symbol))


def _reset(machine: Semiautomaton, word: list[int]) -> Synchronizing:
    ends = np.unique(machine.act(np.array(word, np.int64)))
    assert len(ends) == 1
    named = tuple(machine.symbols[a] for a in word)
    return Synchronizing(answer=True, word=named, state=machine.states[ends[0]])


def _distances(tables: Ints) -> tuple[Ints, Ints]:
    """n n: the least number of symbols that merge two states, -1 if none do; and the first of those symbols."""
    A, n = tables.shape
    steps, symbol = np.full((n, n), -1, np.int32), np.full((n, n), -1, np.int32)
    np.fill_diagonal(steps, 0)
    before = PairPredecessors(tables)
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
            symbol[from_p, from_q] = symbol[from_q, from_p] = a
            unknown -= len(from_p)
            found.append((from_p, from_q))
        p, q = (np.concatenate(side) for side in zip(*found, strict=True))
    return steps, symbol


def _merge_all(tables: Ints, steps: Ints, symbol: Ints) -> list[int]:
    word: list[int] = []
    possible = np.arange(tables.shape[1])
    while len(possible) > 1:
        near = possible[:_MAX_COMPARED]
        among = steps[np.ix_(near, near)] + np.where(np.eye(len(near), dtype=bool), np.iinfo(np.int32).max // 2, 0)
        i, j = np.unravel_index(among.argmin(), among.shape)
        p, q = int(near[i]), int(near[j])
        while p != q:
            a = int(symbol[p, q])
            word.append(a)
            p, q = int(tables[a, p]), int(tables[a, q])
            possible = np.unique(tables[a, possible])
    return word

"""Definite machines: the last k symbols determine the state. The smallest such k, or two states that stay apart.

    k  the order     n  states

Perles, Rabin and Shamir, "The theory of definite automata", 1963. All words of length j + 1 merge two states exactly
when every symbol sends them to states that all words of length j merge. So merge states with equal rows, repeat on the
quotient, and count rounds: the machine is definite when one state remains, and k is the number of rounds, at most n -
1. If the rounds stop early, every two remaining states have a symbol that keeps them apart, and following it finds a
cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Semiautomaton, format_word
from exactstate.automata.minimize import equal_rows


@dataclass(frozen=True)
class Definite:
    """Whether a machine is definite, with its order or a witness that it is not. True if it is."""

    order: int | None
    """The smallest k such that every word of k symbols sends all states to one; None if there is none."""
    word: tuple[str, ...]
    """If definite, a word of k - 1 symbols that keeps `apart` apart; otherwise one whose every power does."""
    apart: tuple[str, str] | None
    """Two states that `word` keeps apart; None for a machine of one state."""

    def __bool__(self) -> bool:
        return self.order is not None

    def explain(self) -> str:
        if self.order is None:
            assert self.apart is not None
            one, other = self.apart
            word = format_word(self.word)
            return f"not definite: {word} keeps {one!r} and {other!r} apart, however often it is repeated"
        if self.apart is None:
            return "definite of order 0: there is only one state"
        one, other = self.apart
        tight = (
            f"{format_word(self.word)} still separates {one!r} from {other!r}"
            if self.word
            else f"{one!r} is not {other!r}"
        )
        last = "symbol determines" if self.order == 1 else f"{self.order} symbols determine"
        return f"definite of order {self.order}: the last {last} the state, while {tight}"


def definite(machine: Semiautomaton) -> Definite:
    """Whether the state after a long word depends on its last k symbols alone, and the smallest such k.

    >>> from exactstate.automata import flip_flop
    >>> definite(flip_flop()).explain()
    "not definite: 'identity' keeps 'identity' and 'reset' apart, however often it is repeated"
    """
    merged_at, into = _merge(machine.tables)
    if np.count_nonzero(merged_at == 0) > 1:
        return _cycle(machine, into)
    if machine.n_states == 1:
        return Definite(order=0, word=(), apart=None)
    order = int(merged_at.max())
    p = int(merged_at.argmax())
    return _tight(machine, order, (p, int(into[p])), merged_at, into)


def _merge(tables: Ints) -> tuple[Ints, Ints]:
    """(the round in which each state was merged into another, 0 for never; that other state, or itself)."""
    n = tables.shape[1]
    merged_at, into = np.zeros(n, np.int64), np.arange(n)
    left = np.arange(n)
    small: Ints = tables.astype(np.int64)  # the tables on the remaining states, renumbered
    for round_ in range(1, n):
        blocks = equal_rows(small.T)
        first = np.unique(blocks, return_index=True)[1]
        if len(first) == len(left):
            break
        gone = np.ones(len(left), bool)
        gone[first] = False
        merged_at[left[gone]] = round_
        into[left[gone]] = left[first[blocks[gone]]]
        left, small = left[first], blocks[small[:, first]]
    return merged_at, into


def _tight(machine: Semiautomaton, order: int, pair: tuple[int, int], merged_at: Ints, into: Ints) -> Definite:
    """A word of order - 1 symbols that keeps the pair apart: each step takes a symbol that leaves enough rounds."""

    def merged(p: int, q: int, rounds: int) -> bool:
        while 0 < merged_at[p] <= rounds:
            p = int(into[p])
        while 0 < merged_at[q] <= rounds:
            q = int(into[q])
        return p == q

    (p, q), word = pair, []
    for rounds in range(order - 2, -1, -1):
        a = next(a for a, table in enumerate(machine.tables) if not merged(int(table[p]), int(table[q]), rounds))
        p, q = int(machine.tables[a, p]), int(machine.tables[a, q])
        word.append(machine.symbols[a])
    return Definite(order=order, word=tuple(word), apart=(machine.states[pair[0]], machine.states[pair[1]]))


def _cycle(machine: Semiautomaton, into: Ints) -> Definite:
    """Two states and a word whose powers never merge them: a single symbol if possible, else a cycle of pairs."""
    for a, table in enumerate(machine.tables):
        kept = np.unique(settled(table))
        if len(kept) > 1:
            return _apart(machine, [a], int(kept[0]), int(kept[1]))
    classes = settled(into)
    p, q = (int(state) for state in np.unique(classes)[:2])
    word: list[int] = []
    seen: dict[tuple[int, int], int] = {}
    while (p, q) not in seen:
        seen[p, q] = len(word)
        word.append(next(a for a, table in enumerate(machine.tables) if classes[table[p]] != classes[table[q]]))
        p, q = int(machine.tables[word[-1], p]), int(machine.tables[word[-1], q])
    return _apart(machine, word[seen[p, q] :], p, q)


def settled(table: Ints) -> Ints:
    """Where the states are after enough steps of one table that each is in a cycle."""
    table = table.astype(np.int64)
    for _ in range(max(1, len(table) - 1).bit_length()):
        table = table[table]
    return table


def _apart(machine: Semiautomaton, word: list[int], p: int, q: int) -> Definite:
    named = tuple(machine.symbols[a] for a in word)
    return Definite(order=None, word=named, apart=(machine.states[p], machine.states[q]))

"""Conformance: test words that an implementation passes only if it is the machine, if it has few enough states.

    n  states     A  symbols     k  extra states

`conformance_suite` gives words of the W method (Chow 1978), of the Wp method (Fujiwara and others 1991) or of
harmonized state identifiers (HSI; Petrenko and others 1993). An implementation with at most k states more than the
minimized machine that gives the right outputs on all of them is equivalent to it. Words grow with A^k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from exactstate._types import MISSING
from exactstate.automata import Mealy, Moore, minimize
from exactstate.errors import BudgetExceeded, unknown
from exactstate.tasks.access_words import access_words

Method = Literal["w", "wp", "hsi"]
MAX_WORDS = 5_000_000
Numbers = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ConformanceSuite:
    """Words for an implementation, and what they cover."""

    machine: Mealy
    """The minimized machine."""
    method: Method
    extra_states: int
    words: tuple[Numbers, ...]

    def named(self) -> Iterator[tuple[list[str], list[str]]]:
        """Each word by names, and the outputs that are right."""
        for word in self.words:
            numbers = self.machine.output_ids(np.array(word, np.int64)).tolist()
            yield [self.machine.symbols[a] for a in word], [self.machine.outputs[o] for o in numbers]

    @property
    def symbols(self) -> int:
        """Of all words."""
        return sum(map(len, self.words))

    def coverage(self) -> tuple[int, int]:
        """(states, transitions) of the machine that the words visit."""
        seen = set()
        successors = self.machine.tables.T.tolist()
        for word in self.words:
            state = self.machine.start
            for symbol in word:
                seen.add((state, symbol))
                state = successors[state][symbol]
        return len({state for state, _ in seen}), len(seen)

    def explain(self) -> str:
        n, A = self.machine.n_states, self.machine.n_symbols
        states, transitions = self.coverage()
        return (
            f"{len(self.words):,} words with {self.symbols:,} symbols ({self.method.upper()} method): {states} of {n} "
            f"states and {transitions} of {n * A} transitions; an implementation with at most {n + self.extra_states} "
            "states that is right on all of them is right on every word."
        )


def conformance_suite(machine: Moore | Mealy, *, method: Method = "wp", extra_states: int = 0) -> ConformanceSuite:
    """The test words of a machine for implementations with so many more states than the minimized machine.

    >>> from exactstate.automata import tomita
    >>> len(conformance_suite(tomita(2)).words)
    6
    """
    if method not in get_args(Method):
        raise unknown("method", method, get_args(Method))
    small = minimize(machine.to_mealy())
    access = access_words(small, small.start)
    separate = separating_words(small)
    n, A = small.n_states, small.n_symbols
    identify = [sorted({separate[q, p] for p in range(n) if p != q} or {()}) for q in range(n)]
    everything = sorted({word for words in identify for word in words})
    estimate = n * A ** (extra_states + 1) * (len(everything) if method == "w" else max(map(len, identify)))
    if estimate > MAX_WORDS:
        raise BudgetExceeded(
            f"about {estimate:,} words would be needed for {n} states, {A} symbols and {extra_states} extra states; at "
            f"most {MAX_WORDS:,} are made. Allow fewer extra states."
        )
    words: set[Numbers] = set()
    tables = small.tables.tolist()
    cover = list(access.values())
    for first in cover:
        for length in range(extra_states + 2):
            for middle in product(range(A), repeat=length):
                if method == "wp" and length == extra_states + 1 and first + middle[:1] in access.values():
                    continue  # the transition of the state cover itself: covered with shorter middles
                reached = _run(tables, small.start, first + middle)
                whole = method == "w" or (method == "wp" and length <= extra_states)
                for last in everything if whole else identify[reached]:
                    words.add(first + middle + last)
    return ConformanceSuite(small, method, extra_states, tuple(_without_prefixes(words)))


def separating_words(machine: Mealy) -> dict[tuple[int, int], Numbers]:
    """For every pair of states of a minimized machine a shortest word after which outputs differ."""
    n, A = machine.n_states, machine.n_symbols
    letter = np.full((n, n), MISSING)
    for a in range(A - 1, -1, -1):
        out = machine.readout[a]
        letter[out[:, None] != out[None, :]] = a
    order = [letter != MISSING]
    while True:
        known = letter != MISSING
        new = np.full((n, n), MISSING)
        for a in range(A - 1, -1, -1):
            after = machine.tables[a]
            new[known[after[:, None], after[None, :]]] = a
        new[known] = MISSING
        if not (new != MISSING).any():
            break
        letter = np.where(known, letter, new)
        order.append(new != MISSING)
    direct = order[0]
    words: dict[tuple[int, int], Numbers] = {}
    for p in range(n):
        for q in range(n):
            if p == q:
                continue
            word, one, other = [], p, q
            while True:
                a = int(letter[one, other])
                word.append(a)
                if direct[one, other]:
                    break
                one, other = int(machine.tables[a, one]), int(machine.tables[a, other])
            words[p, q] = tuple(word)
    return words


def _run(tables: Sequence[Sequence[int]], state: int, word: Numbers) -> int:
    for symbol in word:
        state = tables[symbol][state]
    return state


def _without_prefixes(words: set[Numbers]) -> Iterator[Numbers]:
    """The words that are not the beginning of another, in order."""
    ordered = sorted(words)
    for word, following in zip(ordered, [*ordered[1:], ()], strict=True):
        if word and following[: len(word)] != word:
            yield word

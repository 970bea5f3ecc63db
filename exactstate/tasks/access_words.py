"""Words that reach every state: paths to random states, each followed by letters drawn uniformly.

    B  words     L  their length     n  states     A  symbols

A protocol falls into a closed state after one wrong message, so that letters drawn uniformly almost never reach its
later states. A word here begins with the access word of a random state, so that every transition is met in at least one
of n A words, on average. Then it goes on: a uniform letter; with probability one half another, else a shortest path to
another random state, if there is one. So states are met after different beginnings, too. After WALK letters, all are
uniform. Words that a network got wrong can be added; they begin a given share of all words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import Moore, Semiautomaton
from exactstate.errors import InvalidConfig
from exactstate.tasks.grammar import all_words
from exactstate.tasks.samplers import uniform_blocks

WALK = 256
"""Letters at the beginning of a word among which there are paths; the rest is uniform."""
MAX_STATES = 2048
"""States up to which paths between all pairs are kept; words of a larger machine have one access word each."""


def access_words(machine: Semiautomaton, start: int) -> dict[int, tuple[int, ...]]:
    """For every state that a word reaches a shortest word to it, the first in the order of the symbols.

    >>> from exactstate.automata import tomita
    >>> access_words(tomita(4), 0)[2]
    (0, 0)
    """
    words: dict[int, tuple[int, ...]] = {start: ()}
    queue, successors = [start], machine.tables.T.tolist()
    for state in queue:
        for symbol, after in enumerate(successors[state]):
            if after not in words:
                words[after] = (*words[state], symbol)
                queue.append(after)
    return words


def first_letters(machine: Semiautomaton) -> Ints:
    """n n: entry [q, g] is the first letter of a shortest word from q to g; MISSING for none, and at q = g."""
    n, letters = machine.n_states, np.full((machine.n_states, machine.n_states), MISSING, np.int32)
    before: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for symbol, row in enumerate(machine.tables.tolist()):
        for state, after in enumerate(row):
            before[after].append((state, symbol))
    for goal in range(n):
        column, queue = letters[:, goal], [goal]
        for after in queue:
            for state, symbol in before[after]:
                if column[state] == MISSING and state != goal:
                    column[state] = symbol
                    queue.append(state)
    return letters


@dataclass(frozen=True)
class AccessWords:
    """Shortest paths to random states of a machine, with uniform letters between them."""

    machine: Semiautomaton = field(repr=False)
    start: int = 0
    words: tuple[tuple[int, ...], ...] = ()
    """Further beginnings, such as words that a network got wrong."""
    share: float = 0.25
    """The share of the words that begin with one of `words`, about."""

    def __post_init__(self) -> None:
        for word in self.words:
            if word and not 0 <= min(word) <= max(word) < self.n_symbols:
                raise InvalidConfig(f"a word of symbols below {self.n_symbols} was wanted; got {word}.")

    @property
    def n_symbols(self) -> int:
        return self.machine.n_symbols

    @cached_property
    def prefixes(self) -> Ints:
        """One row for each beginning, filled up with MISSING, and as often as `share` asks for."""
        reached = list(access_words(self.machine, self.start).values())
        odds = self.share / (1 - self.share) * len(reached) / max(len(self.words), 1)
        again, other = max(1, round(odds)), max(1, round(1 / odds)) if self.words else 1
        rows = [*reached * other, *(word for word in self.words for _ in range(again))]
        table = np.full((len(rows), max(map(len, rows))), MISSING, np.int32)
        for row, word in enumerate(rows):
            table[row, : len(word)] = word
        return table

    @cached_property
    def paths(self) -> Ints | None:
        """`first_letters` of the machine; None where it would be too large."""
        return first_letters(self.machine) if self.machine.n_states <= MAX_STATES else None

    @property
    def depth(self) -> int:
        """The length of the longest beginning; shorter words do not reach every state."""
        return int(self.prefixes.shape[1])

    def check_length(self, length: int) -> None:
        """Accept every length."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        chosen = generator.integers(0, len(self.prefixes), batch)
        goals = generator.integers(0, 2 * self.machine.n_states, (batch, min(length, WALK)))
        at = 0
        for letters in uniform_blocks(self.n_symbols, batch, length, generator):
            if at == 0:
                self._walk(letters[:, :WALK], self.prefixes[chosen], goals)
            elif at < self.depth:
                begin = self.prefixes[chosen, at : at + letters.shape[1]]
                letters[:, : begin.shape[1]][begin != MISSING] = begin[begin != MISSING]
            at += letters.shape[1]
            yield letters

    def _walk(self, letters: Ints, begin: Ints, goals: Ints) -> None:
        """Replace uniform letters by beginnings and paths. A goal beyond the states is a uniform letter."""
        tables, n = self.machine.tables, self.machine.n_states
        state, goal = np.full(len(letters), self.start), np.full(len(letters), n)
        for t in range(letters.shape[1]):
            given = begin[:, t] if t < begin.shape[1] else np.full(len(letters), MISSING)
            if self.paths is not None:
                path = np.where(goal < n, self.paths[state, np.minimum(goal, n - 1)], MISSING)
                # arrived, or no path: the letter is uniform, and another goal is drawn for the next one
                goal = np.where((path == MISSING) & (given == MISSING), goals[:, t], goal)
                given = np.where(given == MISSING, path, given)
            known = given != MISSING
            letters[known, t] = given[known]
            state = tables[letters[:, t], state]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        return all_words(symbols)

    def describe(self, symbols: Sequence[str]) -> str:
        added = ""
        if self.words:
            added = f"; {self.share:.0%} begin with one of {len(self.words)} words that were wrong before"
        return f"shortest paths to random states, with uniform letters between them{added}"

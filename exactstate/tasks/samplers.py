"""Samplers: how the words of a task are drawn. Exact, by integer weights and uniform integers.

    B  words     L  their length     A  symbols

A sampler yields words block by block in the order of time, so that no caller has to hold a whole word. The words depend
on the generator, the number of words and their length only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Moore
from exactstate.automata.run import smallest_dtype
from exactstate.errors import InvalidConfig
from exactstate.tasks.grammar import all_words, build_grammar

BLOCK = 8192
"""Symbols drawn at a time. Another block size would draw other words from the same seed."""


class Sampler(Protocol):
    """Draws words, and knows which words it can draw."""

    @property
    def n_symbols(self) -> int:
        """A: the number of symbols that are drawn from."""

    def check_length(self, length: int) -> None:
        """Raise InvalidConfig for a length that no word of this sampler has."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        """The words (B L) in consecutive blocks of columns."""

    def grammar(self, symbols: Sequence[str]) -> Moore:
        """The words of positive probability, of any length; see `exactstate.tasks.grammar`."""

    def describe(self, symbols: Sequence[str]) -> str:
        """One sentence for people."""


@dataclass(frozen=True)
class IidLetters:
    """Independent, identically distributed letters: letter a with probability weights[a] / sum(weights)."""

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 1:
            raise InvalidConfig(f"letters are drawn with positive integer weights; got {self.weights}.")

    @classmethod
    def uniform(cls, n_symbols: int) -> IidLetters:
        return cls((1,) * n_symbols)

    @property
    def n_symbols(self) -> int:
        return len(self.weights)

    def check_length(self, length: int) -> None:
        """Accept every length."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        letter_of = np.repeat(np.arange(self.n_symbols, dtype=smallest_dtype(self.n_symbols)), self.weights)
        for draws in uniform_blocks(len(letter_of), batch, length, generator):
            yield draws if len(letter_of) == self.n_symbols else letter_of[draws]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        return all_words(symbols)

    def describe(self, symbols: Sequence[str]) -> str:
        if len(set(self.weights)) == 1:
            return "letters drawn uniformly"
        shares = (f"{name} {weight / sum(self.weights):g}" for name, weight in zip(symbols, self.weights, strict=True))
        return f"letters drawn independently: {', '.join(shares)}"


@dataclass(frozen=True)
class BoundedRuns:
    """Uniform letters, except that `longest` times `letter` in a row is always followed by another letter.

    Each letter is a function of the current run length and of one uniform integer below A (A - 1), which encodes a
    letter and, independently, one of the others. So the sampler is a small machine that reads uniform integers.
    """

    n_symbols: int
    letter: int
    longest: int

    def __post_init__(self) -> None:
        if self.n_symbols < 2 or not 0 <= self.letter < self.n_symbols or self.longest < 1:
            raise InvalidConfig(
                "runs of one of at least two letters are bounded by a length of at least 1; "
                f"got letter {self.letter} of {self.n_symbols}, longest run {self.longest}."
            )

    @cached_property
    def generating_machine(self) -> Moore:
        """The machine from uniform integers to letters. Its state: another letter, or the run of `letter` so far."""
        A = self.n_symbols
        others = [letter for letter in range(A) if letter != self.letter]
        letter_of = np.array([*others, *[self.letter] * self.longest])  # state -> letter
        state_of = {letter: state for state, letter in enumerate(others)}
        tables = np.empty((A * (A - 1), len(letter_of)), np.int64)
        for run in range(self.longest + 1):
            states = np.arange(A - 1) if run == 0 else [A - 2 + run]
            for draw in range(len(tables)):
                drawn, other = divmod(draw, A - 1)
                letter = others[other] if drawn == self.letter and run == self.longest else drawn
                tables[draw, states] = A - 1 + run if letter == self.letter else state_of[letter]
        letters = tuple(map(str, range(A)))
        return Moore(symbols=tuple(map(str, range(len(tables)))), tables=tables, outputs=letters, readout=letter_of)

    def check_length(self, length: int) -> None:
        """Accept every length."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        state: Ints = np.zeros(batch, np.int64)  # run length 0
        for draws in uniform_blocks(self.generating_machine.n_symbols, batch, length, generator):
            path = self.generating_machine.trajectory(draws, state)
            state = path[:, -1]
            yield self.generating_machine.readout[path]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        def following(run: int) -> dict[int, int]:
            others = {letter: 0 for letter in range(self.n_symbols) if letter != self.letter}
            return others if run == self.longest else {**others, self.letter: run + 1}

        return build_grammar(symbols, start=0, following=following)

    def describe(self, symbols: Sequence[str]) -> str:
        name = symbols[self.letter]
        return f"letters drawn uniformly, but {self.longest} times {name} in a row is always followed by another letter"


def uniform_blocks(n: int, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
    """Uniform integers below n (B L), block by block."""
    for begin in range(0, length, BLOCK):
        width = min(BLOCK, length - begin)
        yield generator.integers(0, n, (batch, width), dtype=smallest_dtype(n).type)

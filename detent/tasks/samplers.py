"""Laws for drawing letters, exactly: integer weights and dice, no rounded probabilities.

    B  words     L  their length     A  symbols

A law writes words block by block in the order of time, so that nobody needs to hold a whole one. What it writes depends
on the generator, the number of words and their length, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from detent._types import Ints
from detent.automata import Moore
from detent.automata.run import smallest_dtype
from detent.errors import InvalidConfig
from detent.tasks.grammar import anything, spell

BLOCK = 8192
"""Symbols that a law writes at a time. Part of the law: another block would be another word for the same seed."""


class Law(Protocol):
    """A way of speaking: how words are drawn."""

    @property
    def n_symbols(self) -> int:
        """How many symbols the law draws from."""

    def refuse_length(self, length: int) -> None:
        """Raise the error for a length that no word of this law has."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        """The words (B L) in consecutive blocks of columns."""

    def grammar(self, symbols: Sequence[str]) -> Moore:
        """Which words have a chance of being drawn, at any length."""

    def describe(self, symbols: Sequence[str]) -> str:
        """How words are drawn, in words."""


@dataclass(frozen=True)
class Letters:
    """Independent letters: letter a with probability weights[a] / sum(weights)."""

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.weights or min(self.weights) < 1:
            raise InvalidConfig(f"letters are drawn by positive integer weights; got {self.weights}.")

    @classmethod
    def uniform(cls, n_symbols: int) -> Letters:
        return cls((1,) * n_symbols)

    @property
    def n_symbols(self) -> int:
        return len(self.weights)

    def refuse_length(self, length: int) -> None:
        """Every length will do."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        letter_of = np.repeat(np.arange(self.n_symbols, dtype=smallest_dtype(self.n_symbols)), self.weights)
        for dice in roll(len(letter_of), batch, length, generator):
            yield dice if len(letter_of) == self.n_symbols else letter_of[dice]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        return anything(symbols)

    def describe(self, symbols: Sequence[str]) -> str:
        if len(set(self.weights)) == 1:
            return "letters drawn uniformly"
        shares = (f"{name} {weight / sum(self.weights):g}" for name, weight in zip(symbols, self.weights, strict=True))
        return f"letters drawn independently: {', '.join(shares)}"


@dataclass(frozen=True)
class ShortRuns:
    """Uniform letters, except that `longest` letters `of` in a row are always followed by one of the others.

    A letter is a function of how long the run is and of one die with A (A - 1) sides, which holds a letter and,
    independently, one of the others. So the law is a small machine that reads dice, and it runs like any machine.
    """

    n_symbols: int
    of: int
    longest: int

    def __post_init__(self) -> None:
        if self.n_symbols < 2 or not 0 <= self.of < self.n_symbols or self.longest < 1:
            raise InvalidConfig(
                "runs of one of at least two letters are cut at a length of at least 1; "
                f"got letter {self.of} of {self.n_symbols}, cut at {self.longest}."
            )

    @cached_property
    def generating_machine(self) -> Moore:
        """The machine that reads dice and says letters. Its state: a letter that ends the run, or the run so far."""
        A = self.n_symbols
        others = [letter for letter in range(A) if letter != self.of]
        said = np.array([*others, *[self.of] * self.longest])  # state -> letter
        state_of = {letter: state for state, letter in enumerate(others)}
        tables = np.empty((A * (A - 1), len(said)), np.int64)
        for run in range(self.longest + 1):
            states = np.arange(A - 1) if run == 0 else [A - 2 + run]
            for die in range(len(tables)):
                drawn, other = divmod(die, A - 1)
                letter = others[other] if drawn == self.of and run == self.longest else drawn
                tables[die, states] = A - 1 + run if letter == self.of else state_of[letter]
        letters = tuple(map(str, range(A)))
        return Moore(symbols=tuple(map(str, range(len(tables)))), tables=tables, outputs=letters, readout=said)

    def refuse_length(self, length: int) -> None:
        """Every length will do."""

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        state: Ints = np.zeros(batch, np.int64)  # a run of length nought, whatever the letter before it
        for dice in roll(self.generating_machine.n_symbols, batch, length, generator):
            path = self.generating_machine.trajectory(dice, state)
            state = path[:, -1]
            yield self.generating_machine.readout[path]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        def following(run: int) -> dict[int, int]:
            ends = {letter: 0 for letter in range(self.n_symbols) if letter != self.of}
            return ends if run == self.longest else {**ends, self.of: run + 1}

        return spell(symbols, start=0, following=following)

    def describe(self, symbols: Sequence[str]) -> str:
        name = symbols[self.of]
        return f"letters drawn uniformly, but {self.longest} times {name} in a row is always followed by another letter"


def roll(sides: int, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
    """Fair dice (B L) with the given number of sides, block by block."""
    for begin in range(0, length, BLOCK):
        width = min(BLOCK, length - begin)
        yield generator.integers(0, sides, (batch, width), dtype=smallest_dtype(sides).type)

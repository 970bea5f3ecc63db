"""Run words through a machine by a named strategy; every strategy gives the same integers.

A  symbols     n  states     B  words     L  their length
"""

from __future__ import annotations

from ctypes import byref, c_int64
from typing import Literal

import numpy as np

from detent import native
from detent._types import Ints
from detent.automata.run import chunked_trajectories, trajectories
from detent.errors import InvalidWord
from detent.runtime.alphabet import Alphabet, Letters
from detent.runtime.programs import Program, Saying, program, saying
from detent.runtime.strategies import Shape

Say = Literal["states", "outputs"]

SIDE_BY_SIDE = 8
"""From so many words on, short ones are run side by side rather than one after the other."""
SHORT_WORD = 4096


class Interpreter:
    """The tables of one machine, ready to be run."""

    def __init__(self, shape: Shape, alphabet: Alphabet, said: Ints, states_of: Ints | None) -> None:
        self.shape, self.alphabet = shape, alphabet
        self.states_of = states_of
        self.said = {"outputs": said, "states": shape.tables}
        self.auto = shape.cheapest()
        self._programs: dict[str, Program] = {}
        self._sayings: dict[tuple[Say, int], Saying] = {}

    def resolve(self, strategy: str) -> str:
        """The name of a strategy that is possible here; "auto" is the cheapest."""
        if strategy == "auto":
            return self.auto
        self.shape.require(strategy)
        return strategy

    def run(self, word: Letters, state: int, say: Say | None, strategy: str = "auto") -> tuple[Ints | None, int]:
        """(what is said at every symbol, or None; the state at the end), for one word."""
        if word.numbers.ndim != 1:
            raise InvalidWord(f"one word was wanted, an array of one dimension; got shape {word.numbers.shape}.")
        chosen = self.resolve(strategy)
        if chosen == "numpy":
            return self._in_numpy(word, state, say)
        made = self._program(chosen)
        speech = None if say is None else self._saying(say, made.pack)
        out = None if speech is None else np.empty(len(word), speech.dtype)
        end = c_int64(state)
        bad = native.library().detent_interpret(
            made.address, None if speech is None else speech.address,
            word.numbers.ctypes.data, word.numbers.itemsize,
            None if word.letter_of is None else word.letter_of.ctypes.data,
            len(word), byref(end), None if out is None else out.ctypes.data,
        )  # fmt: skip
        if bad >= 0:
            raise self.alphabet.unknown_at(word, int(bad))
        return out, end.value

    def run_batch(self, words: Ints, states: Ints, say: Say | None, strategy: str = "auto") -> tuple[Ints | None, Ints]:
        """The same for words of one length (B L), each from its own state."""
        B, L = words.shape
        if strategy == "auto" and L < SHORT_WORD and B >= SIDE_BY_SIDE:
            path, ends = trajectories(self.shape.tables, words, states, keep=say is not None)
            return (None if path is None else self._said(words, path, states, say)), ends
        out = None if say is None else np.empty((B, L), self.said[say].dtype)
        ends = np.empty(B, np.int64)
        for b, (word, state) in enumerate(zip(words, states.tolist(), strict=True)):
            spoken, ends[b] = self.run(Letters(word), state, say, strategy)
            if out is not None and spoken is not None:
                out[b] = spoken
        return out, ends

    def _program(self, strategy: str) -> Program:
        if strategy not in self._programs:
            self._programs[strategy] = program(self.shape, strategy, self.states_of)
        return self._programs[strategy]

    def _saying(self, say: Say, pack: int) -> Saying:
        if (say, pack) not in self._sayings:
            self._sayings[say, pack] = saying(self.shape, pack, self.said[say])
        return self._sayings[say, pack]

    def _in_numpy(self, word: Letters, state: int, say: Say | None) -> tuple[Ints | None, int]:
        numbers = word.resolved()
        wrong = np.flatnonzero((numbers < 0) | (numbers >= self.shape.symbols))
        if len(wrong):
            raise self.alphabet.unknown_at(word, int(wrong[0]))
        starts = np.array([state], np.int32)
        path, ends = chunked_trajectories(self.shape.tables, numbers[None, :], starts, say is not None)
        return (None if path is None else self._said(numbers[None, :], path, starts, say)[0]), int(ends[0])

    def _said(self, words: Ints, path: Ints, starts: Ints, say: Say | None) -> Ints:
        """What is said along a path (B L), which holds the states after every symbol."""
        if say != "outputs":
            return path
        before = np.concatenate([starts[:, None].astype(path.dtype), path[:, :-1]], axis=1)[:, : path.shape[1]]
        return self.said["outputs"][words, before]

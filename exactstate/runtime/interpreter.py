"""Run one word or many through a machine by a named strategy; every strategy gives the same integers.

    A  symbols     n  states     B  words     L  their length

`run_words` accepts words in every form and returns the result in the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_int64
from typing import Any, Literal

import numpy as np

from exactstate import native
from exactstate._types import Ints
from exactstate.automata.run import chunked_trajectories, compiled_outputs, trajectories
from exactstate.errors import InvalidWord
from exactstate.native import address
from exactstate.runtime.alphabet import NO_LETTER, Alphabet, EncodedWord, Word
from exactstate.runtime.programs import OutputTable, Program, output_table, program
from exactstate.runtime.strategies import Shape

Words = Word | Sequence[Word]
Emit = Literal["states", "outputs"]
"""What a run writes at every symbol: the state after it, or the output."""
SIDE_BY_SIDE = 8
"""The number of words from which short ones are run in parallel."""
SHORT_WORD = 4096


class Interpreter:
    """The tables of one machine, laid out to be run."""

    def __init__(self, shape: Shape, alphabet: Alphabet, readout: Ints, states_of: Ints | None) -> None:
        self.shape, self.alphabet = shape, alphabet
        self.states_of = states_of
        self.emitted = {"outputs": readout, "states": shape.tables}
        self.auto = shape.cheapest()
        self._programs: dict[str, Program] = {}
        self._output_tables: dict[tuple[Emit, int], OutputTable] = {}

    def resolve(self, strategy: str) -> str:
        """The name of a strategy that is possible here; "auto" is the cheapest."""
        if strategy == "auto":
            return self.auto
        self.shape.require(strategy)
        return strategy

    def run(self, word: EncodedWord, state: int, emit: Emit | None, strategy: str = "auto") -> tuple[Ints | None, int]:
        """(the states or outputs at every symbol, or None; the state at the end), for one word."""
        if word.numbers.ndim != 1:
            raise InvalidWord(f"one word was wanted, an array of one dimension; got shape {word.numbers.shape}.")
        chosen = self.resolve(strategy)
        if chosen == "numpy":
            return self._in_numpy(word, state, emit)
        made = self._program(chosen)
        entries = None if emit is None else self._output_table(emit, made.pack)
        out = None if entries is None else np.empty(len(word), entries.dtype)
        end = c_int64(state)
        bad = native.library().exactstate_interpret(
            made.address, None if entries is None else entries.address,
            address(word.numbers), word.numbers.itemsize,
            address(word.letter_of),
            len(word), byref(end), address(out),
        )  # fmt: skip
        if bad >= 0:
            raise self.alphabet.unknown_at(word, int(bad))
        return out, end.value

    def run_batch(
        self, words: Ints, states: Ints, emit: Emit | None, strategy: str = "auto"
    ) -> tuple[Ints | None, Ints]:
        """The same for words of one length (B L), each from its own state."""
        B, L = words.shape
        if strategy == "auto" and L < SHORT_WORD and B >= SIDE_BY_SIDE:
            if emit == "outputs" and native.available() and words.dtype.itemsize in (1, 2, 4, 8):
                return compiled_outputs(self.shape.tables, self.emitted["outputs"], words, states)
            path, ends = trajectories(self.shape.tables, words, states, keep=emit is not None)
            return (None if path is None else self._emit(words, path, states, emit)), ends
        out = None if emit is None else np.empty((B, L), self.emitted[emit].dtype)
        ends = np.empty(B, np.int64)
        for b, (word, state) in enumerate(zip(words, states.tolist(), strict=True)):
            emitted, ends[b] = self.run(EncodedWord(word), state, emit, strategy)
            if out is not None and emitted is not None:
                out[b] = emitted
        return out, ends

    def _program(self, strategy: str) -> Program:
        if strategy not in self._programs:
            self._programs[strategy] = program(self.shape, strategy, self.states_of)
        return self._programs[strategy]

    def _output_table(self, emit: Emit, pack: int) -> OutputTable:
        if (emit, pack) not in self._output_tables:
            self._output_tables[emit, pack] = output_table(self.shape, pack, self.emitted[emit])
        return self._output_tables[emit, pack]

    def _in_numpy(self, word: EncodedWord, state: int, emit: Emit | None) -> tuple[Ints | None, int]:
        numbers = word.resolved()
        wrong = np.flatnonzero((numbers < 0) | (numbers >= self.shape.symbols))
        if len(wrong):
            raise self.alphabet.unknown_at(word, int(wrong[0]))
        starts = np.array([state], np.int32)
        path, ends = chunked_trajectories(self.shape.tables, numbers[None, :], starts, emit is not None)
        return (None if path is None else self._emit(numbers[None, :], path, starts, emit)[0]), int(ends[0])

    def _emit(self, words: Ints, path: Ints, starts: Ints, emit: Emit | None) -> Ints:
        """The states or outputs along a path (B L), which holds the states after every symbol."""
        if emit != "outputs":
            return path
        before = np.concatenate([starts[:, None].astype(path.dtype), path[:, :-1]], axis=1)[:, : path.shape[1]]
        return self.emitted["outputs"][words, before]


def run_words(interpreter: Interpreter, words: Words, state: int, emit: Emit | None, strategy: str) -> Any:
    """The states or outputs, or without `emit` the state at the end: for one word, words of one length, or a list."""
    many = as_batch(words, interpreter.alphabet)
    if many is None or isinstance(many, EncodedWord):
        word = interpreter.alphabet.encode(words) if many is None else many  # type: ignore[arg-type]
        out, end = interpreter.run(word, state, emit, strategy)
        return end if emit is None else out
    if isinstance(many, np.ndarray):
        emitted, ends = interpreter.run_batch(many, np.full(len(many), state, np.int32), emit, strategy)
        return ends if emit is None else emitted
    results = [interpreter.run(word, state, emit, strategy) for word in many]
    return np.array([end for _, end in results], np.int64) if emit is None else [out for out, _ in results]


def as_batch(words: Words, alphabet: Alphabet) -> Ints | list[EncodedWord] | EncodedWord | None:
    """Words of one length (B L), or words of several lengths; a single word encoded, or None to encode it.

    A list of strings is one word when all of them are symbols, and otherwise as many words.
    """
    if isinstance(words, np.ndarray):
        if words.ndim not in (1, 2):
            raise InvalidWord(f"words are an array of one dimension (L) or two (B L); got {words.ndim}.")
        return alphabet.encode(words).numbers if words.ndim == 2 else None
    if not isinstance(words, Sequence | memoryview | bytearray):
        raise InvalidWord(f"words are lists of symbols, arrays, text or bytes; got {words!r:.60}.")
    if isinstance(words, str | bytes | bytearray | memoryview) or not len(words):
        return None
    kinds = set(map(type, words))  # a few types, however long the word is
    if not all(issubclass(kind, Sequence | np.ndarray | bytearray | memoryview) for kind in kinds):
        return None
    if kinds == {str} and words[0] in alphabet.number_of:
        number_of = alphabet.number_of
        with suppress(KeyError):
            return EncodedWord(np.fromiter(map(number_of.__getitem__, words), np.int32, len(words)))  # type: ignore[arg-type]
    encoded = [_encoded(word, i, alphabet) for i, word in enumerate(words)]
    if len({len(word) for word in encoded}) == 1:
        return np.stack([word.numbers for word in encoded])
    return encoded


def _encoded(word: Any, i: int, alphabet: Alphabet) -> EncodedWord:
    try:
        encoded = alphabet.encode(word)
        numbers = encoded.resolved()
        if encoded.letter_of is not None and (numbers == NO_LETTER).any():
            raise alphabet.unknown_at(encoded, int(np.argmax(numbers == NO_LETTER)))
        return EncodedWord(numbers)
    except InvalidWord as error:
        raise InvalidWord(f"word {i}: {error}") from None

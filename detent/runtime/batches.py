"""One word or many: what a caller gave, and the answer in the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detent._types import Ints
from detent.errors import InvalidWord
from detent.runtime.alphabet import NO_LETTER, Alphabet, Letters, Word
from detent.runtime.interpreter import Interpreter, Say

Words = Word | Sequence[Word]


def answer(interpreter: Interpreter, words: Words, state: int, say: Say | None, strategy: str) -> Any:
    """What is said, or without `say` the state at the end: for one word, for words of one length, or for a list."""
    many = several(words, interpreter.alphabet)
    if many is None:
        out, end = interpreter.run(interpreter.alphabet.encode(words), state, say, strategy)  # type: ignore[arg-type]
        return end if say is None else out
    if isinstance(many, np.ndarray):
        spoken, ends = interpreter.run_batch(many, np.full(len(many), state, np.int32), say, strategy)
        return ends if say is None else spoken
    answers = [interpreter.run(word, state, say, strategy) for word in many]
    return np.array([end for _, end in answers], np.int64) if say is None else [out for out, _ in answers]


def several(words: Words, alphabet: Alphabet) -> Ints | list[Letters] | None:
    """Words of one length (B L), or words of several lengths; None for a single word.

    A list of strings is one word when all of them are symbols, and otherwise as many words.
    """
    if isinstance(words, np.ndarray):
        if words.ndim not in (1, 2):
            raise InvalidWord(f"words are an array of one dimension (L) or two (B L); got {words.ndim}.")
        return alphabet.encode(words).numbers if words.ndim == 2 else None
    if isinstance(words, str | bytes | bytearray | memoryview) or not len(words):
        return None
    if not all(isinstance(word, Sequence | np.ndarray | bytearray | memoryview) for word in words):
        return None
    if all(isinstance(word, str) and word in alphabet.number_of for word in words):
        return None
    encoded = [_encoded(word, i, alphabet) for i, word in enumerate(words)]
    if len({len(word) for word in encoded}) == 1:
        return np.stack([word.numbers for word in encoded])
    return encoded


def _encoded(word: Any, i: int, alphabet: Alphabet) -> Letters:
    try:
        encoded = alphabet.encode(word)
        numbers = encoded.resolved()
        if encoded.letter_of is not None and (numbers == NO_LETTER).any():
            raise alphabet.unknown_at(encoded, int(np.argmax(numbers == NO_LETTER)))
        return Letters(numbers)
    except InvalidWord as error:
        raise InvalidWord(f"word {i}: {error}") from None

"""Encode words as symbol numbers: arrays, lists of names or numbers, strings, bytes.

A string or bytes (UTF-8) is read letter by letter when every symbol is one letter, and split at white space otherwise;
of symbols of several words, such as (0 1), the longest that fits is taken. ASCII text of one-letter symbols is not
copied: the interpreter maps its bytes as it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.errors import InvalidWord

Word = Sequence[int] | Sequence[str] | str | bytes | bytearray | memoryview | Ints
MAX_WORDS = 256
"""Of a symbol that can be read from text."""
NO_LETTER = 255
"""The number of a byte that is not a symbol; ASCII has at most 128 letters."""


Trie = dict[Any, Any]
"""From a word to what may follow it."""


@dataclass(frozen=True, eq=False)
class EncodedWord:
    """A word as numbers; with `letter_of`, as the bytes of a text and the number of each byte."""

    numbers: Ints
    letter_of: Ints | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def resolved(self) -> Ints:
        """The symbol numbers, with NO_LETTER where a byte is no symbol."""
        return self.numbers if self.letter_of is None else self.letter_of[self.numbers]


@dataclass(frozen=True)
class Alphabet:
    """The names of the symbols, in order."""

    symbols: tuple[str, ...]

    @cached_property
    def number_of(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.symbols)}

    @cached_property
    def by_letter(self) -> bool:
        """Whether every symbol is one letter, so that text needs no blanks."""
        return all(len(name) == 1 for name in self.symbols)

    @cached_property
    def most_words(self) -> int:
        """How many words the longest symbol has."""
        return max(len(name.split()) for name in self.symbols)

    @cached_property
    def words(self) -> Trie:
        """The symbols of several words, word by word; the entry None is the symbol that ends there."""
        if self.most_words > MAX_WORDS:
            raise InvalidWord(
                f"a symbol of {self.most_words:,} words cannot be read from text, where {MAX_WORDS} is the most; pass "
                "symbols as a list."
            )
        root: Trie = {}
        for name in self.symbols:
            node = root
            for word in name.encode("utf-8", "surrogatepass").split():
                node = node.setdefault(word, {})
            # a symbol with blanks of another kind than one space between its words does not occur in text
            if b" ".join(name.encode("utf-8", "surrogatepass").split()) == name.encode("utf-8", "surrogatepass"):
                node[None] = name.encode("utf-8", "surrogatepass")
        return root

    @cached_property
    def letter_of(self) -> Ints | None:
        """The symbol that each byte stands for (256), when every symbol is one ASCII letter."""
        if not (self.by_letter and all(name.isascii() for name in self.symbols)):
            return None
        letters = np.full(256, NO_LETTER, np.uint8)
        letters[[ord(name) for name in self.symbols]] = np.arange(len(self.symbols))
        return letters

    @cached_property
    def _points(self) -> tuple[Ints, Ints]:
        """Code points of one-letter symbols, ascending, and the numbers of their symbols."""
        points = np.array([ord(name) for name in self.symbols])
        order = np.argsort(points)
        return points[order], order

    def encode(self, word: Word) -> EncodedWord:
        """The word as numbers. Unknown names are refused here, numbers out of range when they are run."""
        if isinstance(word, np.ndarray):
            return EncodedWord(_native(word))
        if isinstance(word, bytes | bytearray | memoryview):
            return self._encode_bytes(bytes(word) if isinstance(word, memoryview) else word)
        if isinstance(word, str):
            if not self.by_letter:
                return EncodedWord(self._by_name(self.cut(word.split())))
            if self.letter_of is not None and word.isascii():
                return EncodedWord(np.frombuffer(word.encode(), np.uint8), self.letter_of)
            return EncodedWord(self._by_point(word))
        if not isinstance(word, Sequence):
            raise InvalidWord(f"a word is a list of symbols, an array, text or bytes; got {word!r:.60}.")
        kinds = set(map(type, word))
        if any(issubclass(kind, str) for kind in kinds):
            return EncodedWord(self._by_name(word))  # type: ignore[arg-type]
        if any(issubclass(kind, bool | np.bool_) for kind in kinds):
            raise InvalidWord("a word holds symbol names or integers; got true or false.")
        try:
            return EncodedWord(_native(np.asarray(word)))
        except ValueError as error:
            if isinstance(error, InvalidWord):
                raise
            raise InvalidWord("a word holds symbol names or integers; got lists of different lengths in it.") from None

    def _encode_bytes(self, text: bytes | bytearray) -> EncodedWord:
        if self.letter_of is not None:
            return EncodedWord(np.frombuffer(text, np.uint8), self.letter_of)
        try:
            return self.encode(text.decode())
        except UnicodeDecodeError as error:
            raise InvalidWord(
                f"the byte {text[error.start]:#04x} at position {error.start} is not UTF-8 text."
            ) from None

    def cut(self, words: list[str]) -> list[str]:
        """The words as symbols, the longest match first; an unknown word stays alone."""
        if self.most_words == 1:
            return words
        symbols, at = [], 0
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        while at < len(words):
            symbol, count = longest(self.words, encoded, at)
            symbols.append(words[at] if symbol is None else symbol.decode("utf-8", "surrogatepass"))
            at += count
        return symbols

    def _by_name(self, names: Sequence[str]) -> Ints:
        try:
            return np.fromiter(map(self.number_of.__getitem__, names), np.int32, len(names))
        except (KeyError, TypeError):
            place = next(i for i, name in enumerate(names) if not isinstance(name, str) or name not in self.number_of)
            raise self.unknown(names[place], place) from None

    def _by_point(self, text: str) -> Ints:
        points, order = self._points
        found = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        at = np.minimum(np.searchsorted(points, found), len(points) - 1)
        wrong = np.flatnonzero(points[at] != found)
        if len(wrong):
            raise self.unknown(text[int(wrong[0])], int(wrong[0]))
        return order[at]

    def unknown_at(self, word: EncodedWord, place: int) -> InvalidWord:
        """The error for the symbol at a place of a word."""
        if word.letter_of is None:
            return self.unknown(int(word.numbers[place]), place)
        return self.unknown(word.numbers[place : place + 4].tobytes().decode(errors="replace")[0], place)

    def unknown(self, symbol: object, place: int | str) -> InvalidWord:
        """The error for a symbol that the machine does not read, with the nearest one that it does."""
        where = f"at position {place}" if isinstance(place, int) else place
        if isinstance(symbol, int | np.integer):
            count = len(self.symbols)
            return InvalidWord(
                f"symbol {symbol} {where} is out of range: this machine has {count} symbols (0..{count - 1})."
            )
        name = str(symbol)
        near = get_close_matches(name[:60], self.symbols, n=1)
        hint = f" Did you mean {near[0]!r}?" if near and not self.by_letter else ""
        known = ", ".join(self.symbols[:12]) + (", ..." if len(self.symbols) > 12 else "")
        shown = name if len(name) <= 60 else name[:57] + "..."
        return InvalidWord(f"unknown symbol {shown!r} {where}.{hint} This machine reads {known}.")


def longest(trie: Trie, words: Sequence[bytes], at: int) -> tuple[bytes | None, int]:
    """(the longest symbol that begins at a word or None, how many words it has or 1)."""
    symbol, count, node = None, 1, trie
    for end in range(at, len(words)):
        following = node.get(words[end])
        if following is None:
            break
        node = following
        if None in node:
            symbol, count = node[None], end + 1 - at
    return symbol, count


def _native(array: Ints) -> Ints:
    """The array as the interpreter takes it: contiguous, in this machine's byte order, no small signed integers."""
    if array.size == 0:
        return np.zeros(array.shape, np.uint8)
    if not np.issubdtype(array.dtype, np.integer):
        raise InvalidWord(f"a word holds symbol names or integers; got {array.dtype}.")
    if array.dtype in (np.int8, np.int16):
        array = array.astype(np.int32)
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))

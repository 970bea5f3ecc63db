"""Tokenize text that arrives in chunks of bytes, split anywhere; no more than a chunk is in memory.

A chunk gives the symbols that are complete, as numbers, and for every end of line the number of symbols before it.
White space separates symbols; it is skipped where every symbol is one letter. Where symbols are words, an unknown word
is lowercased and its trailing punctuation split off, if that makes symbols of it: 'Key?' is 'key' and '?'. The symbols
before an unknown one, or before a byte that is not UTF-8, are still returned; the error is raised at the next call. A
byte order mark at the beginning is skipped.

Where the kernels are available, words are looked up in compiled code (`WordDictionary`); what it cannot decide, such as
a word that is not a symbol as it stands, is left to `Tokenizer`.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from ctypes import Structure, addressof, c_int64, c_void_p
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from exactstate import native
from exactstate._types import Ints
from exactstate.errors import InvalidWord
from exactstate.native import address
from exactstate.runtime.alphabet import MAX_WORDS, Alphabet, longest

Unknown = Literal["error", "skip"]
BLANKS = (9, 10, 11, 12, 13, 32)
NEWLINE = 10
BLANK = -2
BYTE_ORDER_MARK = "\ufeff"
MAX_NORMALIZED = 10_000
"""The number of normalized words that are cached."""


@dataclass(frozen=True, eq=False)
class TokenChunk:
    """The symbols of a chunk of text."""

    numbers: Ints
    breaks: Ints
    """For every end of line, the number of symbols before it."""


class Tokenizer:
    """Text in chunks -> symbol numbers and ends of lines."""

    def __init__(self, alphabet: Alphabet, *, unknown: Unknown = "error") -> None:
        self.alphabet, self.unknown = alphabet, unknown
        self.line, self.in_line = 1, 0
        """The line of the next symbol, and the number of symbols of that line read so far."""
        self.skipped = 0
        self.unknown_symbol: str | None = None
        """The unknown symbol that ended the reading."""
        self._error: InvalidWord | None = None
        self._held = b""
        self._mark = b"" if BYTE_ORDER_MARK in alphabet.symbols else BYTE_ORDER_MARK.encode()
        self._begun = b""
        """The first bytes, as long as they may be a byte order mark."""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._number_of = {name.encode("utf-8", "surrogatepass"): a for a, name in enumerate(alphabet.symbols)}
        self._longest = (
            max(map(len, self._number_of)) + 1000
        )  # unknown words are kept whole for the error, up to a limit
        self._marks = {name for name in self._number_of if len(name) == 1 and not name.isalnum()}
        words = not alphabet.by_letter and alphabet.most_words <= MAX_WORDS and native.available()
        self._dictionary = WordDictionary(alphabet) if words else None
        self._normalized: dict[bytes, list[bytes]] = {}
        self._blank = np.isin(np.arange(256), BLANKS)
        self._blank[[ord(name) for name in alphabet.symbols if alphabet.by_letter and ord(name) < 256]] = False
        if alphabet.by_letter:
            points = np.array([ord(name) for name in alphabet.symbols])
            self._order = np.argsort(points)
            self._points = points[self._order]
            self._byte_of = np.full(128, -1, np.int32)
            self._byte_of[np.flatnonzero(self._blank[:128])] = BLANK
            plain = points < 128
            self._byte_of[points[plain]] = np.flatnonzero(plain)

    def feed(self, chunk: bytes) -> TokenChunk:
        """The symbols that are complete now."""
        return self._read(chunk, final=False)

    def finish(self) -> TokenChunk:
        """The symbols that the end of the text completes."""
        return self._read(b"", final=True)

    def refuse_unknown(self) -> None:
        """Raise the error for an unknown symbol, if there was one."""
        if self._error is not None:
            raise self._error

    def _read(self, chunk: bytes, *, final: bool) -> TokenChunk:
        self.refuse_unknown()
        if self._mark:
            self._begun += chunk
            if not final and self._begun != self._mark and self._mark.startswith(self._begun):
                return TokenChunk(np.zeros(0, np.int32), np.zeros(0, np.int64))
            chunk, self._mark = self._begun.removeprefix(self._mark), b""
        return self._letters(chunk, final) if self.alphabet.by_letter else self._words(chunk, final)

    def _words(self, chunk: bytes, final: bool) -> TokenChunk:
        """By the compiled dictionary as far as it decides; a word that is not a symbol as it stands is left."""
        if self._dictionary is None:
            return self._other_words(chunk, final)
        text = self._held + chunk
        numbers, breaks, consumed, unknown = self._dictionary.tokenize(text, final=final)
        self._held = text[consumed:]
        piece = self._counted(numbers, breaks)
        if not unknown and len(self._held) <= self._longest:
            return piece
        self._held = b""
        rest = self._other_words(text[consumed:], final)
        return TokenChunk(
            np.concatenate([piece.numbers, rest.numbers]), np.concatenate([piece.breaks, rest.breaks + len(numbers)])
        )

    def _other_words(self, chunk: bytes, final: bool) -> TokenChunk:
        *lines, last = (self._held + chunk).split(b"\n")
        rows = [self._symbols(line.split()) for line in lines]
        words = last.split()
        unfinished = b"" if final or not last or last[-1:].isspace() else words.pop()
        waiting = 0 if final else self.alphabet.most_words - 1  # trailing words that may begin a longer symbol
        rows.append(self._symbols(words, ahead=waiting))
        self._held = b" ".join([*words, unfinished])
        if len(unfinished) > self._longest:  # no symbol is that long, so it is truncated
            rows[-1] += [*self._symbols(words), unfinished] if self.unknown == "error" else []
            self._held = b" ".join([*words, unfinished[: self._longest + 1]])

        try:
            names, breaks = _joined(rows)
            numbers = np.fromiter(map(self._number_of.__getitem__, names), np.int32, len(names))
        except KeyError:
            names, breaks = _joined([[symbol for name in row for symbol in self._normalize(name)] for row in rows])
            found = np.array([self._number_of.get(name, -1) for name in names], np.int32)
            if (found >= 0).all():
                return self._counted(found, breaks)
            return self._without_unknown(found, breaks, lambda place: names[place].decode(errors="backslashreplace"))
        return self._counted(numbers, breaks)

    def _symbols(self, words: list[bytes], ahead: int = 0) -> list[bytes]:
        """The words as symbols, the longest match first; the last `ahead` words may continue and stay in the list."""
        most = self.alphabet.most_words
        if most == 1:
            symbols, words[:] = words[:], []
            return symbols
        symbols, at, end = [], 0, len(words) - ahead
        trie = self.alphabet.words
        while at < end:
            symbol, count = longest(trie, words, at)
            symbols.append(words[at] if symbol is None else symbol)
            at += count
        words[:at] = []
        return symbols

    def _normalize(self, word: bytes) -> list[bytes]:
        """A word as symbols: lowercased, with trailing punctuation split off; unchanged if that does not help."""
        if word in self._number_of or self.alphabet.most_words > 1:
            return [word]
        found = self._normalized.get(word)
        if found is None:
            text, marks = word, list[bytes]()
            while text not in self._number_of and text[-1:] in self._marks:
                text, marks = text[:-1], [text[-1:], *marks]
            text = text if text in self._number_of else text.lower()
            found = [text, *marks] if text in self._number_of else [word]
            if len(self._normalized) < MAX_NORMALIZED:
                self._normalized[word] = found
        return found

    def _letters(self, chunk: bytes, final: bool) -> TokenChunk:
        if self._byte_of is not None and chunk.isascii() and not self._decoder.getstate()[0]:
            return self._ascii(np.frombuffer(chunk, np.uint8))
        wrong = None
        try:
            text = self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            wrong = error.object[error.start]
            text = error.object[: error.start].decode()
        piece = self._points_of(text)
        if wrong is not None and self._error is None:
            place = f"on line {self.line}, letter {self.in_line + 1}"
            self._error = InvalidWord(f"the byte {wrong:#04x} {place}, is not UTF-8 text.")
        return piece

    def _ascii(self, letters: Ints) -> TokenChunk:
        """The same for letters that are all ASCII, by one lookup each."""
        assert self._byte_of is not None
        numbers = self._byte_of[letters]
        blank = numbers == BLANK
        ends = np.flatnonzero(blank & (letters == NEWLINE))
        breaks = ends - np.searchsorted(np.flatnonzero(blank), ends) if len(ends) else np.zeros(0, np.int64)
        kept = numbers[~blank]
        if len(kept) and int(kept.min()) < 0:
            names = letters[~blank]
            return self._without_unknown(kept, breaks, lambda place: chr(names[place]))
        return self._counted(kept, breaks)

    def _points_of(self, text: str) -> TokenChunk:
        points = np.frombuffer(text.encode("utf-32-le"), "<u4")
        blank = self._blank[np.minimum(points, 255)] & (points < 256)
        ends = np.flatnonzero((points == NEWLINE) & blank)
        breaks = np.cumsum(~blank)[ends] if len(ends) else np.zeros(0, np.int64)
        letters = points[~blank]
        at = np.minimum(np.searchsorted(self._points, letters), len(self._points) - 1)
        numbers = np.where(self._points[at] == letters, self._order[at], -1)
        if (numbers < 0).any():
            return self._without_unknown(numbers, breaks, lambda place: chr(letters[place]))
        return self._counted(numbers, breaks)

    def _without_unknown(self, numbers: Ints, breaks: Ints, name: Callable[[int], str]) -> TokenChunk:
        """The symbols that are known, all of them or those before the first unknown one, which becomes the error."""
        known = numbers >= 0
        if self.unknown == "skip":
            self.skipped += int((~known).sum())
            return self._counted(numbers[known], np.concatenate([[0], np.cumsum(known)])[breaks])
        place = int(np.argmin(known))
        piece = self._counted(numbers[:place], breaks[breaks <= place])
        self.unknown_symbol = name(place)
        self._error = self.unknown_at(self.unknown_symbol, self.line, self.in_line + 1)
        return piece

    def unknown_at(self, name: str, line: int, place: int) -> InvalidWord:
        """The error for an unknown symbol."""
        kind = "letter" if self.alphabet.by_letter else "word"
        return self.alphabet.unknown(name, f"on line {line}, {kind} {place}")

    def _counted(self, numbers: Ints, breaks: Ints) -> TokenChunk:
        self.line += len(breaks)
        self.in_line = len(numbers) - int(breaks[-1]) if len(breaks) else self.in_line + len(numbers)
        return TokenChunk(numbers, breaks)


class _Dictionary(Structure):
    """As in csrc/text.cpp."""

    _fields_ = [
        *((name, c_void_p) for name in ("letters", "begins", "slots")), ("slot_mask", c_int64),
        *((name, c_void_p) for name in ("first", "edges", "children")), ("edge_mask", c_int64), ("words", c_int64),
        *((name, c_void_p) for name in ("symbols", "inner")),
    ]  # fmt: skip


class WordDictionary:
    """The symbols of an alphabet as a trie of words, in arrays."""

    def __init__(self, alphabet: Alphabet) -> None:
        words, nodes, edges = self._trie(alphabet)
        library = native.library()
        names = list(words)
        letters = np.frombuffer(b"".join(names) + b"\0", np.uint8)
        begins = np.cumsum([0, *map(len, names)]).astype(np.int64)
        slots = np.full(_power_above(2 * len(names)), -1, np.int32)
        for number, word in enumerate(names):
            _put(slots, library.exactstate_word_hash(word, len(word)), number)
        first = np.full(max(len(names), 1), -1, np.int32)
        deeper = {key: child for key, child in edges.items() if key[0]}
        keys = np.full(_power_above(2 * len(deeper)), -1, np.int64)
        children = np.full(len(keys), -1, np.int32)
        for (node, number), child in edges.items():
            if node:
                key = node * len(names) + number
                children[_put(keys, library.exactstate_edge_hash(key), key)] = child
            else:
                first[number] = child
        symbols = np.array(nodes, np.int32)
        inner = np.zeros(len(nodes), np.uint8)
        inner[[node for node, _ in edges]] = 1
        self._arrays = (letters, begins, slots, first, keys, children, symbols, inner)
        at = [address(array) for array in self._arrays]
        self._entry = _Dictionary(
            at[0], at[1], at[2], len(slots) - 1, at[3], at[4], at[5], len(keys) - 1, len(names), at[6], at[7]
        )  # fmt: skip

    @staticmethod
    def _trie(alphabet: Alphabet) -> tuple[dict[bytes, int], list[int], dict[tuple[int, int], int]]:
        """(number of every word, symbol of every node, (node, word) -> node)."""
        words: dict[bytes, int] = {}
        nodes, edges = [-1], dict[tuple[int, int], int]()
        for symbol, name in enumerate(alphabet.symbols):
            spelled = name.encode("utf-8", "surrogatepass")
            parts = spelled.split()
            if not parts or b" ".join(parts) != spelled:
                continue  # it does not occur in text
            node = 0
            for part in parts:
                key = (node, words.setdefault(part, len(words)))
                if key not in edges:
                    edges[key] = len(nodes)
                    nodes.append(-1)
                node = edges[key]
            nodes[node] = symbol
        return words, nodes, edges

    def tokenize(self, text: bytes, *, final: bool) -> tuple[Ints, Ints, int, bool]:
        """(symbols, for every end of line the symbols before it, bytes read, whether an unknown word follows).

        What is not read may be the beginning of a longer symbol; a final text is read to its end.
        """
        numbers = np.empty(len(text) // 2 + 1, np.int32)
        breaks = np.empty(text.count(b"\n"), np.int64)
        counts = np.zeros(3, np.int64)
        unknown = native.library().exactstate_tokenize(
            addressof(self._entry), text, len(text), int(final), address(numbers), address(breaks),
            address(counts),
        )  # fmt: skip
        symbols, ends, consumed = counts.tolist()
        return numbers[:symbols], breaks[:ends], consumed, bool(unknown)


def _joined(rows: list[list[bytes]]) -> tuple[list[bytes], Ints]:
    """(the symbols of all lines, the number of them before every end of line)."""
    return list(chain.from_iterable(rows)), np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)))[:-1]


def _power_above(count: int) -> int:
    return 1 << max(3, count.bit_length())


def _put(table: Ints, hash: int, value: int) -> int:
    """Put a value into a table of open addressing; its place."""
    at = hash & (len(table) - 1)
    while table[at] >= 0:
        at = (at + 1) & (len(table) - 1)
    table[at] = value
    return int(at)

"""Text to symbol numbers and numbers to text in compiled code: a dictionary of words, and names to be written.

`Tokenizer` and `Filter` use these where the kernels are available; what they cannot decide, such as a word that is not
a symbol as it stands, is left to `Tokenizer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, addressof, byref, c_int, c_int64, c_void_p

import numpy as np

from exactstate import native
from exactstate._types import Ints
from exactstate.native import address
from exactstate.runtime.alphabet import Alphabet


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


class NameWriter:
    """Names by number, to be written with something between them."""

    def __init__(self, names: Sequence[bytes], between: bytes) -> None:
        self._letters = np.frombuffer(b"".join(names) + b"\0", np.uint8)
        self._begins = np.cumsum([0, *map(len, names)]).astype(np.int64)
        self._lengths = np.diff(self._begins)
        self.between = between

    def write(self, numbers: Ints, ends: Ints, *, begun: bool) -> tuple[bytes, bool]:
        """(the text, whether its last line has something); `ends` as in `TokenChunk.breaks`."""
        numbers, ends = np.ascontiguousarray(numbers, np.int32), np.ascontiguousarray(ends, np.int64)
        most = int(self._lengths[numbers].sum()) + len(self.between) * len(numbers) + len(ends)
        out, state = np.empty(most + 1, np.uint8), c_int(begun)
        written = native.library().exactstate_write_names(
            address(numbers), len(numbers), address(ends), len(ends), address(self._letters),
            address(self._begins), self.between, len(self.between), byref(state), address(out),
        )  # fmt: skip
        return out[:written].tobytes(), bool(state.value)


def _power_above(count: int) -> int:
    return 1 << max(3, count.bit_length())


def _put(table: Ints, hash: int, value: int) -> int:
    """Put a value into a table of open addressing; its place."""
    at = hash & (len(table) - 1)
    while table[at] >= 0:
        at = (at + 1) & (len(table) - 1)
    table[at] = value
    return int(at)

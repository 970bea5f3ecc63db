"""A prefix tree of traces: a node for every prefix, and how often each output was seen there.

    n  nodes     m  observations     N  symbols of all traces

Node 0 is the empty word. The output at a node is that of the state which is reached, or of the transition into it.
Trees can be merged, so that parts of a log can be read by several processes. The tree is built by compiled code
(exactstate/csrc/prefix_tree.cpp).
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactstate import native
from exactstate._types import MISSING, Ints
from exactstate.errors import BudgetExceeded, InvalidInput
from exactstate.native import address

MAX_NODES = 1 << 28
"""Nodes of the largest tree: about 20 GB with its hash table."""


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """A prefix tree as arrays; a parent comes before its children."""

    parent: Ints
    """n: MISSING at the root."""
    symbol: Ints
    """n: the last symbol of the prefix; MISSING at the root."""
    visits: Ints
    """n: how many traces pass."""
    node: Ints
    """m: where an output was seen ..."""
    output: Ints
    """m: ... which one ..."""
    count: Ints
    """m: ... how often ..."""
    line: Ints
    """m: ... and in which line of the log first."""

    def prefix(self, node: int) -> list[int]:
        """The symbols that lead to a node."""
        word = []
        while node:
            word.append(int(self.symbol[node]))
            node = int(self.parent[node])
        return word[::-1]

    @cached_property
    def ranks(self) -> Ints:
        """n: the place of every node when prefixes are sorted by length, then by their symbols."""
        ranks = np.empty(len(self.parent), np.int64)
        parent, symbol = (np.ascontiguousarray(part, np.int32) for part in (self.parent, self.symbol))
        native.library().exactstate_tree_ranks(address(parent), address(symbol), len(parent), address(ranks))
        return ranks

    @cached_property
    def of_transitions(self) -> tuple[Ints, Ints, Ints]:
        """(symbols, outputs, counts) of what was seen after a symbol."""
        inner = self.node > 0
        return self.symbol[self.node[inner]].astype(np.int64), self.output[inner], self.count[inner]

    @cached_property
    def contradictions(self) -> Ints:
        """Nodes with more than one output, those of the earliest lines first."""
        several = np.flatnonzero(np.bincount(self.node, minlength=1) > 1)
        if not len(several):
            return several
        rows = np.isin(self.node, several)
        later = np.zeros(len(self.parent), np.int64)
        np.maximum.at(later, self.node[rows], self.line[rows])
        return several[np.argsort(later[several], kind="stable")]


class PrefixTree:
    """Traces with their outputs; traces with a common prefix share its nodes.

    >>> tree = PrefixTree()
    >>> tree.add(np.array([[0, 1], [0, 0]]), np.array([[1, 0], [1, 1]]))
    >>> len(tree), tree.arrays.visits.tolist()
    (4, [2, 2, 1, 1])
    """

    def __init__(self, *, max_nodes: int = MAX_NODES) -> None:
        self._tree = _Tree()
        self._arrays: TreeArrays | None = None
        self.max_nodes, self.words = max_nodes, 0

    def __len__(self) -> int:
        return len(self._tree)

    @property
    def arrays(self) -> TreeArrays:
        """The tree as it is now."""
        if self._arrays is None:
            self._arrays = self._tree.arrays()
        return self._arrays

    def add(self, inputs: Ints, outputs: Ints) -> None:
        """Add words of one length, and the output at each of their symbols (B L each)."""
        count, length = inputs.shape
        self.add_traces(inputs.reshape(-1), outputs.reshape(-1), np.full(count, length))

    def add_traces(
        self, symbols: Ints, outputs: Ints, lengths: Ints, initial: Ints | None = None, lines: Ints | None = None
    ) -> None:
        """Add traces of any lengths, one after another in `symbols` and `outputs` (N each).

        - `outputs`: MISSING where none was seen.
        - `initial`: the outputs before the first symbol, MISSING for none.
        - `lines`: where the traces stand in the log; by default they are numbered from 1.
        """
        count = len(lengths)
        lines = np.arange(self.words + 1, self.words + count + 1) if lines is None else lines
        initial = np.full(count, MISSING) if initial is None else initial
        if len(symbols) != len(outputs) or int(np.sum(lengths)) != len(symbols) or len(initial) != count:
            raise InvalidInput(
                f"{count} traces with {int(np.sum(lengths))} symbols in all were wanted; got {len(symbols)} symbols, "
                f"{len(outputs)} outputs and {len(initial)} initial outputs."
            )
        if len(symbols) and int(np.min(symbols)) < 0:
            raise InvalidInput(f"symbols are numbered from 0; got {int(np.min(symbols))}.")
        symbols, outputs, initial = _as_integers(symbols=symbols, outputs=outputs, initial=initial, to=np.int32)
        lengths, lines = _as_integers(lengths=lengths, lines=lines, to=np.int64)
        added = self._tree.add(symbols, outputs, lengths, initial, lines, self.max_nodes)
        self._arrays, self.words = None, self.words + added
        if added < count:
            raise BudgetExceeded(self._too_large())

    def merge(self, other: PrefixTree) -> None:
        """Add another tree over the same symbols and outputs."""
        self.merge_arrays(other.arrays, other.words)

    def merge_arrays(self, arrays: TreeArrays, words: int) -> None:
        """Add the arrays of another tree, and its number of traces."""
        self._tree.merge(arrays)
        self._arrays, self.words = None, self.words + words
        if len(self) > self.max_nodes:
            raise BudgetExceeded(self._too_large())

    def _too_large(self) -> str:
        return (
            f"the prefix tree would have more than {self.max_nodes:,} nodes; after {self.words:,} traces it has "
            f"{len(self):,}. Learn from a part of the log, or from shorter traces."
        )


def _as_integers(*, to: type, **arrays: Ints) -> list[Ints]:
    """The arrays as compiled code reads them; numbers that would become others are refused."""
    limits = np.iinfo(to)
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" and len(array):
            raise InvalidInput(f"{name} are integers; got {array.dtype}.")
        if len(array) and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
            raise InvalidInput(f"{name} lie between {limits.min:,} and {limits.max:,}; got {int(array.max()):,}.")
    return [np.ascontiguousarray(array, to) for array in arrays.values()]


class _Tree:
    """The compiled tree."""

    def __init__(self) -> None:
        self.library = native.library()
        self.handle = self.library.exactstate_tree_new()
        weakref.finalize(self, self.library.exactstate_tree_free, self.handle)

    def __len__(self) -> int:
        return int(self.library.exactstate_tree_nodes(self.handle))

    def add(self, symbols: Ints, outputs: Ints, lengths: Ints, initial: Ints, lines: Ints, most: int) -> int:
        addresses = (address(array) for array in (symbols, outputs, lengths, initial, lines))
        return int(self.library.exactstate_tree_add(self.handle, *addresses, len(lengths), most))

    def merge(self, other: TreeArrays) -> None:
        parent, symbol, node, output = _as_integers(
            parent=other.parent, symbol=other.symbol, node=other.node, output=other.output, to=np.int32
        )
        visits, count, line = _as_integers(visits=other.visits, count=other.count, line=other.line, to=np.int64)
        tree, seen = (parent, symbol, visits), (node, output, count, line)
        self.library.exactstate_tree_merge(
            self.handle, *(address(a) for a in tree), len(tree[0]), *(address(a) for a in seen), len(seen[0])
        )

    def arrays(self) -> TreeArrays:
        nodes, seen = len(self), int(self.library.exactstate_tree_observations(self.handle))
        arrays: list[Ints] = [
            np.empty(nodes, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int64), np.empty(seen, np.int32),
            np.empty(seen, np.int32), np.empty(seen, np.int64), np.empty(seen, np.int64),
        ]  # fmt: skip
        self.library.exactstate_tree_export(self.handle, *(address(a) for a in arrays))
        return TreeArrays(*arrays)

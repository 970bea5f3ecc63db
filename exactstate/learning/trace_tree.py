"""A log as a prefix tree: names of symbols and outputs are numbered in the order in which they come.

Traces are encoded chunk by chunk. Pairs of lists, the usual form of traces in memory, are encoded without an object for
every trace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import format_word
from exactstate.errors import InvalidInput
from exactstate.learning.logs import Trace, as_traces, names_of, outputs_of, read_log
from exactstate.learning.prefix_tree import MAX_NODES, PrefixTree, TreeArrays

CHUNK = 1 << 16
"""Symbols that are collected before they go into the tree."""
Encoded = tuple[Ints, Ints, Ints, Ints, Ints]
"""(symbols, outputs, lengths, initial outputs, lines) of traces, one after another; see `PrefixTree.add_traces`."""


Pairs = tuple[Sequence[Sequence[Any]], Sequence[Sequence[Any]]]
"""Words, and the outputs of each: None where nothing was seen."""


@dataclass(frozen=True, eq=False)
class TreePart:
    """The tree of a part of a log as plain data; see `TraceTree`."""

    arrays: TreeArrays
    words: int
    symbols: tuple[str, ...]
    outputs: tuple[str, ...]
    everywhere: bool
    observed: int
    length: int


@dataclass
class TraceTree:
    """A log as a prefix tree, with the names of its symbols and outputs in the order in which they came."""

    tree: PrefixTree = field(default_factory=PrefixTree)
    symbols: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    everywhere: bool = False
    """Whether some trace has an output before its end."""
    observed: int = 0
    """Outputs seen."""
    length: int = 0
    """Symbols of all traces."""

    @classmethod
    def of(
        cls, traces: Iterable[Trace], *, max_nodes: int = MAX_NODES, watch: Callable[[int, int], None] | None = None
    ) -> TraceTree:
        """Read all traces; `watch` is called with the numbers of traces and nodes so far."""
        log = cls(PrefixTree(max_nodes=max_nodes))
        log.add(traces, watch=watch)
        if not log.tree.words:
            raise InvalidInput("there is no trace to learn from.")
        return log

    def add(self, traces: Iterable[Trace], *, watch: Callable[[int, int], None] | None = None) -> None:
        """Add all traces."""
        self._add(_encoded_traces(traces, self), watch)

    def add_pairs(self, pairs: Pairs, *, watch: Callable[[int, int], None] | None = None) -> None:
        """Add traces with an output for every input."""
        self._add(_encoded_pairs(pairs, self), watch)

    def _add(self, parts: Iterable[Encoded], watch: Callable[[int, int], None] | None) -> None:
        for part in parts:
            _, outputs, lengths, initial, _ = part
            seen = np.concatenate([[0], np.cumsum(outputs != MISSING)])
            ends = np.cumsum(lengths)
            seen_in_trace = seen[ends] - seen[ends - lengths]
            with_initial = (lengths == 1) & (seen_in_trace == 1) & (initial != MISSING)
            self.everywhere |= bool(((seen_in_trace > 1) | with_initial).any())
            self.observed += int(seen[-1]) + int((initial != MISSING).sum())
            self.length += len(outputs)
            self.tree.add_traces(*part)
            if watch is not None:
                watch(self.tree.words, len(self.tree))

    @property
    def part(self) -> TreePart:
        """What another tree needs to add this one."""
        return TreePart(
            self.tree.arrays, self.tree.words, tuple(self.symbols), tuple(self.outputs), self.everywhere, self.observed,
            self.length,
        )  # fmt: skip

    def merge(self, other: TraceTree | TreePart) -> None:
        """Add the tree of another part of a log, whose names may be numbered otherwise."""
        other = other.part if isinstance(other, TraceTree) else other
        symbols = np.array([self.symbols.setdefault(name, len(self.symbols)) for name in other.symbols], np.int32)
        outputs = np.array([self.outputs.setdefault(name, len(self.outputs)) for name in other.outputs], np.int32)
        arrays = other.arrays
        symbol = arrays.symbol.copy()
        if len(symbols):
            symbol[1:] = symbols[arrays.symbol[1:]]
        output = outputs[arrays.output] if len(outputs) else arrays.output
        self.everywhere |= other.everywhere
        self.observed, self.length = self.observed + other.observed, self.length + other.length
        self.tree.merge_arrays(replace(arrays, symbol=symbol, output=output), other.words)

    def refuse_contradictions(self, hint: str = "") -> None:
        """Raise the sentence that names two lines with different outputs after the same inputs, if there are any."""
        arrays = self.tree.arrays
        if not len(arrays.contradictions):
            return
        node = int(arrays.contradictions[0])
        rows = np.flatnonzero(arrays.node == node)
        (line, one), (other_line, other) = sorted((int(arrays.line[r]), int(arrays.output[r])) for r in rows)[:2]
        names, symbols = list(self.outputs), list(self.symbols)
        word = format_word([symbols[a] for a in arrays.prefix(node)])
        more = (
            f" ({len(arrays.contradictions):,} prefixes have several outputs)" if len(arrays.contradictions) > 1 else ""
        )
        raise InvalidInput(
            f"the log contradicts itself: after {word} the output is {names[one]!r} in line {line} and "
            f"{names[other]!r} in line {other_line}{more}. The outputs of a machine are a function of the inputs{hint}"
        )


def read_tree(
    traces: str | os.PathLike[str] | Iterable[Any], *, format: str | None = None, separator: str | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> TraceTree:  # fmt: skip
    """The prefix tree of a log file or of traces."""
    if isinstance(traces, str | os.PathLike):
        return TraceTree.of(read_log(traces, format=format, separator=separator), watch=watch)
    pairs = _as_pairs(traces) if isinstance(traces, list) else None
    if pairs is None:
        return TraceTree.of(as_traces(traces), watch=watch)
    log = TraceTree()
    log.add_pairs(pairs, watch=watch)
    return log


def _as_pairs(traces: list[Any]) -> Pairs | None:
    """The words and their outputs, if all traces are pairs of lists of the same length."""
    if set(map(type, traces)) != {tuple} or set(map(len, traces)) != {2}:
        return None
    words, seen = zip(*traces, strict=True)
    if not set(map(type, words)) | set(map(type, seen)) <= {list, tuple}:
        return None
    return (words, seen) if list(map(len, words)) == list(map(len, seen)) else None


def _encoded_pairs(pairs: Pairs, log: TraceTree) -> Iterator[Encoded]:
    words, seen = pairs
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    many = max(1, CHUNK // max(1, int(lengths.max(initial=0))))
    for begin in range(0, len(words), many):
        end = min(begin + many, len(words))
        count = int(lengths[begin:end].sum())
        yield (
            _number_inputs(words[begin:end], count, log), _number_outputs(seen[begin:end], count, log),
            lengths[begin:end], np.full(end - begin, MISSING, np.int32), np.arange(begin + 1, end + 1),
        )  # fmt: skip


def _encoded_traces(traces: Iterable[Trace], log: TraceTree) -> Iterator[Encoded]:
    for inputs, seen, lengths, lines in _chunks(traces):
        codes, length = _number_outputs([seen], len(seen), log), np.array(lengths, np.int64)
        last = np.cumsum(length + 1) - 1
        is_output = np.ones(len(codes), bool)
        is_output[last] = False
        symbols = _number_inputs([inputs], len(inputs), log)
        yield symbols, codes[is_output], length, codes[last], np.array(lines, np.int64)


def _chunks(traces: Iterable[Trace]) -> Iterator[tuple[list[str], list[str | None], list[int], list[int]]]:
    """(inputs, outputs, lengths, lines); the output before the first input comes after the others of its trace."""
    inputs: list[str] = []
    seen: list[str | None] = []
    lengths: list[int] = []
    lines: list[int] = []
    for trace in traces:
        inputs += trace.inputs
        seen += trace.outputs
        seen.append(trace.initial)
        lengths.append(len(trace.inputs))
        lines.append(trace.line)
        if len(inputs) >= CHUNK or len(lengths) >= CHUNK:
            yield inputs, seen, lengths, lines
            inputs, seen, lengths, lines = [], [], [], []
    if lengths:
        yield inputs, seen, lengths, lines


def _number_inputs(words: Sequence[Sequence[Any]], count: int, log: TraceTree) -> Ints:
    numbers = _numbers(chain.from_iterable(words), count, log.symbols, {})
    if numbers is None:
        numbers = _numbers(names_of(chain.from_iterable(words)), count, log.symbols, {})
    assert numbers is not None
    return numbers


def _number_outputs(seen: Sequence[Sequence[Any]], count: int, log: TraceTree) -> Ints:
    numbers = _numbers(chain.from_iterable(seen), count, log.outputs, {None: MISSING})
    if numbers is None:
        numbers = _numbers(outputs_of(chain.from_iterable(seen)), count, log.outputs, {None: MISSING})
    assert numbers is not None
    return numbers


class _Numbers(dict[Any, int]):
    """Names and their numbers; a new name gets the next one."""

    next_number = 0

    def __missing__(self, name: Any) -> int:
        number = self[name] = self.next_number
        self.next_number += 1
        return number


def _numbers(names: Iterable[Any], count: int, known: dict[str, int], extra: dict[Any, int]) -> Ints | None:
    """The number of each of `count` names; new ones are added to `known`. None where one of them is no string."""
    numbers = _Numbers(extra | known)
    numbers.next_number = len(known)
    try:
        found = np.fromiter(map(numbers.__getitem__, names), np.int32, count)
    except TypeError:  # something that cannot be hashed
        return None
    new = list(islice(numbers, len(known) + len(extra), None))
    if not set(map(type, new)) <= {str}:
        return None
    known.update((name, numbers[name]) for name in new)
    return found

"""Logs on a Ray cluster: prefix trees and conformance of parts, merged in order; the result of one process.

A log is cut where a trace begins. A task reads a part as if it were a log; what it found of lines and errors is
numbered from the beginning of the part, and the driver adds the lines of all parts before it. Parts are merged in their
order, so names, nodes and outputs have the numbers that one process gives them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from exactstate.automata import Mealy, Moore
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.learning.conformance import Conformance, conform
from exactstate.learning.logs import NO_TRACE, Layout, Trace, log_layout, part_ends, read_part, refuse_count
from exactstate.learning.trace_tree import TraceTree, TreePart
from exactstate.runtime.cluster import PARTITION, connected, file_size, in_order
from exactstate.runtime.io import from_bytes, to_bytes
from exactstate.runtime.machine import Machine

Path = str | os.PathLike[str]
Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class Part:
    """What a task found in a part of a log."""

    result: Any
    lines: int
    error: tuple[str, int | None] | None
    """Why the part cannot be read, and in which of its lines."""
    keys: frozenset[str] = frozenset()
    """What the log calls its traces."""
    pid: int = field(default_factory=os.getpid)
    """The process that read it."""


def _part(of: Callable[[Iterator[Trace]], Any], path: str, layout: Layout, begin: int, end: int) -> Part:
    """What a function finds in the traces of a part."""
    count, keys = [0], set[str]()

    def traces() -> Iterator[Trace]:
        for trace in read_part(path, layout, begin, end, count):
            if trace.key is not None:
                keys.add(trace.key)
            yield trace

    try:
        result = of(traces())
    except BrokenFile as error:
        return Part(None, 0, (error.reason, error.line))
    return Part(result, count[0], None, frozenset(keys))


def count_part(path: str, layout: Layout, begin: int, end: int) -> Part:
    """The prefix tree of a part."""

    def tree_of(traces: Iterator[Trace]) -> TreePart:
        tree = TraceTree()
        tree.add(traces)
        return tree.part

    return _part(tree_of, path, layout, begin, end)


def conform_part(path: str, layout: Layout, begin: int, end: int, content: bytes) -> Part:
    """The conformance of a part, without its machine."""
    machine = from_bytes(content, "the machine of the cluster").automaton

    def found(traces: Iterator[Trace]) -> tuple[Any, ...]:
        found = conform(machine, traces)
        return found.traces, found.symbols, found.departing, found.first, found.covered

    return _part(found, path, layout, begin, end)


def read_tree_on_cluster(
    path: Path, *, format: str | None = None, separator: str | None = None, address: str = "local",
    workers: int | None = None, partition: int = PARTITION, watch: Watch | None = None,
    watch_process: Callable[[int], None] | None = None,
) -> TraceTree:  # fmt: skip
    """The prefix tree of a log file, as `read_tree` gives it.

    - `watch`: called with the numbers of traces and nodes so far.
    - `watch_process`: called with the process of every part that is done.
    """
    layout = log_layout(path, format=format, separator=separator)
    log = TraceTree()
    for line, part in _parts(path, layout, count_part, (), address, workers, partition, watch_process):
        found: TreePart = part.result
        log.merge(replace(found, arrays=replace(found.arrays, line=found.arrays.line + line)))
        if watch is not None:
            watch(log.tree.words, len(log.tree))
    _refuse(path, layout, log.tree.words)
    return log


def conform_on_cluster(
    machine: Moore | Mealy, path: Path, *, format: str | None = None, separator: str | None = None,
    address: str = "local", workers: int | None = None, partition: int = PARTITION, watch: Watch | None = None,
    watch_process: Callable[[int], None] | None = None,
) -> Conformance:  # fmt: skip
    """The conformance of a log file, as `conform` gives it; arguments as above."""
    layout = log_layout(path, format=format, separator=separator)
    content = to_bytes(Machine.of(machine))
    traces = symbols = departing = 0
    first, covered = None, np.zeros((machine.n_symbols, machine.n_states), np.int64)
    for line, part in _parts(path, layout, conform_part, (content,), address, workers, partition, watch_process):
        counts, departure, taken = part.result[:3], part.result[3], part.result[4]
        traces, symbols, departing = traces + counts[0], symbols + counts[1], departing + counts[2]
        covered += taken
        if first is None and departure is not None:
            first = replace(departure, line=departure.line + line)
        if watch is not None:
            watch(traces, symbols)
    _refuse(path, layout, traces)
    return Conformance(
        machine=machine, traces=traces, symbols=symbols, departing=departing, first=first, covered=covered
    )  # fmt: skip


def _refuse(path: Path, layout: Layout, traces: int) -> None:
    """Raise what one process raises at the end of a log."""
    if layout.strings is not None:
        refuse_count(layout.strings, traces, path)
    if not traces:
        raise BrokenFile(path, NO_TRACE)


def _parts(
    path: Path, layout: Layout, function: Callable[..., Part], arguments: tuple[Any, ...], address: str,
    workers: int | None, partition: int, watch_process: Callable[[int], None] | None,
) -> Iterator[tuple[int, Part]]:  # fmt: skip
    """(lines before it, part) of every part in order; some are computed ahead."""
    if partition < 1:
        raise InvalidConfig(f"a partition has at least 1 byte; got {partition}.")
    file_size(path)
    line, keys = 0, set[str]()
    with connected(address, workers) as ray:
        shared = [ray.put(argument) for argument in arguments]
        ends = chain([0], part_ends(path, layout, partition))
        calls = ((os.path.abspath(path), layout, begin, end, *shared) for begin, end in pairwise(ends))
        for reference in in_order(ray, function, calls, workers):
            part: Part = ray.get(reference)
            if part.error is not None:
                reason, at = part.error
                raise BrokenFile(path, reason, None if at is None else at + line)
            if again := keys & part.keys:
                raise BrokenFile(
                    path,
                    f"the rows of the trace {min(again)!r} lie in several parts of the log; sort the log by trace, or "
                    "read it without --cluster.",
                )
            keys |= part.keys
            if watch_process is not None:
                watch_process(part.pid)
            yield line, part
            line += part.lines

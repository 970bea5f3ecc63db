"""Minimize a Moore or Mealy machine; the result is numbered canonically.

Unreachable states are dropped, equivalent states merged, and the rest numbered breadth-first from the start in symbol
order. So two machines of one kind with the same input-output behavior, over the same symbols and outputs in the same
order, become equal (`==`); `canonical` makes the order of names irrelevant too. The output of a Moore machine in its
start state counts as its response to the empty word.

Partitions are refined in rounds over all states at once (Moore 1956) while the number of blocks grows quickly, then by
Hopcroft's algorithm ("An n log n algorithm for minimizing states in a finite automaton", 1971).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TypeVar

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Mealy, Moore
from exactstate.automata.run import smallest_dtype
from exactstate.errors import InvalidMachine

M = TypeVar("M", Moore, Mealy)


def minimize(machine: M) -> M:
    """The minimal machine with the same input-output behavior, numbered canonically; symbols and outputs stay.

    >>> from exactstate.automata import cyclic, parallel
    >>> minimize(parallel(cyclic(3), cyclic(3))).n_states
    3
    """
    if not isinstance(machine, Moore | Mealy):
        raise InvalidMachine(
            f"only machines with outputs can be minimized; got {machine!r}. Moore.of(machine) adds outputs."
        )
    order = reachable(machine.tables, machine.start)
    number = np.zeros(machine.n_states, np.int64)
    number[order] = np.arange(len(order))
    tables, readout = number[machine.tables[:, order]], machine.readout[..., order]
    blocks = refine(tables, numbered(readout) if readout.ndim == 1 else equal_rows(readout.T))
    # blocks are numbered by their first states, so a block begins where the largest number so far is exceeded
    first = np.flatnonzero(np.diff(np.maximum.accumulate(blocks), prepend=-1))
    return replace(machine, tables=blocks[tables[:, first]], states=(), start=0, readout=readout[..., first])


def canonical(machine: M) -> M:
    """The minimal machine with symbols and outputs sorted by name, without the outputs that it never gives.

    Two machines of one kind have the same behavior, name by name, exactly when their canonical machines are equal.
    """
    order = sorted(range(machine.n_symbols), key=machine.symbols.__getitem__)
    readout = machine.readout if isinstance(machine, Moore) else machine.readout[order]
    small = minimize(
        replace(
            machine, symbols=tuple(machine.symbols[a] for a in order), tables=machine.tables[order], readout=readout
        )
    )
    used, place = np.unique(small.readout, return_inverse=True)
    names = sorted(small.outputs[output] for output in used)
    rank = np.array([names.index(small.outputs[output]) for output in used])
    return replace(small, outputs=tuple(names), readout=rank[place.reshape(small.readout.shape)])


def reachable(tables: Ints, start: int) -> Ints:
    """The states that words reach from the start, breadth-first in the order of the symbols; entries may be MISSING."""
    successors = tables.T.tolist()
    seen = bytearray(len(successors))
    seen[start] = 1
    order = [start]
    for state in order:
        for target in successors[state]:
            if target >= 0 and not seen[target]:
                seen[target] = 1
                order.append(target)
    return np.array(order)


_MAX_UNSORTED = 512
_POOR_ROUNDS = 3
_GOOD_GROWTH = 1.25


def refine(tables: Ints, colors: Ints) -> Ints:
    """The coarsest partition (n) that keeps differently colored states apart and that every table (A n) respects."""
    blocks, count, poor = numbered(colors), 0, 0
    while poor < _POOR_ROUNDS:
        before, count = count, int(blocks.max()) + 1
        if count == before or count == len(blocks):
            return blocks
        poor += count < _GOOD_GROWTH * before
        small = blocks.astype(smallest_dtype(count))
        blocks = equal_rows(np.concatenate([small[None, :], small[tables]]).T)
    return _hopcroft(tables, blocks)


def _hopcroft(tables: Ints, blocks: Ints) -> Ints:
    block_of = blocks.tolist()
    members: list[set[int]] = [set() for _ in range(max(block_of) + 1)]
    for state, block in enumerate(block_of):
        members[block].add(state)
    predecessors: list[list[list[int]]] = []
    for row in tables.tolist():
        inverse: list[list[int]] = [[] for _ in row]
        for state, target in enumerate(row):
            inverse[target].append(state)
        predecessors.append(inverse)

    # splitting by all blocks but one implies splitting by the last one, so the largest is left out
    worklist = sorted(range(len(members)), key=lambda block: len(members[block]))[:-1]
    while worklist:
        splitter = list(members[worklist.pop()])
        for inverse in predecessors:
            hits: defaultdict[int, list[int]] = defaultdict(list)
            for target in splitter:
                for state in inverse[target]:
                    hits[block_of[state]].append(state)
            for block, hit in hits.items():
                whole = members[block]
                if len(hit) == len(whole):
                    continue
                smaller = set(hit) if 2 * len(hit) <= len(whole) else whole.difference(hit)
                whole -= smaller
                for state in smaller:
                    block_of[state] = len(members)
                worklist.append(len(members))
                members.append(smaller)
    return numbered(np.array(block_of))


def numbered(labels: Ints) -> Ints:
    """The partition into equal labels, its blocks numbered by their first state."""
    if len(labels) <= _MAX_UNSORTED:  # sorting pays from here on
        number: dict[int, int] = {}
        return np.array([number.setdefault(label, len(number)) for label in labels.tolist()], np.int64)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def equal_rows(rows: Ints) -> Ints:
    """The partition of the rows (n anything) into equal ones, numbered by their first."""
    raw = np.ascontiguousarray(rows).tobytes()
    width = len(raw) // len(rows)
    number: dict[bytes, int] = {}
    return np.array([number.setdefault(raw[i : i + width], len(number)) for i in range(0, len(raw), width)], np.int64)

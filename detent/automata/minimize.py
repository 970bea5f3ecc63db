"""The smallest machine that responds in the same way, in one numbering for all of them.

States that no word reaches are dropped, states that respond alike to every word are merged, and the rest is numbered
breadth-first from the start in the order of the symbols. Machines of one kind that respond alike, over the same symbols
and outputs in the same order, therefore become equal (`==`); `canonical` makes the order of the names irrelevant too.
What a Moore machine says in its start counts as its response to the empty word.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TypeVar

import numpy as np

from detent._types import Ints
from detent.automata.machine import Mealy, Moore
from detent.automata.run import smallest_dtype
from detent.errors import InvalidMachine

# -- The coarsest partition of the states that refines a colouring and that every symbol respects.

_POOR_ROUNDS = 3
_GOOD_GROWTH = 1.25


def refine(tables: Ints, colours: Ints) -> Ints:
    """The coarsest partition (n) that keeps differently coloured states apart and that every table (A n) respects."""
    blocks, count, poor = numbered(colours), 0, 0
    while poor < _POOR_ROUNDS:
        before, count = count, int(blocks.max()) + 1
        if count == before or count == len(blocks):
            return blocks
        poor += count < _GOOD_GROWTH * before
        small = blocks.astype(smallest_dtype(count))
        blocks = equal_rows(np.concatenate([small[None, :], small[tables]]).T)
    return _hopcroft(tables, blocks)


def numbered(labels: Ints) -> Ints:
    """The partition into equal labels, its blocks numbered by their first state."""
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


def _hopcroft(tables: Ints, blocks: Ints) -> Ints:
    block_of = blocks.tolist()
    members: list[set[int]] = [set() for _ in range(max(block_of) + 1)]
    for state, block in enumerate(block_of):
        members[block].add(state)
    comes_from: list[list[list[int]]] = []
    for row in tables.tolist():
        inverse: list[list[int]] = [[] for _ in row]
        for state, target in enumerate(row):
            inverse[target].append(state)
        comes_from.append(inverse)

    # splitting by all blocks but one implies splitting by that one, so the largest is left out
    waiting = sorted(range(len(members)), key=lambda block: len(members[block]))[:-1]
    while waiting:
        splitter = list(members[waiting.pop()])
        for inverse in comes_from:
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
                waiting.append(len(members))
                members.append(smaller)
    return numbered(np.array(block_of))


M = TypeVar("M", Moore, Mealy)


def minimize(machine: M) -> M:
    """The smallest machine with the same responses, canonically numbered; symbols and outputs stay as they are."""
    if not isinstance(machine, Moore | Mealy):
        raise InvalidMachine(f"only machines with outputs can be minimised; got {machine!r}. Moore.of() adds outputs.")
    order = reachable(machine.tables, machine.start)
    number = np.zeros(machine.n_states, np.int64)
    number[order] = np.arange(len(order))
    tables, readout = number[machine.tables[:, order]], machine.readout[..., order]
    blocks = refine(tables, numbered(readout) if readout.ndim == 1 else equal_rows(readout.T))
    first = np.unique(blocks, return_index=True)[1]
    return replace(machine, tables=blocks[tables[:, first]], states=(), start=0, readout=readout[..., first])


def canonical(machine: M) -> M:
    """The smallest machine, with symbols and outputs sorted by name and outputs that are never put out forgotten.

    Two machines of one kind respond alike, name by name, exactly when their canonical machines are equal.
    """
    order = sorted(range(machine.n_symbols), key=machine.symbols.__getitem__)
    readout = machine.readout if isinstance(machine, Moore) else machine.readout[order]
    small = minimize(
        replace(
            machine, symbols=tuple(machine.symbols[a] for a in order), tables=machine.tables[order], readout=readout
        )
    )
    used, said = np.unique(small.readout, return_inverse=True)
    names = sorted(small.outputs[output] for output in used)
    rank = np.array([names.index(small.outputs[output]) for output in used])
    return replace(small, outputs=tuple(names), readout=rank[said.reshape(small.readout.shape)])


def reachable(tables: Ints, start: int) -> Ints:
    """The states that words reach from the start, breadth-first in the order of the symbols."""
    successors = tables.T.tolist()
    seen = bytearray(len(successors))
    seen[start] = 1
    order = [start]
    for state in order:
        for target in successors[state]:
            if not seen[target]:
                seen[target] = 1
                order.append(target)
    return np.array(order)

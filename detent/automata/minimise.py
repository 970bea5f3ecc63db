"""The smallest machine that responds in the same way, in one numbering for all of them.

States that no word reaches are dropped, states that respond alike to every word are merged, and the rest is numbered
breadth-first from the start in the order of the symbols. Machines of one kind that respond alike, over the same symbols
and outputs in the same order, therefore become equal (`==`); `canonical` makes the order of the names irrelevant too.
What a Moore machine says in its start counts as its response to the empty word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from detent.automata.machine import Mealy, Moore
from detent.automata.refinement import equal_rows, numbered, refine
from detent.automata.running import Ints
from detent.errors import InvalidMachine

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

"""Refine a machine from a noisy log: send each transition where the rest of all traces through it is likeliest.

    N  nodes of the prefix tree     A  symbols     n  states     k  outputs

State merging decides once about every transition, some of them on little evidence. Here all traces are looked at again:
V[c, s] is the log-likelihood of the outputs below node c if the machine is in state s there. The transition of state q
on symbol a goes to the state s with the largest sum of V[c, s] over all nodes c that this transition leads to. Repeated
as long as fewer outputs disagree.
"""

from __future__ import annotations

import math

import numpy as np

from exactstate import native
from exactstate._types import MISSING, Ints
from exactstate.learning.prefix_tree import TreeArrays
from exactstate.learning.state_merging import UNIT, MergedStates, machine_of
from exactstate.native import address

MAX_CELLS = 1 << 26
"""Nodes times states up to which a machine is refined: V takes eight bytes for each."""
MAX_ROUNDS = 20


def refine(tree: TreeArrays, merged: MergedStates, *, symbols: int, outputs: int, noise: float) -> MergedStates:
    """The machine with transitions redirected until the outputs of no round disagree less; see above."""
    if noise <= 0 or len(tree.parent) * merged.n_states > MAX_CELLS:
        return merged
    right, wrong = (round(UNIT * math.log(p)) for p in (1 - noise, noise / max(outputs - 1, 1)))
    mealy = merged.readout.ndim == 2
    for _ in range(MAX_ROUNDS):
        total = totals(tree, merged, right, wrong)
        now = merged.tables.reshape(-1)
        gain = total.max(axis=1) - total[np.arange(len(now)), np.maximum(now, 0)]
        changed = np.flatnonzero((now != MISSING) & (gain > 0))
        if not len(changed):
            break
        # all at once; where that does not help, the most promising transition alone
        for some in (changed, changed[[gain[changed].argmax()]]):
            tables = now.copy()
            tables[some] = total[some].argmax(axis=1)
            states = _run(tree, tables.reshape(merged.tables.shape))
            if states.min() == MISSING:  # what follows was never seen where the transition goes now
                continue
            better = machine_of(tree, _numbered(states, merged.n_states), symbols, outputs, mealy)
            if better.disagreeing < merged.disagreeing:
                break
        else:
            break
        merged = better
    return merged


def totals(tree: TreeArrays, merged: MergedStates, right: int, wrong: int) -> Ints:
    """A n, n: the sum of V[c, s] over the nodes c after every transition, for every state s; in integer units."""
    n, state_of = merged.n_states, _run(tree, merged.tables)
    total = np.zeros((merged.tables.size, n), np.int64)
    state_of = np.ascontiguousarray(state_of, np.int32)
    tables, readout = (np.ascontiguousarray(part, np.int64) for part in (merged.tables, merged.readout))
    native.library().exactstate_refine_totals(
        address(tree.parent), address(tree.symbol), len(tree.parent),
        *(address(part) for part in (tree.node, tree.output, tree.count)), len(tree.node), address(tables),
        address(readout), address(state_of), n, int(readout.ndim == 2), right, wrong, address(total),
    )  # fmt: skip
    return total


def _numbered(states: Ints, n: int) -> Ints:
    """States that are still reached, renumbered; the start stays 0."""
    is_reached = np.zeros(n, bool)
    is_reached[states] = True
    number = np.cumsum(is_reached, dtype=np.int32) - 1
    return number[states]


def _run(tree: TreeArrays, tables: Ints) -> Ints:
    """N: the state at every node, MISSING somewhere where a transition is."""
    found = np.empty(len(tree.parent), np.int32)
    tables = np.ascontiguousarray(tables, np.int64)
    native.library().exactstate_partition_run(
        address(tree.parent), address(tree.symbol), len(found), address(tables), tables.shape[1], address(found)
    )
    return found

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

from detent._types import MISSING, Floats, Ints
from detent.learning.prefix_tree import TreeArrays
from detent.learning.state_merging import MergedStates, machine_of

MAX_CELLS = 1 << 26
"""Nodes times states up to which a machine is refined: V takes eight bytes for each."""
ROUNDS = 20


def refine(tree: TreeArrays, merged: MergedStates, *, symbols: int, outputs: int, noise: float) -> MergedStates:
    """The machine with transitions redirected until the outputs of no round disagree less; see above."""
    if noise <= 0 or len(tree.parent) * merged.n_states > MAX_CELLS:
        return merged
    levels, mealy = tree.levels, merged.readout.ndim == 2
    for _ in range(ROUNDS):
        state_of = _run(tree, merged.tables, levels)
        value = _values(tree, merged, levels, outputs, noise)
        group = tree.symbol[1:].astype(np.int64) * merged.n_states + state_of[tree.parent[1:]]
        total = _sum_rows(group, value[1:], symbols * merged.n_states)
        now = merged.tables.reshape(-1)
        gain = total.max(axis=1) - total[np.arange(len(now)), np.maximum(now, 0)]
        changed = np.flatnonzero((now != MISSING) & (gain > 1e-9))
        if not len(changed):
            break
        # all at once; where that does not help, the most promising transition alone
        for some in (changed, changed[[gain[changed].argmax()]]):
            tables = now.copy()
            tables[some] = total[some].argmax(axis=1)
            states = _run(tree, tables.reshape(merged.tables.shape), levels)
            better = machine_of(tree, *_numbered(states), symbols, outputs, mealy)
            if better.disagreeing < merged.disagreeing:
                break
        else:
            break
        merged = better
    return merged


def _numbered(states: Ints) -> tuple[Ints]:
    """States that are still reached, numbered anew; the start stays 0."""
    return (np.unique(states, return_inverse=True)[1].astype(np.int32),)


def _sum_rows(group: Ints, rows: Floats, groups: int) -> Floats:
    """groups n: the sum of the rows of every group."""
    total = np.zeros((groups, rows.shape[1]))
    order = np.argsort(group, kind="stable")
    found, begins = np.unique(group[order], return_index=True)
    if len(found):
        total[found] = np.add.reduceat(rows[order], begins, axis=0)
    return total


def _run(tree: TreeArrays, tables: Ints, levels: list[Ints]) -> Ints:
    """N: the state at every node."""
    states = np.zeros(len(tree.parent), np.int64)
    for level in levels:
        states[level] = tables[tree.symbol[level], states[tree.parent[level]]]
    return states


def _values(tree: TreeArrays, merged: MergedStates, levels: list[Ints], outputs: int, noise: float) -> Floats:
    """N n: the log-likelihood of what was seen below a node, given the state there."""
    n, mealy = merged.n_states, merged.readout.ndim == 2
    right, wrong = math.log(1 - noise), math.log(noise / max(outputs - 1, 1))
    value = np.zeros((len(tree.parent), n))
    if not mealy:  # the output at a node is that of its state
        agrees = merged.readout[None, :] == tree.output[:, None]
        np.add.at(value, tree.node, tree.count[:, None] * np.where(agrees, right, wrong))
    of_edge: Floats = np.zeros((len(tree.parent), n))
    if mealy:
        inner = tree.node > 0
        node, output, count = tree.node[inner], tree.output[inner], tree.count[inner]
        agrees = merged.readout[tree.symbol[node]] == output[:, None]
        weights: Floats = count[:, None].astype(np.float64) * np.where(agrees, right, wrong)
        of_edge = _sum_rows(node, weights, len(of_edge))
    for level in reversed(levels):
        after = merged.tables[tree.symbol[level]]  # of every state
        below = np.take_along_axis(value[level], np.maximum(after, 0), axis=1)
        total = of_edge[level] + np.where(after == MISSING, wrong, below)
        begins = np.flatnonzero(np.diff(tree.parent[level], prepend=MISSING))  # children of a node are neighbors
        value[tree.parent[level][begins]] += np.add.reduceat(total, begins, axis=0)
    return value

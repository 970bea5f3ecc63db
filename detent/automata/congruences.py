"""Partitions of the states that every symbol respects: what a head of its own can track.

    A  symbols     n  states

A partition is n integers: the block of each state, blocks numbered by their first state. It is a congruence when states
of one block are sent to one block by every symbol. Congruences are closed under meet and join of partitions: a join
(the finest partition coarser than both) needs no further merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.automata.merging import Pair, is_transitive_group, merge, on_blocks, respects, root
from detent.automata.refinement import numbered
from detent.automata.running import Ints
from detent.errors import InvalidInput


def congruence(machine: Semiautomaton, pairs: Iterable[Pair]) -> Ints:
    """The finest congruence that puts each of the pairs of states into one block.

    >>> from detent.automata import cyclic
    >>> congruence(cyclic(6), [(0, 2)]).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    wanted = [(machine.state_number(p), machine.state_number(q)) for p, q in pairs]
    return merge(machine.tables, wanted)


def is_congruence(machine: Semiautomaton, partition: Ints) -> bool:
    """Whether every symbol sends states of one block to states of one block."""
    return respects(machine.tables, numbered(_checked(machine, partition)))


def join(first: Ints, second: Ints) -> Ints:
    """The finest partition that is coarser than both; a congruence if both are."""
    blocks, others = numbered(first), numbered(second)
    pairs = np.unique(blocks * (int(others.max()) + 1) + others)
    count = int(blocks.max()) + 1
    parent = list(range(count))
    seen = [-1] * (int(others.max()) + 1)
    for block, other in zip(*(side.tolist() for side in np.divmod(pairs, int(others.max()) + 1)), strict=True):
        if seen[other] < 0:
            seen[other] = block
        else:
            p, q = root(parent, seen[other]), root(parent, block)
            parent[max(p, q)] = min(p, q)
    return numbered(np.array([root(parent, block) for block in range(count)])[blocks])


def meet(*partitions: Ints) -> Ints:
    """The coarsest partition that is finer than all: states stay together that are together in each."""
    together = numbered(partitions[0])
    for partition in partitions[1:]:
        together = numbered(together * (int(partition.max()) + 1) + partition)
    return together


def quotient(machine: Semiautomaton, partition: Ints) -> Semiautomaton:
    """The machine whose states are the blocks, named after their first state.

    A Moore or Mealy machine keeps its start and outputs when every block agrees on them, and else loses them.
    """
    if not is_congruence(machine, partition):
        raise InvalidInput("this partition is not a congruence: some symbol sends a block to more than one block.")
    blocks = numbered(partition)
    first = np.unique(blocks, return_index=True)[1]
    tables, states = on_blocks(machine.tables, blocks), tuple(machine.states[q] for q in first)
    if isinstance(machine, Moore | Mealy) and np.array_equal(machine.readout, machine.readout[..., first[blocks]]):
        return type(machine)(
            symbols=machine.symbols, tables=tables, states=states, start=int(blocks[machine.start]),
            outputs=machine.outputs, readout=machine.readout[..., first],
        )  # fmt: skip
    return Semiautomaton(symbols=machine.symbols, tables=tables, states=states)


def principal_congruences(machine: Semiautomaton) -> Iterator[tuple[Pair, Ints]]:
    """The different congruences that merging a single pair of states brings about, each with such a pair.

    There are n (n - 1) / 2 pairs, so take no more of a large machine than needed. In a machine whose symbols permute
    the states and lead from each to every other, pairs with state 0 are enough, and no others are tried.
    """
    seen: set[bytes] = set()
    for pair in telling_pairs(machine.tables):
        found = merge(machine.tables, [pair])
        key = found.tobytes()
        if key not in seen:
            seen.add(key)
            yield pair, found


def telling_pairs(tables: Ints) -> Iterator[Pair]:
    """Pairs enough to generate every principal congruence."""
    from_first = is_transitive_group(tables)
    return ((p, q) for q in range(1, tables.shape[1]) for p in range(1 if from_first else q))


def _checked(machine: Semiautomaton, partition: Ints) -> Ints:
    array = np.asarray(partition)
    if array.shape != (machine.n_states,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(
            f"a partition gives the block of each of the {machine.n_states} states; "
            f"got {array.dtype} of shape {array.shape}."
        )
    return array

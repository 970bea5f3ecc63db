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
from detent.automata.minimise import reachable
from detent.automata.refinement import numbered
from detent.automata.running import Ints
from detent.errors import InvalidInput

Pair = tuple[int, int]

_LARGE = 4_000
_ROUNDS = 64
_PRODUCTS = 10_000_000


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
    blocks = numbered(_checked(machine, partition))
    first = np.unique(blocks, return_index=True)[1]
    return bool((blocks[machine.tables] == blocks[machine.tables[:, first[blocks]]]).all())


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
    tables, states = blocks[machine.tables[:, first]], tuple(machine.states[q] for q in first)
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


def is_transitive_group(tables: Ints) -> bool:
    """Whether every symbol permutes the states and words lead from each state to every other."""
    n = tables.shape[1]
    permutes = all(np.bincount(table, minlength=n).max() == 1 for table in tables)
    return permutes and len(reachable(tables, 0)) == n


def essential(tables: Ints) -> Ints:
    """Tables enough to tell congruences: without repetitions, the identity, inverses, and products of two before."""
    n = tables.shape[1]
    said: dict[bytes, Ints] = {}
    implied = {np.arange(n).tobytes()}
    kept = []
    for table in tables.astype(np.int64):
        if table.tobytes() in said:
            continue
        if table.tobytes() not in implied:
            kept.append(table)
        if len(tables) ** 2 * n <= _PRODUCTS:
            said[table.tobytes()] = table
            implied.update(product.tobytes() for t in said.values() for product in (t[table], table[t]))
        if len(np.unique(table)) == n:
            implied.add(np.argsort(table).tobytes())
    return np.stack(kept) if kept else tables[:1].astype(np.int64)


def merge(tables: Ints, pairs: Iterable[Pair]) -> Ints:
    """The finest partition with these pairs merged that every table (A n) respects."""
    labels: Ints = np.arange(tables.shape[1])
    waiting = list(pairs)
    if tables.size >= _LARGE:
        labels, waiting = _merge_in_rounds(tables.astype(np.int64), labels, waiting)
    parent = labels.tolist()
    successors = tables.T.tolist() if waiting else []
    while waiting:
        p, q = waiting.pop()
        p, q = root(parent, p), root(parent, q)
        if p != q:
            parent[q] = p
            waiting.extend(zip(successors[p], successors[q], strict=True))
    return numbered(np.array([root(parent, state) for state in range(len(parent))]))


def merge_steps(tables: Ints) -> int:
    """About how much work it is to merge one pair."""
    return 300 + tables.size * (1 if tables.size >= _LARGE else 2)


def _merge_in_rounds(tables: Ints, labels: Ints, waiting: list[Pair]) -> tuple[Ints, list[Pair]]:
    """Merge in parallel while that goes fast: (a representative for each state, pairs that are left to merge).

    A block is labelled by a state of it. All demands of a round are seen at once, and every label takes up one of them.
    """
    first, second = (np.array(side, np.int64) for side in zip(*waiting, strict=True)) if waiting else (labels[:0],) * 2
    for _ in range(_ROUNDS):
        if not len(first):
            break
        parent = np.arange(len(labels))
        parent[np.maximum(first, second)] = np.minimum(first, second)
        while not np.array_equal(jumped := parent[parent], parent):
            parent = jumped
        labels = parent[labels]
        first, second = parent[first], parent[second]
        wanted, held = labels[tables], labels[tables[:, labels]]
        demanded = wanted != held
        first, second = np.concatenate([first, wanted[demanded]]), np.concatenate([second, held[demanded]])
        still = first != second
        first, second = first[still], second[still]
    return labels, list(zip(first.tolist(), second.tolist(), strict=True))


def root(parent: list[int], state: int) -> int:
    """The representative of a state's block."""
    while parent[state] != state:
        parent[state] = state = parent[parent[state]]
    return state


def _checked(machine: Semiautomaton, partition: Ints) -> Ints:
    array = np.asarray(partition)
    if array.shape != (machine.n_states,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidInput(
            f"a partition gives the block of each of the {machine.n_states} states; "
            f"got {array.dtype} of shape {array.shape}."
        )
    return array

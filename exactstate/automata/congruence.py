"""Congruences: partitions of the states that every symbol respects. A head can track a congruence on its own.

    A  symbols     n  states     b  blocks

A partition is n integers: the block of each state, blocks numbered by their first state. It is a congruence when every
symbol sends states of one block into one block. Congruences are closed under meet and join of partitions (Hartmanis and
Stearns, "Algebraic Structure Theory of Sequential Machines", 1966: they write SP partition). The congruence generated
by pairs is computed by union-find, as in Hopcroft and Karp's equivalence test.

The lower half of the file works on tables (A n) in which MISSING marks transitions that never occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.automata.minimize import numbered, reachable
from exactstate.errors import InvalidInput

Pair = tuple[int, int]


def congruence(machine: Semiautomaton, pairs: Iterable[Pair]) -> Ints:
    """The finest congruence that merges each of the pairs of states.

    >>> from exactstate.automata import cyclic
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
    """The coarsest partition that is finer than all of them."""
    together = numbered(partitions[0])
    for partition in partitions[1:]:
        together = numbered(together * (int(partition.max()) + 1) + partition)
    return together


def quotient(machine: Semiautomaton, partition: Ints) -> Semiautomaton:
    """The machine whose states are the blocks, named after their first state.

    A Moore or Mealy machine keeps its start and outputs if they are constant on blocks; otherwise they are dropped.
    """
    if not is_congruence(machine, partition):
        raise InvalidInput("this partition is not a congruence: some symbol sends a block to more than one block.")
    blocks = numbered(partition)
    first = np.unique(blocks, return_index=True)[1]
    tables, states = quotient_tables(machine.tables, blocks), tuple(machine.states[q] for q in first)
    if isinstance(machine, Moore | Mealy) and np.array_equal(machine.readout, machine.readout[..., first[blocks]]):
        return type(machine)(
            symbols=machine.symbols, tables=tables, states=states, start=int(blocks[machine.start]),
            outputs=machine.outputs, readout=machine.readout[..., first],
        )  # fmt: skip
    return Semiautomaton(symbols=machine.symbols, tables=tables, states=states)


def generating_pairs(tables: Ints) -> Iterator[Pair]:
    """Pairs that generate all principal congruences: all pairs, or those with state 0 in a transitive group."""
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


_MIN_ENTRIES_OF_ROUNDS = 4_000
_MAX_ROUNDS = 64
_MAX_ENTRIES_OF_PRODUCTS = 10_000_000


def merge(tables: Ints, pairs: Iterable[Pair]) -> Ints:
    """The finest partition that merges these pairs and that every table respects."""
    labels: Ints = np.arange(tables.shape[1])
    worklist = list(pairs)
    held = tables
    if tables.size >= _MIN_ENTRIES_OF_ROUNDS and worklist:
        labels, held, worklist = _merge_in_rounds(tables.astype(np.int64), labels, worklist)
    parent = labels.tolist()
    successors = held.T.tolist() if worklist else []
    partial = bool((tables == MISSING).any())
    while worklist:
        p, q = worklist.pop()
        p, q = root(parent, p), root(parent, q)
        if p == q:
            continue
        parent[q] = p
        if partial:
            follows, successors[p] = merged_rows(successors[p], successors[q])
            worklist.extend(follows)
        else:
            worklist.extend(zip(successors[p], successors[q], strict=True))
    return numbered(np.array([root(parent, state) for state in range(len(parent))]))


def merge_steps(tables: Ints) -> int:
    """The approximate cost of merging one pair, in steps of `exactstate.automata.factor`."""
    return 300 + tables.size * (1 if tables.size >= _MIN_ENTRIES_OF_ROUNDS else 2)


def _merge_in_rounds(tables: Ints, labels: Ints, worklist: list[Pair]) -> tuple[Ints, Ints, list[Pair]]:
    """Merge in parallel for a fixed number of rounds.

    A block is labeled by one of its states. Every round collects all pairs that must be merged, and every label takes
    one of them. Returns the label of each state, where each symbol sends each label (A n), and the pairs still to
    merge.
    """
    first, second = (np.array(side, np.int64) for side in zip(*worklist, strict=True))
    a, q = np.nonzero(tables != MISSING)
    target = tables[a, q]
    held = tables.copy()
    for _ in range(_MAX_ROUNDS):
        if not len(first):
            break
        parent = np.arange(len(labels))
        parent[np.maximum(first, second)] = np.minimum(first, second)
        while not np.array_equal(jumped := parent[parent], parent):
            parent = jumped
        labels = parent[labels]
        goes, source = labels[target], labels[q]
        held[a, source] = goes
        demanded = held[a, source]
        first, second = np.concatenate([parent[first], goes]), np.concatenate([parent[second], demanded])
        still = first != second
        first, second = first[still], second[still]
    return labels, held, list(zip(first.tolist(), second.tolist(), strict=True))


def root(parent: list[int], state: int) -> int:
    """The representative of a state's block."""
    while parent[state] != state:
        parent[state] = state = parent[parent[state]]
    return state


def merged_rows(mine: list[int], others: list[int]) -> tuple[list[Pair], list[int]]:
    """(pairs to merge when two blocks with these rows are merged, the merged row); entries may be MISSING."""
    follows = [(u, v) for u, v in zip(mine, others, strict=True) if u >= 0 and v >= 0]
    return follows, [u if u >= 0 else v for u, v in zip(mine, others, strict=True)]


def quotient_tables(tables: Ints, partition: Ints) -> Ints:
    """Where each symbol sends each block (A b), for a partition that the tables respect."""
    a, q = np.nonzero(tables != MISSING)
    small = np.full((len(tables), int(partition.max()) + 1), MISSING)
    small[a, partition[q]] = partition[tables[a, q]]
    return small


def respects(tables: Ints, partition: Ints) -> bool:
    """Whether states of one block are sent to one block by every symbol."""
    a, q = np.nonzero(tables != MISSING)
    return bool((quotient_tables(tables, partition)[a, partition[q]] == partition[tables[a, q]]).all())


def is_transitive_group(tables: Ints) -> bool:
    """Whether the symbols generate a transitive permutation group."""
    n = tables.shape[1]
    permutes = all(len(np.unique(table)) == n and table.min() == 0 for table in tables)
    return permutes and len(reachable(tables, 0)) == n


def equivalent_tables(tables: Ints) -> Ints:
    """Tables with the same congruences, fewer if possible: no repetitions, no identity, no inverses, no products of
    two.

    Inverses and products are dropped only when no entry is MISSING.
    """
    tables = np.array(list({table.tobytes(): table for table in tables.astype(np.int64)}.values()))
    n = tables.shape[1]
    if (tables == MISSING).any():
        moves = ((tables != MISSING) & (tables != np.arange(n))).any(axis=1)
        return tables[moves] if moves.any() else tables[:1]
    implied = {np.arange(n).tobytes()}
    multiply = len(tables) ** 2 * n <= _MAX_ENTRIES_OF_PRODUCTS
    kept = []
    for i, table in enumerate(tables):
        if table.tobytes() not in implied:
            kept.append(table)
        if multiply:
            implied.update(product.tobytes() for t in tables[: i + 1] for product in (t[table], table[t]))
        if len(np.unique(table)) == n:
            implied.add(np.argsort(table).tobytes())
    return np.stack(kept) if kept else tables[:1]


class PairPredecessors:
    """The predecessors of pairs of states under each symbol."""

    def __init__(self, tables: Ints) -> None:
        self.symbols, self.n = tables.shape
        self.sources = [np.argsort(table, kind="stable")[np.count_nonzero(table < 0) :] for table in tables]
        self.counts = [np.bincount(table[table >= 0], minlength=self.n) for table in tables]
        self.begins = [np.cumsum(count) - count for count in self.counts]

    def __call__(self, a: int, p: Ints, q: Ints) -> tuple[Ints, Ints]:
        """All pairs that symbol a sends to the pair (p[i], q[i]), for all i."""
        width = self.counts[a][q]
        many = self.counts[a][p] * width
        which = np.repeat(np.arange(len(p)), many)
        within = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
        i, j = np.divmod(within, width[which])
        return self.sources[a][self.begins[a][p[which]] + i], self.sources[a][self.begins[a][q[which]] + j]

    def spread(self, known: Bools, p: Ints, q: Ints) -> None:
        """Mark in `known` (n n) the pairs (p[i], q[i]) and all their predecessors under words, in both orders."""
        new = ~known[p, q]
        p, q = p[new], q[new]
        known[p, q] = known[q, p] = True
        while len(p):
            found = []
            for a in range(self.symbols):
                from_p, from_q = self(a, p, q)
                new = ~known[from_p, from_q]
                from_p, from_q = from_p[new], from_q[new]
                known[from_p, from_q] = known[from_q, from_p] = True
                found.append((from_p, from_q))
            p, q = (np.concatenate(side) for side in zip(*found, strict=True))

"""Merge states and all that follows from it, by union and find.

    A  symbols     n  states     b  blocks

Here tables (A n) may hold NEVER where a symbol is never read in a state, as off the grammar of a task; what would
happen there binds nobody. A partition is n integers, the block of each state, blocks numbered by their first state;
tables respect it when they send states of one block to one block, as far as they send them anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from detent.automata.minimise import reachable
from detent.automata.refinement import numbered
from detent.automata.running import Ints

Pair = tuple[int, int]
NEVER = -1

_LARGE = 4_000
_ROUNDS = 64
_PRODUCTS = 10_000_000


def merge(tables: Ints, pairs: Iterable[Pair]) -> Ints:
    """The finest partition with these pairs merged that every table respects."""
    labels: Ints = np.arange(tables.shape[1])
    waiting = list(pairs)
    held = tables
    if tables.size >= _LARGE and waiting:
        labels, held, waiting = _merge_in_rounds(tables.astype(np.int64), labels, waiting)
    parent = labels.tolist()
    successors = held.T.tolist() if waiting else []
    partial = bool((tables == NEVER).any())
    while waiting:
        p, q = waiting.pop()
        p, q = root(parent, p), root(parent, q)
        if p == q:
            continue
        parent[q] = p
        if partial:
            follows, successors[p] = both(successors[p], successors[q])
            waiting.extend(follows)
        else:
            waiting.extend(zip(successors[p], successors[q], strict=True))
    return numbered(np.array([root(parent, state) for state in range(len(parent))]))


def merge_steps(tables: Ints) -> int:
    """About how much work it is to merge one pair."""
    return 300 + tables.size * (1 if tables.size >= _LARGE else 2)


def root(parent: list[int], state: int) -> int:
    """The representative of a state's block."""
    while parent[state] != state:
        parent[state] = state = parent[parent[state]]
    return state


def both(mine: list[int], others: list[int]) -> tuple[list[Pair], list[int]]:
    """(what must be merged when two blocks are that go so, where they go then), where some symbols may lead nowhere."""
    follows = [(u, v) for u, v in zip(mine, others, strict=True) if u >= 0 and v >= 0]
    return follows, [u if u >= 0 else v for u, v in zip(mine, others, strict=True)]


def on_blocks(tables: Ints, partition: Ints) -> Ints:
    """Where each symbol sends each block (A b), for a partition that the tables respect."""
    a, q = np.nonzero(tables != NEVER)
    small = np.full((len(tables), int(partition.max()) + 1), NEVER)
    small[a, partition[q]] = partition[tables[a, q]]
    return small


def respects(tables: Ints, partition: Ints) -> bool:
    """Whether states of one block are sent to one block by every symbol."""
    a, q = np.nonzero(tables != NEVER)
    return bool((on_blocks(tables, partition)[a, partition[q]] == partition[tables[a, q]]).all())


def is_transitive_group(tables: Ints) -> bool:
    """Whether every symbol permutes the states and words lead from each state to every other."""
    n = tables.shape[1]
    permutes = all(len(np.unique(table)) == n and table.min() == 0 for table in tables)
    return permutes and len(reachable(tables, 0)) == n


def essential(tables: Ints) -> Ints:
    """Tables enough to tell congruences: without repetitions, the identity, inverses, and products of two before.

    Inverses and products are left out only when every symbol is read everywhere.
    """
    tables = np.array(list({table.tobytes(): table for table in tables.astype(np.int64)}.values()))
    n = tables.shape[1]
    if (tables == NEVER).any():
        moves = ((tables != NEVER) & (tables != np.arange(n))).any(axis=1)
        return tables[moves] if moves.any() else tables[:1]
    implied = {np.arange(n).tobytes()}
    multiply = len(tables) ** 2 * n <= _PRODUCTS
    kept = []
    for i, table in enumerate(tables):
        if table.tobytes() not in implied:
            kept.append(table)
        if multiply:
            implied.update(product.tobytes() for t in tables[: i + 1] for product in (t[table], table[t]))
        if len(np.unique(table)) == n:
            implied.add(np.argsort(table).tobytes())
    return np.stack(kept) if kept else tables[:1]


def _merge_in_rounds(tables: Ints, labels: Ints, waiting: list[Pair]) -> tuple[Ints, Ints, list[Pair]]:
    """Merge in parallel while that goes fast.

    A block is labelled by a state of it. All demands of a round are seen at once, and every label takes up one of them.
    Returns the label of each state, where each symbol sends each label (A n), and the pairs that are left to merge.
    """
    first, second = (np.array(side, np.int64) for side in zip(*waiting, strict=True))
    a, q = np.nonzero(tables != NEVER)
    target = tables[a, q]
    held = tables.copy()
    for _ in range(_ROUNDS):
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

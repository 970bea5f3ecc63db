"""Definitions, word by word: what the quick algorithms are compared with on machines small enough to try everything."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def partitions(n: int) -> list[tuple[int, ...]]:
    """All partitions of n states, blocks numbered by their first state: 203 of them for six states."""
    if n == 0:
        return [()]
    return [(*p, block) for p in partitions(n - 1) for block in range(max(p, default=-1) + 2)]


def is_congruence_by_definition(tables: np.ndarray, partition: tuple[int, ...]) -> bool:
    """States of one block that a symbol sends anywhere (a negative entry: nowhere), it sends to one block."""
    n = len(partition)
    return all(
        partition[table[p]] == partition[table[q]]
        for table in tables
        for p in range(n)
        for q in range(p)
        if partition[p] == partition[q] and table[p] >= 0 and table[q] >= 0
    )


def closure(maps: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The monoid by the book: multiply until nothing new comes."""
    found = {tuple(range(len(maps[0])))}
    while True:
        more = found | {tuple(x[k] for k in q) for q in found for x in maps}
        if more == found:
            return found
        found = more

"""The coarsest partition of the states that refines a colouring and that every symbol respects.

    A  symbols     n  states

A partition is n integers, the block of each state; blocks are numbered by their first state. Random machines are done
after a few rounds of Moore's refinement, which NumPy and a dictionary do fast; what needs many rounds (long chains,
counters) is left to Hopcroft's algorithm, which never looks at more than n log n states a symbol.
Hopcroft 1971, as told in https://en.wikipedia.org/wiki/DFA_minimization.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from detent.automata.running import Ints, smallest_dtype

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

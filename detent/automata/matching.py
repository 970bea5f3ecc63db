"""Are two machines the same up to the numbering of their states? The map that shows it, or None.

A map that respects the symbols is fixed by what it does to one state of each part: the symbols give the rest.
Machines with a start have that state given. Elsewhere the states are sorted by what they lead to and what leads to
them, the rarest is sent to each of its equals in turn, and wrong turns are taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata.equivalence import aligned, symbol_order
from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.automata.refinement import equal_rows, refine
from detent.automata.running import Ints
from detent.errors import BudgetExceeded

_MISTAKES = 10_000


def isomorphism(first: Semiautomaton, second: Semiautomaton) -> Ints | None:
    """m with m[q] the state of the second machine that state q of the first corresponds to, or None.

    Symbols and outputs are matched by name; a start goes to the start; names of states do not matter.
    """
    if type(first) is not type(second) or first.n_states != second.n_states:
        return None
    n = first.n_states
    if isinstance(first, Moore | Mealy) and isinstance(second, Moore | Mealy):
        tables, says = aligned(first, second)
        starts = np.zeros((1, 2 * n), np.int64)
        starts[0, [first.start, n + second.start]] = 1
        known = np.concatenate([says.reshape(-1, 2 * n), starts])
    else:
        order = symbol_order(first.symbols, second.symbols)
        tables = np.concatenate([first.tables.astype(np.int64), second.tables[order].astype(np.int64) + n], axis=1)
        known = np.zeros((1, 2 * n), np.int64)
    kinds = _kinds(tables, known)
    if not np.array_equal(np.sort(kinds[:n]), np.sort(kinds[n:])):
        return None
    return _match(tables.T.tolist(), kinds.tolist(), n)


def _kinds(tables: Ints, known: Ints) -> Ints:
    """States sorted as far as their futures and the kinds of the states that lead to them tell them apart."""
    kinds = refine(tables, equal_rows(known.T))
    while True:
        count = int(kinds.max()) + 1
        # a sum of random weights stands for the kinds that arrive; a clash only makes the sorting coarser
        weights = np.random.default_rng(count).integers(1, 1 << 40, count)[kinds]
        arriving = np.zeros_like(tables)
        for arrives, table in zip(arriving, tables, strict=True):
            np.add.at(arrives, table, weights)
        kinds = refine(tables, equal_rows(np.concatenate([kinds[None, :], arriving]).T))
        if int(kinds.max()) + 1 == count:
            return kinds


@dataclass
class _Choice:
    place: int
    candidates: list[int]
    settled: list[int]


def _match(successors: list[list[int]], kinds: list[int], n: int) -> Ints | None:
    """Depth-first through the choices: every state of the first machine, the rarest kinds first."""
    equals: dict[int, list[int]] = {}
    for state in range(n, 2 * n):
        equals.setdefault(kinds[state], []).append(state)
    states = sorted(range(n), key=lambda state: (len(equals[kinds[state]]), state))
    image: dict[int, int] = {}
    used: set[int] = set()
    choices: list[_Choice] = []
    attempts, place = 0, 0
    while True:
        while place < n and states[place] in image:
            place += 1
        if place == n:
            return np.array([image[state] - n for state in range(n)])
        free = [state for state in reversed(equals[kinds[states[place]]]) if state not in used]
        choices.append(_Choice(place, free, []))
        advanced = False
        while choices and not advanced:
            choice = choices[-1]
            for state in choice.settled:
                used.discard(image.pop(state))
            choice.settled.clear()
            if not choice.candidates:
                choices.pop()
                continue
            attempts += 1
            if attempts > n + _MISTAKES:
                raise BudgetExceeded(
                    f"neither found nor excluded an isomorphism in {attempts - 1} attempts; give the machines a start."
                )
            place = choice.place
            pair = (states[place], choice.candidates.pop())
            advanced = _follow(successors, kinds, image, used, pair, choice.settled)
        if not choices:
            return None


def _follow(
    successors: list[list[int]],
    kinds: list[int],
    image: dict[int, int],
    used: set[int],
    pair: tuple[int, int],
    settled: list[int],
) -> bool:
    """Send one state to another and follow the symbols; False where that contradicts itself."""
    queue = [pair]
    for p, q in queue:
        if p in image:
            if image[p] != q:
                return False
            continue
        if q in used or kinds[p] != kinds[q]:
            return False
        image[p] = q
        used.add(q)
        settled.append(p)
        queue.extend(zip(successors[p], successors[q], strict=True))
    return True

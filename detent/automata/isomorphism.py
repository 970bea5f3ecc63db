"""Maps of the states that the machine does not notice: moving first and reading then is reading first and moving then.

In the word problem of a group these are the multiplications from the other side. A translation is fixed by what it does
to one state from which all others are reached, and it carries congruences to congruences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent._types import Ints
from detent.automata.equivalence import aligned, symbol_order
from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.automata.minimize import equal_rows, reachable, refine
from detent.errors import BudgetExceeded

# -- Are two machines the same up to the numbering of their states? The map that shows it, or None.

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


def translation(tables: Ints, order: Ints, target: int) -> Ints | None:
    """The map of states that commutes with every symbol and sends the first state of `order` to the target, if any.

    `order` lists all states so that each but the first is reached from an earlier one.
    """
    successors = tables.T.tolist()
    image = [-1] * tables.shape[1]
    image[int(order[0])] = target
    for state in order.tolist():
        for to, moved in zip(successors[state], successors[image[state]], strict=True):
            if image[to] < 0:
                image[to] = moved
    found = np.array(image)
    return found if np.array_equal(found[tables], tables[:, found]) else None


def is_word_problem(tables: Ints, start: int = 0) -> bool:
    """Whether all states are reached from the start, and what a word does to the start tells what it does everywhere.

    The elements of the transition monoid are then the states. It is so when for every symbol there is a translation
    that sends the start to where the symbol sends it, for translations can be put together.
    """
    order = reachable(tables, start)
    if len(order) < tables.shape[1]:
        return False
    return all(translation(tables, order, int(target)) is not None for target in np.unique(tables[:, start]))

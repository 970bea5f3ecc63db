"""Isomorphisms of machines, and translations: maps of a machine's states to themselves that commute with every symbol.

`isomorphism` sorts the states into kinds by refining outputs, futures and pasts, then matches states of equal kind
depth first; with a start state the match is forced. In the word problem of a group the translations are the
multiplications from the other side. A translation is determined by its value at one state that reaches all others, and
it maps congruences to congruences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate._types import Ints
from exactstate.automata.equivalence import aligned, symbol_order
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.automata.minimize import equal_rows, reachable, refine
from exactstate.errors import BudgetExceeded

_MISTAKES = 10_000


def isomorphism(first: Semiautomaton, second: Semiautomaton) -> Ints | None:
    """The map from states of the first machine to states of the second (n), or None if they are not isomorphic.

    Symbols and outputs are matched by name and start states with each other; names of states are ignored.
    """
    if type(first) is not type(second) or first.n_states != second.n_states:
        return None
    n = first.n_states
    if isinstance(first, Moore | Mealy) and isinstance(second, Moore | Mealy):
        tables, readout = aligned(first, second)
        starts = np.zeros((1, 2 * n), np.int64)
        starts[0, [first.start, n + second.start]] = 1
        known = np.concatenate([readout.reshape(-1, 2 * n), starts])
    else:
        order = symbol_order(first.symbols, second.symbols)
        tables = np.concatenate([first.tables.astype(np.int64), second.tables[order].astype(np.int64) + n], axis=1)
        known = np.zeros((1, 2 * n), np.int64)
    kinds = _kinds(tables, known)
    if not np.array_equal(np.sort(kinds[:n]), np.sort(kinds[n:])):
        return None
    return _match(tables.T.tolist(), kinds.tolist(), n)


def translation(tables: Ints, order: Ints, target: int) -> Ints | None:
    """The map of states that commutes with every symbol and sends the first state of `order` to the target, if any.

    `order` lists all states so that each but the first is reached from an earlier one.
    """
    successors = tables.T.tolist()
    image = [-1] * tables.shape[1]
    image[int(order[0])] = target
    for state in order.tolist():
        for to, target_of in zip(successors[state], successors[image[state]], strict=True):
            if image[to] < 0:
                image[to] = target_of
    moved = np.array(image)
    return moved if np.array_equal(moved[tables], tables[:, moved]) else None


def is_word_problem(tables: Ints, start: int = 0) -> bool:
    """Whether the machine is the word problem of its transition monoid: its states are then the monoid's elements.

    All states must be reachable, and where a word sends the start must determine where it sends every state. That holds
    when every symbol has a translation that agrees with it on the start, since translations compose.
    """
    order = reachable(tables, start)
    if len(order) < tables.shape[1]:
        return False
    return all(translation(tables, order, int(target)) is not None for target in np.unique(tables[:, start]))


def _kinds(tables: Ints, known: Ints) -> Ints:
    """A coloring of the states, refined by their successors and by the kinds of their predecessors."""
    kinds = refine(tables, equal_rows(known.T))
    while True:
        count = int(kinds.max()) + 1
        # a sum of random weights hashes the kinds of predecessors; a collision only makes the coloring coarser
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
    assigned: list[int]


def _match(successors: list[list[int]], kinds: list[int], n: int) -> Ints | None:
    """Depth-first search with backtracking over images of the first machine's states, the rarest kinds first."""
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
            for state in choice.assigned:
                used.discard(image.pop(state))
            choice.assigned.clear()
            if not choice.candidates:
                choices.pop()
                continue
            attempts += 1
            if attempts > n + _MISTAKES:
                raise BudgetExceeded(
                    f"no isomorphism found or excluded in {attempts - 1} attempts; give the machines a start state."
                )
            place = choice.place
            pair = (states[place], choice.candidates.pop())
            advanced = _follow(successors, kinds, image, used, pair, choice.assigned)
        if not choices:
            return None


def _follow(
    successors: list[list[int]],
    kinds: list[int],
    image: dict[int, int],
    used: set[int],
    pair: tuple[int, int],
    assigned: list[int],
) -> bool:
    """Map one state to another and extend the map along all symbols; False on a contradiction."""
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
        assigned.append(p)
        queue.extend(zip(successors[p], successors[q], strict=True))
    return True

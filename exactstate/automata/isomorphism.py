"""Isomorphisms of machines, and translations: maps of a machine's states to themselves that commute with every symbol.

Where one state reaches all others, both are determined by where that state goes. In the word problem of a group the
translations are the multiplications from the other side; they map congruences to congruences.
"""

from __future__ import annotations

import numpy as np

from exactstate._types import Ints
from exactstate.automata.equivalence import aligned
from exactstate.automata.machine import Mealy, Moore
from exactstate.automata.minimize import reachable
from exactstate.errors import InvalidMachine


def isomorphism(first: Moore | Mealy, second: Moore | Mealy) -> Ints | None:
    """The map from states of the first machine to states of the second (n), or None if they are not isomorphic.

    Symbols and outputs are matched by name and start states with each other; names of states are ignored.
    """
    tables, readout = aligned(first, second)
    n = first.n_states
    if n != second.n_states:
        return None
    order = reachable(tables, first.start)
    if len(order) < n:
        raise InvalidMachine(f"{n - len(order)} states are reached by no word and cannot be matched; minimize first.")
    image = _image(tables, order, n + second.start)[:n]
    commutes = np.array_equal(tables[:, image], image[tables[:, :n]])
    if not commutes or len(np.unique(image)) < n or not np.array_equal(readout[..., :n], readout[..., image]):
        return None
    return image - n


def translation(tables: Ints, order: Ints, target: int) -> Ints | None:
    """The map of states that commutes with every symbol and sends the first state of `order` to the target, if any.

    `order` lists all states so that each but the first is reached from an earlier one.
    """
    moved = _image(tables, order, target)
    return moved if np.array_equal(moved[tables], tables[:, moved]) else None


def _image(tables: Ints, order: Ints, target: int) -> Ints:
    """Where states go if the first one in `order` goes to the target, and symbols are followed; -1 elsewhere."""
    successors = tables.T.tolist()
    image = [-1] * tables.shape[1]
    image[int(order[0])] = target
    for state in order.tolist():
        for to, target_of in zip(successors[state], successors[image[state]], strict=True):
            if image[to] < 0:
                image[to] = target_of
    return np.array(image)


def is_word_problem(tables: Ints, start: int = 0) -> bool:
    """Whether the machine is the word problem of its transition monoid: its states are then the monoid's elements.

    All states must be reachable, and where a word sends the start must determine where it sends every state. That holds
    when every symbol has a translation that agrees with it on the start, since translations compose.
    """
    order = reachable(tables, start)
    if len(order) < tables.shape[1]:
        return False
    return all(translation(tables, order, int(target)) is not None for target in np.unique(tables[:, start]))

"""Maps of the states that the machine does not notice: moving first and reading then is reading first and moving then.

In the word problem of a group these are the multiplications from the other side. A translation is fixed by what it does
to one state from which all others are reached, and it carries congruences to congruences.
"""

from __future__ import annotations

import numpy as np

from detent.automata.minimise import reachable
from detent.automata.running import Ints


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

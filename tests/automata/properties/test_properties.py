"""All properties of a machine together."""

from __future__ import annotations

import numpy as np

from exactstate.automata import Semiautomaton, flip_flop, mathieu11
from exactstate.automata.properties.properties import Properties


def test_properties_of_the_flip_flop() -> None:
    assert Properties.of(flip_flop()).sentences() == (
        "3 states, 3 symbols",
        "transition monoid of 3 elements, 3 of them idempotent",
        "not a group: 'reset' sends 'identity' and 'reset' to the same state",
        "not definite: 'identity' keeps 'identity' and 'reset' apart, however often it is repeated",
        "aperiodic: no word has a cycle of more than one state",
        "synchronizing: after 'reset' the state is 'reset', whatever it was before",
    )


def test_properties_of_mathieu11_without_listing_its_maps() -> None:
    properties = Properties.of(mathieu11(), limit=10)
    assert (properties.elements, properties.idempotents) == (7920, 1)
    assert properties.group
    assert not properties.definite
    assert properties.aperiodic.answer is False


def test_properties_of_a_large_monoid_stop_at_the_limit() -> None:
    q = np.arange(30)
    machine = Semiautomaton(symbols=("a", "b"), tables=np.stack([(q + 1) % 30, np.where(q == 0, 1, q)]))
    properties = Properties.of(machine, limit=100)
    assert properties.elements is None
    assert properties.sentences()[1] == "transition monoid not enumerated completely (limit 100 elements)"
    assert str(properties).count("\n") == 5

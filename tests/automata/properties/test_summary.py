from __future__ import annotations

import numpy as np

from detent.automata import Semiautomaton, alternating, cyclic, flip_flop, from_tables, mathieu11, tomita
from detent.automata.isomorphism import is_word_problem, translation
from detent.automata.properties.summary import Properties


def test_the_facts_of_the_flip_flop() -> None:
    assert Properties.of(flip_flop()).sentences() == (
        "3 states, 3 symbols",
        "transition monoid of 3 elements, 3 of them idempotent",
        "not a group: 'reset' sends 'identity' and 'reset' to the same state",
        "not definite: 'identity' keeps 'identity' and 'reset' apart, however often it is read",
        "aperiodic: no word leads states round a circle",
        "synchronizing: after 'reset' the state is 'reset', whatever it was",
    )


def test_mathieu11_is_counted_without_listing_its_maps() -> None:
    facts = Properties.of(mathieu11(), limit=10)
    assert (facts.elements, facts.idempotents) == (7920, 1)
    assert facts.group
    assert not facts.definite
    assert facts.aperiodic.answer is False


def test_what_was_not_counted_is_said() -> None:
    q = np.arange(30)
    machine = Semiautomaton(symbols=("a", "b"), tables=np.stack([(q + 1) % 30, np.where(q == 0, 1, q)]))
    facts = Properties.of(machine, limit=100)
    assert facts.elements is None
    assert facts.sentences()[1] == "transition monoid not counted to its end (looked at no more than 100 elements)"
    assert str(facts).count("\n") == 5


def test_word_problems_are_known_by_their_translations() -> None:
    for machine in (cyclic(6), alternating(5), flip_flop()):
        assert is_word_problem(machine.tables)
    assert not is_word_problem(tomita(3).tables)
    assert not is_word_problem(from_tables([[0, 0, 2]]).tables)  # state 2 is not reached
    broken = alternating(4).tables.copy()
    broken[0, [3, 5]] = broken[0, [5, 3]]
    assert not is_word_problem(broken)


def test_a_translation_of_the_residues_adds() -> None:
    tables = cyclic(7).tables
    assert translation(tables, np.arange(7), 3).tolist() == [3, 4, 5, 6, 0, 1, 2]
    assert translation(flip_flop().tables, np.arange(3), 1).tolist() == [1, 1, 2]
    assert translation(tomita(4).tables, np.arange(4), 1) is None

"""Isomorphisms against brute force; translations and word problems."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from exactstate.automata import (
    Mealy,
    Moore,
    Semiautomaton,
    alternating,
    cyclic,
    flip_flop,
    from_tables,
    mathieu11,
    symmetric,
    tomita,
)
from exactstate.automata.isomorphism import is_word_problem, isomorphism, translation
from exactstate.errors import InvalidMachine
from tests.cases import in_one_case


def shuffled(machine, seed: int):
    to = np.random.default_rng(seed).permutation(machine.n_states)
    back = np.argsort(to)
    changes = {"tables": to[machine.tables[:, back]], "states": ()}
    changes |= {"start": int(to[machine.start]), "readout": machine.readout[..., back]}
    return replace(machine, **changes), to


def check(first, second, found) -> None:
    """The definition of an isomorphism, entry by entry."""
    assert sorted(found) == list(range(first.n_states))
    assert np.array_equal(found[first.tables], second.tables[:, found])
    assert found[first.start] == second.start
    assert np.array_equal(second.readout[..., found], first.readout)


def by_brute_force(first, second) -> bool:
    for m in itertools.permutations(range(first.n_states)):
        to = np.array(m)
        same = np.array_equal(to[first.tables], second.tables[:, to]) and to[first.start] == second.start
        if same and np.array_equal(second.readout[..., to], first.readout):
            return True
    return False


@pytest.mark.parametrize("machine", [cyclic(6), symmetric(4), tomita(3), mathieu11()], ids=["Z6", "S4", "T3", "M11"])
def test_isomorphism_of_machines_with_a_start(machine: Moore) -> None:
    other, to = shuffled(machine, 5)
    found = isomorphism(machine, other)
    check(machine, other, found)
    assert np.array_equal(found, to)


@in_one_case("seed", range(60))
def test_isomorphism_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    tables = rng.integers(0, n, (A, n))
    tables[0] = (np.arange(n) + 1) % n  # every state is reached
    start, readout = int(rng.integers(n)), rng.integers(0, 2, n)
    first = Moore(symbols=tuple("ab"[:A]), tables=tables, start=start, outputs=("x", "y"), readout=readout)
    second, to = shuffled(first, seed)
    check(first, second, isomorphism(first, second))
    assert np.array_equal(isomorphism(first, second), to)
    tables = second.tables.copy()
    tables[rng.integers(A), rng.integers(n)] = rng.integers(n)
    changed = replace(second, tables=tables)
    found = isomorphism(first, changed)
    assert (found is not None) == by_brute_force(first, changed)
    if found is not None:
        check(first, changed, found)


def test_isomorphism_refuses_states_that_no_word_reaches() -> None:
    alone = Mealy(symbols=("a",), tables=[[0, 0]], outputs=("x",), readout=np.zeros((1, 2), int))
    with pytest.raises(InvalidMachine, match="1 states are reached by no word and cannot be matched"):
        isomorphism(alone, alone)


def test_isomorphism_is_none_for_different_machines() -> None:
    assert isomorphism(tomita(5), replace(tomita(5), start=1)) is None
    assert isomorphism(tomita(5), replace(tomita(5), readout=[1, 0, 0, 1])) is None
    assert isomorphism(tomita(4), tomita(5)) is None
    assert isomorphism(tomita(1), tomita(2)) is None
    with pytest.raises(InvalidMachine, match="only machines with outputs"):
        isomorphism(cyclic(2), Semiautomaton(symbols=("0", "1"), tables=cyclic(2).tables))
    with pytest.raises(InvalidMachine, match="over the same symbols"):
        isomorphism(cyclic(2), Moore(symbols=("0", "x"), tables=[[0, 1], [1, 0]], outputs=("a",), readout=[0, 0]))


def test_is_word_problem_by_translations() -> None:
    for machine in (cyclic(6), alternating(5), flip_flop()):
        assert is_word_problem(machine.tables)
    assert not is_word_problem(tomita(3).tables)
    assert not is_word_problem(from_tables([[0, 0, 2]]).tables)  # state 2 is not reached
    broken = alternating(4).tables.copy()
    broken[0, [3, 5]] = broken[0, [5, 3]]
    assert not is_word_problem(broken)


def test_translation_of_residues_adds() -> None:
    tables = cyclic(7).tables
    assert translation(tables, np.arange(7), 3).tolist() == [3, 4, 5, 6, 0, 1, 2]
    assert translation(flip_flop().tables, np.arange(3), 1).tolist() == [1, 1, 2]
    assert translation(tomita(4).tables, np.arange(4), 1) is None

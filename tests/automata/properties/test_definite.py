"""Definite machines against the definition."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, cyclic, flip_flop, mathieu11
from exactstate.automata.properties.definite import Definite, definite
from tests.cases import in_one_case


def constant_after(machine: Semiautomaton, k: int) -> bool:
    """The definition: every word of k symbols sends all states to one."""
    words = itertools.product(range(machine.n_symbols), repeat=k)
    return all(len(np.unique(machine.act(np.array(word, int)))) == 1 for word in words)


def check(machine: Semiautomaton, answer: Definite) -> None:
    """The witness, by running it."""
    if answer.apart is None:
        assert answer.order == 0
        assert machine.n_states == 1
        return
    p, q = (machine.state_number(name) for name in answer.apart)
    assert p != q
    if answer:
        assert len(answer.word) == answer.order - 1
        assert machine.run(list(answer.word), p) != machine.run(list(answer.word), q)
        return
    assert answer.word
    for _ in range(machine.n_states**2):  # there are no more pairs of states than that
        p, q = machine.run(list(answer.word), p), machine.run(list(answer.word), q)
        assert p != q


@in_one_case("seed", range(150))
def test_definite_tiny_machines_against_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, A = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    q = np.arange(n)
    falling = rng.integers(0, np.maximum(q, 1), (A, n))  # towards 0: always definite
    tables = falling if seed % 3 == 0 else rng.integers(0, n, (A, n)) if seed % 3 == 1 else np.sort(falling, axis=1)
    machine = Semiautomaton(symbols=tuple("ab"[:A]), tables=tables)
    answer = definite(machine)
    check(machine, answer)
    orders = [k for k in range(n) if constant_after(machine, k)]  # the order is at most n - 1
    assert answer.order == (orders[0] if orders else None)


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_definite_shift_register_of_k_bits_has_order_k(k: int) -> None:
    q = np.arange(2**k)
    machine = Semiautomaton(symbols=("0", "1"), tables=np.stack([2 * q % 2**k, (2 * q + 1) % 2**k]))
    answer = definite(machine)
    assert answer.order == k
    check(machine, answer)


@pytest.mark.parametrize("n", [2, 7, 500])
def test_definite_order_can_be_one_less_than_the_states(n: int) -> None:
    q = np.arange(n)
    machine = Semiautomaton(symbols=("a", "b"), tables=np.stack([np.maximum(q - 1, 0), np.maximum(q - 2, 0)]))
    answer = definite(machine)
    assert answer.order == n - 1
    check(machine, answer)


def test_definite_witness_of_several_symbols() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[2, 1, 1], [0, 0, 1]])
    answer = definite(machine)
    assert not answer
    assert len(answer.word) > 1
    check(machine, answer)


def test_definite_is_false_for_groups_and_flip_flops() -> None:
    for machine in (cyclic(2), cyclic(16), flip_flop(), mathieu11()):
        answer = definite(machine)
        assert not answer
        assert len(answer.word) == 1
    assert definite(cyclic(1)).order == 0


def test_definite_witness_check_rejects_a_wrong_witness() -> None:
    machine = Semiautomaton(symbols=("a", "b"), tables=[[1, 0, 0], [0, 0, 0]])
    answer = definite(machine)
    check(machine, answer)
    with pytest.raises(AssertionError):
        check(machine, replace(answer, word=("b",)))


def test_definite_explain() -> None:
    two = Semiautomaton(symbols=("a",), tables=[[0, 0]])
    assert definite(two).explain() == "definite of order 1: the last symbol determines the state, while '1' is not '0'"
    three = Semiautomaton(symbols=("a",), tables=[[0, 0, 1]])
    assert definite(three).explain() == (
        "definite of order 2: the last 2 symbols determine the state, while 'a' still separates '2' from '0'"
    )
    assert definite(cyclic(1)).explain() == "definite of order 0: there is only one state"
    assert definite(cyclic(2)).explain() == "not definite: '0' keeps '0' and '1' apart, however often it is repeated"

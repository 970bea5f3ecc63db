"""The contracting affine realisation of definite automata: it holds below 1/(2k), and breaks just above."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from detent.automata import Semiautomaton, cyclic, definite
from detent.errors import InvalidInput
from paper.theory.branches import branch
from paper.theory.realization import realizes
from paper.theory.register import shift_register
from paper.theory.trajectories import attack, perturbed, random_pushes, shortest_attack, wrong_steps
from tests.paper.theory.machines import all_of, last_symbols

HAIR = F(1, 1000)


@pytest.mark.parametrize("k", [1, 2])
def test_it_holds_below_the_bound_and_breaks_above(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    assert register.order == k
    assert register.eta_0 == F(1, 2 * k)
    assert realizes(register.triple, machine, register.eta_0 * (1 - HAIR)).proved
    above = realizes(register.triple, machine, register.eta_0 * (1 + HAIR))
    assert [finding.status for finding in above.findings] == ["proved", "proved", "refuted"]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_worst_pushes_succeed_above_the_bound_and_fail_below_on_all_short_words(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    lengths = range(1, k + 1 + (k < 3))
    assert shortest_attack(register.triple, machine, register.eta_0 * (1 - HAIR), lengths) is None
    failure = shortest_attack(register.triple, machine, register.eta_0 * (1 + HAIR), lengths)
    assert failure is not None
    assert len(failure.word) == k, "a symbol is pushed once in every slot it passes through"
    assert np.abs(failure.pushes).max() <= float(register.eta_0 * (1 + HAIR))
    path = perturbed(register.triple, failure.word, failure.state, failure.pushes)
    assert np.array_equal(path, failure.path)
    assert machine.run(np.array(failure.word), failure.state) == failure.wanted != failure.read


def test_every_definite_automaton_with_three_states_is_realised() -> None:
    definite_ones = [machine for machine in all_of(3, 2) if definite(machine)]
    assert len(definite_ones) > 20
    for machine in definite_ones[::5]:
        register = shift_register(machine)
        assert realizes(register.triple, machine, register.eta_0 * F(9, 10)).proved


def test_it_is_contracting_and_forgets_after_k_steps() -> None:
    register = shift_register(last_symbols(3))
    A = register.triple.step.A[0]  # type: ignore[attr-defined]
    assert not np.linalg.matrix_power(A, 3).any()
    assert np.linalg.matrix_power(A, 2).any()
    assert branch(register.triple.step.A, words=64).name == "contracting"  # type: ignore[attr-defined]


def test_random_pushes_below_the_bound_never_mislead() -> None:
    machine, generator = last_symbols(3), np.random.default_rng(0)
    triple = shift_register(machine).triple
    for state in range(machine.n_states):
        word = generator.integers(0, 2, 300)
        for eta, limit in ((0.166, 0), (0.4, 300)):
            path = perturbed(triple, word, state, random_pushes(triple, 300, eta, generator))
            wrong = wrong_steps(triple, machine, word, state, path)
            assert (len(wrong) == 0) == (limit == 0)


def test_exact_runs_are_the_automaton() -> None:
    machine = last_symbols(2, A=3)
    triple = shift_register(machine).triple
    for word in product(range(3), repeat=4):
        for state in range(9):
            told = triple.readout(triple.run(word, state))
            assert np.array_equal(told, machine.trajectory(np.array(word)[None], state)[0])


def test_a_machine_that_is_not_definite_has_no_register() -> None:
    with pytest.raises(
        InvalidInput, match="only definite automata have a contracting affine realisation; this one is not"
    ):
        shift_register(cyclic(2))


def test_an_attack_needs_a_state_to_attack() -> None:
    resets = Semiautomaton(symbols=("a",), tables=[[0, 0]])
    assert attack(shift_register(resets).triple, resets, [0, 0], F(4, 10)) is None

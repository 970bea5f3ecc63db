"""Perturbed runs: adversarial perturbations succeed just above the bound, and none does below."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from exactstate.automata import Semiautomaton
from paper.theory.constructions import shift_register
from paper.theory.perturbation import attack, perturbed, random_perturbations, shortest_attack, wrong_steps
from tests.paper.theory.machines import last_symbols

HAIR = F(1, 1000)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_attack_succeeds_above_the_bound_and_fails_below_on_all_short_words(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    lengths = range(1, k + 1 + (k < 3))
    assert shortest_attack(register.triple, machine, register.eta_0 * (1 - HAIR), lengths) is None
    failure = shortest_attack(register.triple, machine, register.eta_0 * (1 + HAIR), lengths)
    assert failure is not None
    assert len(failure.word) == k, "a symbol is perturbed once in every slot it passes through"
    assert np.abs(failure.perturbations).max() <= float(register.eta_0 * (1 + HAIR))
    path = perturbed(register.triple, failure.word, failure.state, failure.perturbations)
    assert np.array_equal(path, failure.path)
    assert machine.run(np.array(failure.word), failure.state) == failure.wanted != failure.read


def test_random_perturbations_below_the_bound_are_never_misread() -> None:
    machine, generator = last_symbols(3), np.random.default_rng(0)
    triple = shift_register(machine).triple
    for state in range(machine.n_states):
        word = generator.integers(0, 2, 300)
        for eta, limit in ((0.166, 0), (0.4, 300)):
            path = perturbed(triple, word, state, random_perturbations(triple, 300, eta, generator))
            wrong = wrong_steps(triple, machine, word, state, path)
            assert (len(wrong) == 0) == (limit == 0)


def test_shortest_attack_without_another_state() -> None:
    resets = Semiautomaton(symbols=("a",), tables=[[0, 0]])
    assert attack(shift_register(resets).triple, resets, [0, 0], F(4, 10)) is None

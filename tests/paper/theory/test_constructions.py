"""The shift register of definite automata: it holds below 1/(2k), and breaks just above."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from exactstate.automata import cyclic, definite
from exactstate.errors import InvalidInput
from paper.theory.branches import branch
from paper.theory.constructions import shift_register
from paper.theory.realization import realizes
from tests.paper.theory.machines import all_of, last_symbols

HAIR = F(1, 1000)


@pytest.mark.parametrize("k", [1, 2])
def test_shift_register_is_realized_below_the_bound_and_refuted_above(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    assert register.order == k
    assert register.eta_0 == F(1, 2 * k)
    assert realizes(register.triple, machine, register.eta_0 * (1 - HAIR)).proved
    above = realizes(register.triple, machine, register.eta_0 * (1 + HAIR))
    assert [finding.status for finding in above.conditions] == ["proved", "proved", "refuted"]


def test_shift_register_of_every_definite_automaton_with_three_states() -> None:
    definite_ones = [machine for machine in all_of(3, 2) if definite(machine)]
    assert len(definite_ones) > 20
    for machine in definite_ones[::5]:
        register = shift_register(machine)
        assert realizes(register.triple, machine, register.eta_0 * F(9, 10)).proved


def test_shift_register_contracts_and_forgets_after_k_steps() -> None:
    register = shift_register(last_symbols(3))
    A = register.triple.step.A[0]  # type: ignore[attr-defined]
    assert not np.linalg.matrix_power(A, 3).any()
    assert np.linalg.matrix_power(A, 2).any()
    assert branch(register.triple.step.A, words=64).name == "contracting"  # type: ignore[attr-defined]


def test_shift_register_without_perturbations_is_the_automaton() -> None:
    machine = last_symbols(2, A=3)
    triple = shift_register(machine).triple
    for word in product(range(3), repeat=4):
        for state in range(9):
            told = triple.readout(triple.run(word, state))
            assert np.array_equal(told, machine.trajectory(np.array(word)[None], state)[0])


def test_shift_register_refuses_a_machine_that_is_not_definite() -> None:
    with pytest.raises(
        InvalidInput, match="only definite automata have a contracting affine realization; this one is not"
    ):
        shift_register(cyclic(2))

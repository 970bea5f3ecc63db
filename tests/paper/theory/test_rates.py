"""Two rates: both at least 2 eta for what is held, on all short words; and one of them lost for what is not."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from detent.automata import Semiautomaton, cyclic, flip_flop, symmetric
from detent.errors import InvalidInput
from paper.theory.attractors import eta_0, one_hot
from paper.theory.rates import two_rates
from paper.theory.register import shift_register
from paper.theory.shapes import NORMS, Box, exact
from paper.theory.triples import Affine, Triple
from tests.paper.theory.machines import hold, last_symbols


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("machine", [symmetric(3), flip_flop()], ids=("S3", "FF"))
def test_one_hot_has_both(machine: Semiautomaton, norm: str) -> None:
    eta = 0.99 * eta_0(norm)
    for length in (1, 2, 3):
        for word in product(range(machine.n_symbols), repeat=length):
            found = two_rates(one_hot(machine, norm), machine, eta, word)
            assert found.narrower >= 2 * eta - 1e-12
            assert found.apart > 2 * eta - 1e-12


@pytest.mark.parametrize("k", [2, 3])
def test_a_register_has_both_below_its_bound_and_not_above(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    for factor, held in ((F(99, 100), True), (F(101, 100), False)):
        eta = float(register.eta_0 * factor)
        words = [word for length in (1, 2) for word in product((0, 1), repeat=length)]
        found = [two_rates(register.triple, machine, eta, word) for word in words]
        assert all(rates.narrower >= 2 * eta - 1e-12 for rates in found)
        assert all(rates.apart >= 2 * eta - 1e-12 for rates in found) == held


def test_an_affine_map_has_one_rate_for_both() -> None:
    """Along a repeated word a contraction narrows the cells and the distance between them alike."""
    codes = np.array([[-1.0], [1.0]])
    for rate in (0.5, 0.9, 1.0):
        triple = Triple(
            codes, Affine(np.full((1, 1, 1), rate), np.zeros((1, 1))), lambda h: (h[..., 0] > 0).astype(int),
            lambda eta: [[Box(exact(code), exact([0.5]))] for code in codes],
        )  # fmt: skip
        for length in (1, 5, 40):
            found = two_rates(triple, hold(), 0.01, [0] * length)
            assert found.apart == pytest.approx(rate**length)
            assert found.narrower == pytest.approx(1 - rate**length, abs=1e-12)
            assert not (found.apart >= 0.02 and found.narrower >= 0.02) or length < 40


def test_definite_words_leave_nothing_to_keep_apart() -> None:
    machine = last_symbols(2)
    assert two_rates(shift_register(machine).triple, machine, 0.1, [0, 1, 1]).apart == float("inf")


def test_refusals() -> None:
    triple = Triple(np.eye(2), lambda symbol, h: h, lambda h: h.argmax(-1), one_hot(hold()).cells)
    with pytest.raises(InvalidInput, match="for affine steps and for tables; this step is a function"):
        two_rates(triple, hold(), 0.1, [0])
    assert two_rates(one_hot(cyclic(2)), cyclic(2), 0.25, []).narrower == 0

"""Horizons: the adversary succeeds one step beyond the bound, and on all shorter words no adversary can."""

from __future__ import annotations

from itertools import product
from math import ceil, log, sin

import numpy as np
import pytest

from detent.automata import Semiautomaton, cyclic
from detent.errors import InvalidConfig
from paper.theory.drift import Rounded
from paper.theory.exact import circle_point
from paper.theory.horizons import (
    contracting_horizon,
    contracting_precision,
    ends,
    first_meeting,
    isometric_horizon,
    isometric_precision,
    meet_at_the_end,
    meet_on_the_way,
)
from paper.theory.triples import Affine
from tests.paper.theory.machines import hold

CODES = np.array([[-1.0, 0.0], [1.0, 0.0]])
SWAP = Semiautomaton(symbols=("keep", "swap"), tables=[[0, 1], [1, 0]])


def turning(*turns: float, rate: float = 1.0) -> Affine:
    angles = 2 * np.pi * np.array(turns)
    A = np.stack([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    return Affine(rate * A, np.zeros((len(turns), 2)))


@pytest.mark.parametrize(("kappa", "eta"), [(0.5, 0.1), (0.7, 0.03), (0.8, 0.3), (0.5, 2**-6), (0.25, 2**-7)])
def test_a_contraction_fails_exactly_one_step_beyond_its_horizon(kappa: float, eta: float) -> None:
    step, horizon = turning(0, 1 / 2, rate=kappa), contracting_horizon(kappa, C=2, eta=eta)
    meeting = first_meeting(step, CODES, SWAP, eta, horizon + 1, isometric=False)
    assert meeting is not None
    assert len(meeting.word) == horizon + 1
    one, other = ends(step, CODES, meeting)
    assert np.allclose(one, other, atol=1e-12)
    assert max(np.linalg.norm(e, axis=1).max() for e in meeting.pushes) <= eta
    reached = SWAP.act(np.array(meeting.word))
    assert reached[meeting.states[0]] != reached[meeting.states[1]]
    assert first_meeting(step, CODES, SWAP, eta, horizon, isometric=False) is None


@pytest.mark.parametrize("eta", [0.1, 0.13, 0.25, 0.34])
def test_an_isometry_fails_exactly_one_step_beyond_its_horizon(eta: float) -> None:
    step, horizon = turning(0, 1 / 2), isometric_horizon(C=2, eta=eta)
    meeting = first_meeting(step, CODES, SWAP, eta, horizon + 1, isometric=True)
    assert meeting is not None
    assert len(meeting.word) == horizon + 1
    one, other = ends(step, CODES, meeting)
    assert np.allclose(one, other, atol=1e-12)
    assert max(np.linalg.norm(e, axis=1).max() for e in meeting.pushes) <= eta * (1 + 1e-12)
    assert first_meeting(step, CODES, SWAP, eta, horizon, isometric=True) is None


@pytest.mark.parametrize("eta", [0.3, 0.4, 0.6])
def test_below_the_horizon_no_pushes_at_all_lead_to_a_wrong_answer(eta: float) -> None:
    """On a line: every word and every choice of pushes -eta, 0, +eta, read by sign; beyond, some choice is wrong."""
    signs, horizon = np.array([1.0, -1.0]), isometric_horizon(C=2, eta=eta)
    for length in range(1, horizon + 2):
        misled = 0
        for word in product((0, 1), repeat=length):
            for pushes in product((-eta, 0.0, eta), repeat=length):
                h = 1.0
                for symbol, e in zip(word, pushes, strict=True):
                    h = signs[symbol] * h + e
                misled += np.sign(h) != np.prod(signs[list(word)])
        assert (misled > 0) == (length > horizon)


@pytest.mark.parametrize("horizon", range(1, 40))
def test_precision_and_horizon_are_two_sides_of_one_bound(horizon: int) -> None:
    for kappa in (0.3, 0.77):
        eta = contracting_precision(kappa, 2.0, horizon)
        assert contracting_horizon(kappa, 2.0, eta * 0.999) == horizon
        assert contracting_horizon(kappa, 2.0, eta * 1.001) == horizon - 1
    eta = isometric_precision(2.0, horizon)
    assert isometric_horizon(2.0, eta * 0.999) == horizon
    assert isometric_horizon(2.0, eta * 1.001) == horizon - 1


def test_the_formula_of_the_corollary() -> None:
    generator = np.random.default_rng(0)
    for kappa, C, eta in zip(*generator.uniform(0.05, 0.95, (3, 200)), strict=True):
        wanted = ceil(log(C / (2 * eta)) / log(1 / kappa)) - 1
        assert contracting_horizon(kappa, C, eta) == max(0, wanted)


def test_a_group_under_a_contraction_has_no_horizon_beyond_its_code() -> None:
    """Z3 by thirds of a turn: any two of the three code points are sqrt(3) apart."""
    step, machine = turning(0, 1 / 3, 2 / 3, rate=0.6), cyclic(3)
    codes = np.array([[float(x) for x in circle_point(q, 3)] for q in range(3)])
    horizon = contracting_horizon(0.6, C=3**0.5, eta=0.05)
    assert first_meeting(step, codes, machine, 0.05, horizon, isometric=False) is None
    assert first_meeting(step, codes, machine, 0.05, horizon + 1, isometric=False) is not None


@pytest.mark.parametrize("format", ["fp8 e5m2", "fp8 e4m3", "bf16", "fp16", "fp32"])
def test_a_rounded_rotation_keeps_the_guarantee_and_not_much_more(format: str) -> None:
    """Rounding the weights is a push of |R~ - R| |h| at every step; nothing may go wrong before C / 2 eta."""
    rotation = Rounded.to(format)
    cosine, sine = map(float, circle_point(1, 7))
    size = max(1.0, np.exp(rotation.log_radius * rotation.first_wrong_step))
    eta = np.hypot(rotation.cosine - cosine, rotation.sine - sine) * size
    guaranteed = isometric_horizon(C=2 * sin(np.pi / 7), eta=eta)
    assert guaranteed < rotation.first_wrong_step < 5 * guaranteed


def test_the_adversary_at_the_end_uses_one_push() -> None:
    meeting = meet_at_the_end(turning(0, rate=0.5), CODES, [0, 0, 0], 0, 1, eta=0.125)
    assert meeting is not None
    assert not meeting.pushes[0][:-1].any()
    assert meet_at_the_end(turning(0, rate=0.5), CODES, [0, 0, 0], 0, 1, eta=0.12) is None


def test_refusals() -> None:
    with pytest.raises(InvalidConfig, match="for isometries; some matrix stretches or shrinks"):
        meet_on_the_way(turning(0, rate=0.9), CODES, [0], 0, 1, eta=1.0)
    with pytest.raises(InvalidConfig, match="0 < kappa < 1; got 1"):
        contracting_horizon(1.0, 2, 0.1)
    with pytest.raises(InvalidConfig, match="pushes positive; got C = 2 and eta = 0"):
        isometric_horizon(2, 0)


def test_a_definite_target_has_no_horizon() -> None:
    """Where all states merge no meeting is forbidden."""
    resets = Semiautomaton(symbols=("a", "b"), tables=[[0, 0], [1, 1]])
    assert first_meeting(turning(0, 0, rate=0.5), CODES, resets, 0.5, 5, isometric=False) is None
    assert first_meeting(turning(0, rate=0.5), CODES, hold(), 0.5, 5, isometric=False) is not None

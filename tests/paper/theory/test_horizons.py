"""Horizons: the adversary succeeds one step beyond the bound, no adversary before; `refute` finds it."""

from __future__ import annotations

from itertools import islice, product
from math import ceil, log, sin

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, cyclic, definite, flip_flop, symmetric
from exactstate.errors import BudgetExceeded, InvalidConfig
from paper.theory.constructions import shift_register
from paper.theory.drift import RoundedRotation, circle_point
from paper.theory.horizons import (
    Collision,
    Escape,
    collide_at_end,
    collide_gradually,
    contracting_horizon,
    contracting_precision,
    ends,
    escape,
    isometric_horizon,
    isometric_precision,
    refute,
    shortest_collision,
)
from paper.theory.triples import Affine
from tests.paper.theory.machines import all_of, hold, last_symbols

CODES = np.array([[-1.0, 0.0], [1.0, 0.0]])
SWAP = Semiautomaton(symbols=("keep", "swap"), tables=[[0, 1], [1, 0]])


def turning(*turns: float, rate: float = 1.0) -> Affine:
    angles = 2 * np.pi * np.array(turns)
    A = np.stack([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    return Affine(rate * A, np.zeros((len(turns), 2)))


@pytest.mark.parametrize(("kappa", "eta"), [(0.5, 0.1), (0.7, 0.03), (0.8, 0.3), (0.5, 2**-6), (0.25, 2**-7)])
def test_contracting_horizon_is_exceeded_by_one_step(kappa: float, eta: float) -> None:
    step, horizon = turning(0, 1 / 2, rate=kappa), contracting_horizon(kappa, C=2, eta=eta)
    meeting = shortest_collision(step, CODES, SWAP, eta, horizon + 1, isometric=False)
    assert meeting is not None
    assert len(meeting.word) == horizon + 1
    one, other = ends(step, CODES, meeting)
    assert np.allclose(one, other, atol=1e-12)
    assert max(np.linalg.norm(e, axis=1).max() for e in meeting.perturbations) <= eta
    reached = SWAP.act(np.array(meeting.word))
    assert reached[meeting.states[0]] != reached[meeting.states[1]]
    assert shortest_collision(step, CODES, SWAP, eta, horizon, isometric=False) is None


@pytest.mark.parametrize("eta", [0.1, 0.13, 0.25, 0.34])
def test_isometric_horizon_is_exceeded_by_one_step(eta: float) -> None:
    step, horizon = turning(0, 1 / 2), isometric_horizon(C=2, eta=eta)
    meeting = shortest_collision(step, CODES, SWAP, eta, horizon + 1, isometric=True)
    assert meeting is not None
    assert len(meeting.word) == horizon + 1
    one, other = ends(step, CODES, meeting)
    assert np.allclose(one, other, atol=1e-12)
    assert max(np.linalg.norm(e, axis=1).max() for e in meeting.perturbations) <= eta * (1 + 1e-12)
    assert shortest_collision(step, CODES, SWAP, eta, horizon, isometric=True) is None


@pytest.mark.parametrize("eta", [0.3, 0.4, 0.6])
def test_isometric_horizon_admits_no_perturbations_below_it(eta: float) -> None:
    """On a line: every word and every choice of -eta, 0, +eta, read by sign; beyond, some choice is wrong."""
    signs, horizon = np.array([1.0, -1.0]), isometric_horizon(C=2, eta=eta)
    for length in range(1, horizon + 2):
        misled = 0
        for word in product((0, 1), repeat=length):
            for perturbations in product((-eta, 0.0, eta), repeat=length):
                h = 1.0
                for symbol, e in zip(word, perturbations, strict=True):
                    h = signs[symbol] * h + e
                misled += np.sign(h) != np.prod(signs[list(word)])
        assert (misled > 0) == (length > horizon)


@pytest.mark.parametrize("horizon", range(1, 40))
def test_contracting_precision_inverts_the_horizon(horizon: int) -> None:
    for kappa in (0.3, 0.77):
        eta = contracting_precision(kappa, 2.0, horizon)
        assert contracting_horizon(kappa, 2.0, eta * 0.999) == horizon
        assert contracting_horizon(kappa, 2.0, eta * 1.001) == horizon - 1
    eta = isometric_precision(2.0, horizon)
    assert isometric_horizon(2.0, eta * 0.999) == horizon
    assert isometric_horizon(2.0, eta * 1.001) == horizon - 1


def test_contracting_horizon_is_the_formula_of_the_corollary() -> None:
    generator = np.random.default_rng(0)
    for kappa, C, eta in zip(*generator.uniform(0.05, 0.95, (3, 200)), strict=True):
        wanted = ceil(log(C / (2 * eta)) / log(1 / kappa)) - 1
        assert contracting_horizon(kappa, C, eta) == max(0, wanted)


def test_shortest_collision_of_a_group_under_a_contraction() -> None:
    """Z3 by thirds of a turn: any two of the three code points are sqrt(3) apart."""
    step, machine = turning(0, 1 / 3, 2 / 3, rate=0.6), cyclic(3)
    codes = np.array([[float(x) for x in circle_point(q, 3)] for q in range(3)])
    horizon = contracting_horizon(0.6, C=3**0.5, eta=0.05)
    assert shortest_collision(step, codes, machine, 0.05, horizon, isometric=False) is None
    assert shortest_collision(step, codes, machine, 0.05, horizon + 1, isometric=False) is not None


@pytest.mark.parametrize("format", ["fp8 e5m2", "fp8 e4m3", "bf16", "fp16", "fp32"])
def test_isometric_horizon_of_a_rounded_rotation(format: str) -> None:
    """Rounding the weights is a perturbation of |R~ - R| |h| at every step; nothing may go wrong before C / 2 eta."""
    rotation = RoundedRotation.to(format)
    cosine, sine = map(float, circle_point(1, 7))
    size = max(1.0, np.exp(rotation.log_radius * rotation.first_wrong_step))
    eta = np.hypot(rotation.cosine - cosine, rotation.sine - sine) * size
    guaranteed = isometric_horizon(C=2 * sin(np.pi / 7), eta=eta)
    assert guaranteed < rotation.first_wrong_step < 5 * guaranteed


def test_collide_at_end_uses_one_perturbation() -> None:
    meeting = collide_at_end(turning(0, rate=0.5), CODES, [0, 0, 0], 0, 1, eta=0.125)
    assert meeting is not None
    assert not meeting.perturbations[0][:-1].any()
    assert collide_at_end(turning(0, rate=0.5), CODES, [0, 0, 0], 0, 1, eta=0.12) is None


def test_horizons_refuse_bad_input() -> None:
    with pytest.raises(InvalidConfig, match="for isometries; some matrix changes the norm"):
        collide_gradually(turning(0, rate=0.9), CODES, [0], 0, 1, eta=1.0)
    with pytest.raises(InvalidConfig, match="0 < kappa < 1; got 1"):
        contracting_horizon(1.0, 2, 0.1)
    with pytest.raises(InvalidConfig, match="must be positive; got C = 2 and eta = 0"):
        isometric_horizon(2, 0)


def test_shortest_collision_of_a_definite_target_is_none() -> None:
    """Where all states merge no meeting is forbidden."""
    resets = Semiautomaton(symbols=("a", "b"), tables=[[0, 0], [1, 1]])
    assert shortest_collision(turning(0, 0, rate=0.5), CODES, resets, 0.5, 5, isometric=False) is None
    assert shortest_collision(turning(0, rate=0.5), CODES, hold(), 0.5, 5, isometric=False) is not None


def perturbed(step: Affine, h: np.ndarray, word: tuple[int, ...], perturbations: np.ndarray) -> np.ndarray:
    for symbol, e in zip(word, perturbations, strict=True):
        h = step.A[symbol] @ h + step.b[symbol] + e
    return h


def longest(perturbations: tuple[np.ndarray, np.ndarray]) -> float:
    return max(float(np.linalg.norm(e, axis=1).max()) for e in perturbations)


def confirm(found: Collision | Escape, step: Affine, codes: np.ndarray, automaton: Semiautomaton, eta: float) -> None:
    """By running it."""
    assert longest(found.perturbations) <= eta * (1 + 1e-9)
    if isinstance(found, Collision):
        q, p = found.states
        reached = automaton.act(np.array(found.word))
        assert reached[q] != reached[p]
        one, other = (
            perturbed(step, codes[s], found.word, e) for s, e in zip(found.states, found.perturbations, strict=True)
        )
        assert np.allclose(one, other, atol=1e-9)
        assert np.allclose(one, ends(step, codes, found)[0])
    else:
        one, other = (perturbed(step, codes[0], found.word, e) for e in found.perturbations)
        far = float(np.linalg.norm(one - other))
        assert far >= found.distance * (1 - 1e-6)
        assert found.distance > 10 * np.linalg.norm(codes[:, None] - codes[None], axis=-1).max()


@pytest.mark.parametrize("scale", [0.3, 0.9, 1.0, 1.2])
@pytest.mark.parametrize("machine", [flip_flop(), cyclic(3), symmetric(3), hold()], ids=("FF", "Z3", "S3", "hold"))
def test_refute_every_random_affine_recurrence(machine: Semiautomaton, scale: float) -> None:
    generator = np.random.default_rng(int(10 * scale))
    for d in (1, 2, 5):
        A = generator.standard_normal((machine.n_symbols, d, d))
        A *= scale / np.abs(np.linalg.eigvals(A)).max(-1)[:, None, None]
        step, codes = (
            Affine(A, generator.standard_normal((machine.n_symbols, d))),
            generator.standard_normal((machine.n_states, d)),
        )
        found = refute(step, codes, machine, eta=0.05)
        assert found is not None
        confirm(found, step, codes, machine, 0.05)


def test_refute_every_small_automaton_that_is_not_definite() -> None:
    """A third of the 729 with three states and two symbols, under a contraction: refuted exactly when not definite."""
    step, codes = Affine(np.full((2, 1, 1), 0.8), np.zeros((2, 1))), np.array([[-1.0], [0.0], [1.0]])
    refuted = 0
    for machine in islice(all_of(3, 2), 0, None, 3):
        found = refute(step, codes, machine, eta=0.01)
        assert (found is None) == bool(definite(machine))
        if found is not None:
            refuted += 1
            confirm(found, step, codes, machine, 0.01)
    assert 0 < refuted < 243


def test_refute_accepts_a_shift_register() -> None:
    machine = last_symbols(2)
    triple = shift_register(machine).triple
    assert isinstance(triple.step, Affine)
    assert refute(triple.step, triple.codes, machine, eta=0.2) is None


def test_refute_an_isometry_for_a_definite_automaton() -> None:
    machine = last_symbols(1)
    step = Affine(np.stack([0.5 * np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])]), np.zeros((2, 2)))
    codes = np.eye(2)
    found = refute(step, codes, machine, eta=0.1)
    assert isinstance(found, Escape)
    assert set(found.word) == {1}
    confirm(found, step, codes, machine, 0.1)


def test_escape_from_a_shear_is_faster_than_from_the_identity() -> None:
    """A Jordan block amplifies: the distance grows with the square of the number of steps, by eta k^2."""
    identity, shear = (Affine(A[None], np.zeros((1, 2))) for A in (np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]])))
    slow, fast = (escape(step, (0,), eta=0.01, diameter=10.0) for step in (identity, shear))
    assert len(slow.word) == pytest.approx(10 / 0.02, abs=1)
    assert len(fast.word) == pytest.approx((10 / 0.01) ** 0.5, abs=2)


def test_refute_refuses_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paper.theory.horizons.REPEATS", 500)
    with pytest.raises(InvalidConfig, match="a perturbation level is positive; got 0"):
        refute(Affine(np.zeros((1, 1, 1)), np.zeros((1, 1))), np.array([[0.0], [1.0]]), hold(), 0)
    with pytest.raises(BudgetExceeded, match="use a larger eta"):
        refute(Affine(np.array([[[1.0]]]), np.zeros((1, 1))), np.array([[0.0], [1.0]]), hold(), 1e-9)

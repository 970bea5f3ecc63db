"""The theorem on affine recurrences, run: every recurrence and every automaton that is not definite gets its pushes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from detent.automata import Semiautomaton, cyclic, definite, flip_flop, symmetric
from detent.errors import BudgetExceeded, InvalidConfig
from paper.theory.horizons import Meeting, ends
from paper.theory.limits import Leaving, leave, refute
from paper.theory.register import shift_register
from paper.theory.triples import Affine
from tests.paper.theory.machines import all_of, hold, last_symbols


def pushed(step: Affine, h: np.ndarray, word: tuple[int, ...], pushes: np.ndarray) -> np.ndarray:
    for symbol, e in zip(word, pushes, strict=True):
        h = step.A[symbol] @ h + step.b[symbol] + e
    return h


def longest(pushes: tuple[np.ndarray, np.ndarray]) -> float:
    return max(float(np.linalg.norm(e, axis=1).max()) for e in pushes)


def confirm(found: Meeting | Leaving, step: Affine, codes: np.ndarray, automaton: Semiautomaton, eta: float) -> None:
    """By running it."""
    assert longest(found.pushes) <= eta * (1 + 1e-9)
    if isinstance(found, Meeting):
        q, p = found.states
        reached = automaton.act(np.array(found.word))
        assert reached[q] != reached[p]
        one, other = (pushed(step, codes[s], found.word, e) for s, e in zip(found.states, found.pushes, strict=True))
        assert np.allclose(one, other, atol=1e-9)
        assert np.allclose(one, ends(step, codes, found)[0])
    else:
        one, other = (pushed(step, codes[0], found.word, e) for e in found.pushes)
        far = float(np.linalg.norm(one - other))
        assert far >= found.apart * (1 - 1e-6)
        assert found.apart > 10 * np.linalg.norm(codes[:, None] - codes[None], axis=-1).max()


@pytest.mark.parametrize("scale", [0.3, 0.9, 1.0, 1.2])
@pytest.mark.parametrize("machine", [flip_flop(), cyclic(3), symmetric(3), hold()], ids=("FF", "Z3", "S3", "hold"))
def test_no_random_affine_recurrence_survives(machine: Semiautomaton, scale: float) -> None:
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


def test_every_small_automaton_that_is_not_definite() -> None:
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


def test_a_register_and_its_automaton_are_left_alone() -> None:
    machine = last_symbols(2)
    triple = shift_register(machine).triple
    assert isinstance(triple.step, Affine)
    assert refute(triple.step, triple.codes, machine, eta=0.2) is None


def test_a_definite_automaton_does_not_help_a_recurrence_that_keeps_its_errors() -> None:
    machine = last_symbols(1)
    step = Affine(np.stack([0.5 * np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])]), np.zeros((2, 2)))
    codes = np.eye(2)
    found = refute(step, codes, machine, eta=0.1)
    assert isinstance(found, Leaving)
    assert set(found.word) == {1}
    confirm(found, step, codes, machine, 0.1)


def test_a_shear_is_left_sooner_than_the_identity() -> None:
    """A Jordan block amplifies: the distance grows with the square of the number of steps, by eta k^2."""
    identity, shear = (Affine(A[None], np.zeros((1, 2))) for A in (np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]])))
    slow, fast = (leave(step, (0,), eta=0.01, diameter=10.0) for step in (identity, shear))
    assert len(slow.word) == pytest.approx(10 / 0.02, abs=1)
    assert len(fast.word) == pytest.approx((10 / 0.01) ** 0.5, abs=2)


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paper.theory.limits.REPEATS", 500)
    with pytest.raises(InvalidConfig, match="a perturbation level is positive; got 0"):
        refute(Affine(np.zeros((1, 1, 1)), np.zeros((1, 1))), np.array([[0.0], [1.0]]), hold(), 0)
    with pytest.raises(BudgetExceeded, match="take a larger eta"):
        refute(Affine(np.array([[[1.0]]]), np.zeros((1, 1))), np.array([[0.0], [1.0]]), hold(), 1e-9)

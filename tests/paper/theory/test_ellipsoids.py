"""Invariant ellipsoids: no sampled step leaves them, and they exist exactly below spectral radius one."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from exactstate.automata import Semiautomaton
from exactstate.errors import InvalidInput
from paper.theory.capacity import affine, invariant_sets
from paper.theory.ellipsoids import Ellipsoid, invariant_ellipsoid, lyapunov
from paper.theory.horizons import escape
from paper.theory.realization import realizes
from paper.theory.shapes import AffineImage, exact, unit_vectors
from paper.theory.triples import Affine, Triple


def matrices() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    drawn = []
    for d in (1, 2, 3, 6):
        for radius in (0.2, 0.9, 0.99):
            A = generator.standard_normal((d, d))
            drawn.append(A * radius / np.abs(np.linalg.eigvals(A)).max())
    return [*drawn, np.array([[0.5, 40.0], [0.0, 0.5]])]


@pytest.mark.parametrize("A", matrices(), ids=lambda A: f"d{len(A)}")
def test_invariant_ellipsoid_is_never_left(A: np.ndarray) -> None:
    generator, eta = np.random.default_rng(1), 0.1
    b = generator.standard_normal(len(A))
    held = invariant_ellipsoid(A, b, eta)
    assert held is not None
    assert np.allclose(A @ held.middle + b, held.middle)
    u = held.sample(generator, 4000)
    assert np.allclose(held.norm(u), held.size)
    moved = u @ A.T + b
    for e in (generator.standard_normal(u.shape), (moved - held.middle) @ held.Q):
        e *= eta / np.linalg.norm(e, axis=1)[:, None]
        assert held.norm(moved + e).max() <= held.size * (1 + 1e-9)
    assert all(held.contains(exact(u)) for u in held.middle + 0.999 * (u[:20] - held.middle))
    assert not any(held.contains(exact(u)) for u in held.middle + 1.001 * (u[:20] - held.middle))


@pytest.mark.parametrize("A", matrices(), ids=lambda A: f"d{len(A)}")
def test_invariant_sets_are_at_least_as_wide_as_the_lemma(A: np.ndarray) -> None:
    """diam(U) >= 2 eta sum of |(A^T)^j v| for every unit v."""
    held = invariant_ellipsoid(A, np.zeros(len(A)), 0.1)
    assert held is not None
    for v in np.random.default_rng(2).standard_normal((10, len(A))):
        back, total = v / np.linalg.norm(v), 0.0
        for _ in range(3000):
            total += float(np.linalg.norm(back))
            back = A.T @ back
        assert 2 * 0.1 * total <= held.diameter * (1 + 1e-9)


@pytest.mark.parametrize("A", [np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]]), np.diag([0.5, 1.1])])
def test_invariant_ellipsoid_is_none_from_spectral_radius_one(A: np.ndarray) -> None:
    assert invariant_ellipsoid(A, np.zeros(2), 0.1) is None
    for diameter in (1.0, 100.0):
        assert escape(Affine(A[None], np.zeros((1, 2))), (0,), 0.1, diameter).distance > diameter


def test_invariant_ellipsoid_is_tight_in_one_dimension() -> None:
    """The size is the smallest possible: rate 1/2 and perturbations of 0.1 need a half width of 0.2."""
    held = invariant_ellipsoid([[0.5]], [0.0], 0.1)
    assert held is not None
    assert held.diameter == pytest.approx(0.4)


def test_ellipsoid_contains_image() -> None:
    """A little more perturbation than it was made for is not held."""
    for A in matrices()[:6]:
        b = np.ones(len(A))
        held = invariant_ellipsoid(A, b, 0.1)
        assert held is not None
        assert held.contains_image(AffineImage(A, b, held), F(1, 10), "2")
        assert not held.contains_image(AffineImage(A, b, held), F(101, 1000), "2")
        assert not held.contains_image(AffineImage(A, b + 1, held), F(1, 10), "2")


SHEAR, TURN = np.array([[0.0, 3.0], [0.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
RESETS = Semiautomaton(symbols=("a", "b"), tables=[[0, 0], [1, 1]])


class Side:
    """The sign of the first coordinate."""

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return (h[..., 0] > 0).astype(int)

    def on(self, shape: Ellipsoid) -> int:
        first, zero = np.array([[1.0, 0.0]]), exact([0])
        return 0 if shape.below(first, zero).all() else 1 if shape.below(-first, zero).all() else -1


def test_realizes_with_ellipsoids_as_cells() -> None:
    """Definite of order one, under a rotation that shrinks: proved for small perturbations, refuted for large ones."""
    A, codes = 0.02 * SHEAR + 0.2 * TURN, np.array([[-10.0, 0.0], [10.0, 0.0]])
    Q = lyapunov(A)
    size = 9.9 * float(np.sqrt(1 / np.linalg.inv(Q)[0, 0]))  # reaches 9.9 towards the other cell
    held = Triple(codes, Affine([A, A], codes), Side(), lambda eta: [[Ellipsoid(code, Q, size)] for code in codes], "2")
    found = realizes(held, RESETS, 0.5)
    assert found.proved, found.explain()
    generator = np.random.default_rng(0)
    for q, (cell,) in enumerate(held.cells(F(1, 2))):
        assert Side().on(cell) == q
        for x in (0, 1):
            lands = held.step(x, cell.sample(generator, 500)) + 0.5 * unit_vectors(generator, 500, 2, "2")
            assert all(held.cells(F(1, 2))[x][0].contains(exact(h)) for h in lands)
    assert realizes(held, RESETS, 12.0)["R2"].status == "refuted"


def test_invariant_ellipsoid_where_no_box_is_invariant() -> None:
    """A turn by an eighth, shrinking by 0.9: |A| has spectral radius 0.9 sqrt 2."""
    A = 0.9 * np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    assert np.abs(np.linalg.eigvals(np.abs(A))).max() > 1
    assert invariant_ellipsoid(A, np.zeros(2), 0.1) is not None
    assert len(invariant_sets(affine(A, np.zeros(2)), [-3, -3], [3, 3], eta=0.1, boxes=40)) == 1


def test_lyapunov_solves_its_equation() -> None:
    for A in matrices():
        Q = lyapunov(A)
        assert np.allclose(Q, np.eye(len(A)) + A.T @ Q @ A)


def test_invariant_ellipsoid_refuses_bad_input() -> None:
    held = invariant_ellipsoid([[0.5]], [0.0], 0.1)
    assert held is not None
    with pytest.raises(InvalidInput, match="compared with images of ellipsoids only; got a Ball"):
        held.contains_image(AffineImage.point(np.zeros(1)), F(1, 10), "2")
    with pytest.raises(InvalidInput, match="too close to one"):
        invariant_ellipsoid([[1 - 1e-10]], [0.0], 0.1)
    with pytest.raises(InvalidInput, match=r"A is \(d, d\) and b is \(d,\); got \(2, 2\) and \(3,\)"):
        invariant_ellipsoid(np.eye(2), np.zeros(3), 0.1)

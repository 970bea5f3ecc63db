"""The invariant ellipsoid of an affine map: a bounded invariant region exists exactly if rho(A) < 1.

    d  numbers of a hidden state

Q = I + A^T Q A has a solution exactly when rho(A) < 1. The ellipsoid (u - h)^T Q (u - h) <= s^2 around the fixed point
h then shrinks by kappa = sqrt(1 - 1 / lambda_max(Q)) in its own norm, in which a perturbation of eta is no longer than
eta sqrt(lambda_max(Q)), so s = eta sqrt(lambda_max(Q)) / (1 - kappa) suffices. Boxes do not: the box around the
image of a box grows by |A|, whose spectral radius may be above one where that of A is below.

Ellipsoids are computed in float64, with a relative slack of 10^-9, so a positive answer is certain. A negative one is
not: the bound adds worst cases that need not occur together.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactstate._types import Bools
from exactstate.errors import InvalidInput
from paper.theory.branches import ROUNDING, spectral_radii
from paper.theory.shapes import SLACK, AffineImage, Exact, Floats, Norm, exact


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """All u with (u - middle)^T Q (u - middle) <= size^2; a shape for cells."""

    middle: Floats
    Q: Floats
    size: float

    @cached_property
    def center(self) -> Exact:
        return exact(self.middle)

    @cached_property
    def root(self) -> Floats:
        """The symmetric root of Q, which makes a unit ball of the ellipsoid of size one."""
        values, vectors = np.linalg.eigh(self.Q)
        return (vectors * np.sqrt(values)) @ vectors.T

    @cached_property
    def inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self.root), float)

    @cached_property
    def floats(self) -> tuple[Floats, Floats]:
        """(the center, how far the shape reaches along every coordinate)."""
        return self.middle, self.size * np.sqrt((self.inverse**2).sum(1))

    @property
    def diameter(self) -> float:
        return float(2 * self.size / np.sqrt(np.linalg.eigvalsh(self.Q)[0]))

    def norm(self, u: Floats) -> Floats:
        """... d -> ...: the distance from the center in the ellipsoid's own norm."""
        return np.sqrt((((u - self.middle) @ self.root) ** 2).sum(-1))

    def below(self, G: Floats, levels: Exact, *, strict: bool = False) -> Bools:
        """k: whether g . u < level for every point of the shape, with some slack."""
        highest = G @ self.middle + self.size * np.linalg.norm(G @ self.inverse, axis=1)
        wanted = levels.astype(float)
        return wanted - highest > SLACK * (1 + np.abs(wanted) + np.abs(highest))

    def contains(self, u: Exact) -> bool:
        return bool(self.norm(u.astype(float)) <= self.size)

    def extreme_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest, nearly so."""
        along = self.inverse @ g.astype(float)
        length = float(np.linalg.norm(along))
        return exact(self.middle + (1 - SLACK) * self.size * self.inverse @ along / (length or 1.0))

    def contains_image(self, image: AffineImage, eta: Fraction, norm: Norm) -> bool:
        """Whether the image of an ellipsoid, perturbed by at most eta, lies in this one, with some slack."""
        if not isinstance(image.shape, Ellipsoid):
            raise InvalidInput(
                f"an ellipsoid can be compared with images of ellipsoids only; got a {type(image.shape).__name__}."
            )
        center = float(self.norm(image.A @ image.shape.middle + image.b))
        radius = image.shape.size * float(np.linalg.norm(self.root @ image.A @ image.shape.inverse, 2))
        stretch = np.linalg.norm(self.root, axis=0).max() if norm == "1" else np.linalg.norm(self.root, 2)
        longest = float(eta) * float(stretch) * (len(self.middle) ** 0.5 if norm == "inf" else 1.0)
        return bool(center + radius + longest <= self.size * (1 - SLACK))

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points of the surface."""
        drawn = generator.standard_normal((count, len(self.middle)))
        return self.middle + self.size * (drawn / np.linalg.norm(drawn, axis=1)[:, None]) @ self.inverse


def invariant_ellipsoid(A: ArrayLike, b: ArrayLike, eta: float) -> Ellipsoid | None:
    """A bounded region that is invariant under h -> A h + b and perturbations of at most eta; None if rho(A) >= 1.

    >>> invariant_ellipsoid([[0.5]], [1.0], eta=0.1).middle.tolist()
    [2.0]
    """
    matrix, drive = np.atleast_2d(np.asarray(A, float)), np.atleast_1d(np.asarray(b, float))
    if matrix.shape != (len(drive), len(drive)):
        raise InvalidInput(f"A is (d, d) and b is (d,); got {matrix.shape} and {drive.shape}.")
    if spectral_radii(matrix[None])[0] >= 1 - ROUNDING:
        return None
    Q, fixed = lyapunov(matrix), np.linalg.solve(np.eye(len(drive)) - matrix, drive)
    largest = float(np.linalg.eigvalsh(Q)[-1])
    room = 1 - sqrt(1 - 1 / largest) - 2 * SLACK
    if room <= 0:
        raise InvalidInput("the spectral radius is too close to one for an invariant ellipsoid in float64.")
    return Ellipsoid(fixed, Q, eta * sqrt(largest) / room)


def lyapunov(A: NDArray[Any]) -> Floats:
    """Q = I + A^T Q A = sum over j of (A^T)^j A^j, doubling the number of terms at every round."""
    Q, power = np.eye(len(A)), A
    while np.abs(power).max() > 1e-30:
        Q, power = Q + power.T @ Q @ power, power @ power
    return Q

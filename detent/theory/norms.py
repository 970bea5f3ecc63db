"""Norms, and pushes measured in them: the numbers that shapes are made of.

d  numbers of a hidden state
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detent.errors import unknown

Norm = Literal["inf", "2", "1"]
NORMS: tuple[Norm, ...] = ("inf", "2", "1")
Exact = NDArray[Any]
"""An array of fractions."""
Floats = NDArray[np.float64]


def exact(values: ArrayLike) -> Exact:
    """The same numbers as fractions, nothing lost.

    >>> exact([0.5, 2]).tolist()
    [Fraction(1, 2), Fraction(2, 1)]
    """
    array = np.asarray(values)
    made = np.empty(array.size, object)
    made[:] = [value if isinstance(value, Fraction) else Fraction(value) for value in array.ravel().tolist()]
    return made.reshape(array.shape)


def check_norm(norm: str) -> None:
    if norm not in NORMS:
        raise unknown("norm", norm, NORMS)


def within(u: Exact, radius: Fraction, norm: Norm) -> bool:
    """||u|| <= radius."""
    if radius < 0:
        return False
    if norm == "2":
        return bool(u @ u <= radius**2)
    return bool((abs(u).max() if norm == "inf" else abs(u).sum()) <= radius)


def push(g: Exact, length: Fraction, norm: Norm) -> Exact:
    """The vector of this length, or a hair less, that goes farthest in direction g."""
    if norm == "inf":
        return length * np.sign(g)
    if norm == "1":
        far = np.zeros_like(g)
        at = int(np.argmax(abs(g)))
        far[at] = length * np.sign(g[at])
        return far
    square = g @ g
    if square == 0:
        return g
    root = Fraction(float(square) ** 0.5) * Fraction(1 + 2**40, 2**40)  # above the root, so the push is not too long
    return g * (length / root)


def sphere(generator: np.random.Generator, count: int, d: int, norm: Norm) -> Floats:
    """Vectors of norm one: corners of the cube, points of the sphere, or of the cross polytope."""
    if norm == "inf":
        return generator.choice([-1.0, 1.0], (count, d))
    drawn = generator.standard_normal((count, d))
    lengths = np.linalg.norm(drawn, axis=1) if norm == "2" else np.abs(drawn).sum(1)
    return drawn / lengths[:, None]

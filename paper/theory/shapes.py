"""Boxes and balls, the shapes of cells, with exact answers about all their points at once.

    d  numbers of a hidden state     G  directions (k d)

"g . u <= level for all points u of a shape" is a comparison of rational numbers (of their squares in the Euclidean
norm), so it has an exact answer: float64 decides where rounding cannot matter, and fractions decide the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactstate._types import Bools
from exactstate.errors import InvalidInput, unknown

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


def extreme_perturbation(g: Exact, length: Fraction, norm: Norm) -> Exact:
    """The vector of this norm (in the Euclidean norm at most this) with the largest inner product with g."""
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
    root = Fraction(float(square) ** 0.5) * Fraction(1 + 2**40, 2**40)  # above the root: not too long
    return g * (length / root)


def unit_vectors(generator: np.random.Generator, count: int, d: int, norm: Norm) -> Floats:
    """Vectors of norm one: corners of the cube, points of the unit_vectors, or of the cross polytope."""
    if norm == "inf":
        return generator.choice([-1.0, 1.0], (count, d))
    drawn = generator.standard_normal((count, d))
    lengths = np.linalg.norm(drawn, axis=1) if norm == "2" else np.abs(drawn).sum(1)
    return drawn / lengths[:, None]


SLACK = 1e-9
"""Relative; the error of float64 is below d 2^-52 in sums of d products, so this suffices up to d = a million."""


class Shape(Protocol):
    """A bounded convex set of hidden states."""

    @property
    def center(self) -> Exact: ...

    @property
    def floats(self) -> tuple[Floats, Floats]:
        """(the center, how far the shape reaches along every coordinate)."""

    def below(self, G: Floats, levels: Exact, *, strict: bool = False) -> Bools:
        """k: whether g . u <= level (< level if strict) for every point of the shape."""

    def contains(self, u: Exact) -> bool: ...

    def extreme_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest, or nearly so."""

    def contains_image(self, image: AffineImage, eta: Fraction, norm: Norm) -> bool:
        """Whether the image, perturbed by at most eta, lies in the shape."""

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points of the shape, many of them at its surface."""


@dataclass(frozen=True, eq=False)
class AffineImage:
    """The image of a shape under h -> A h + b."""

    A: Floats
    b: Floats
    shape: Shape

    @classmethod
    def point(cls, at: Floats) -> AffineImage:
        """A single point."""
        return cls(np.eye(len(at)), np.zeros(len(at)), Ball(exact(at), Fraction(0)))

    @cached_property
    def center(self) -> Exact:
        made = exact(self.b)
        for i, row in enumerate(self.A):
            some = np.flatnonzero(row)
            made[i] += exact(row[some]) @ self.shape.center[some] if len(some) else 0
        return made


@dataclass(frozen=True, eq=False)
class Box:
    """All u with |u - center| <= radii, coordinate by coordinate."""

    center: Exact
    radii: Exact

    @cached_property
    def floats(self) -> tuple[Floats, Floats]:
        """(the center, how far the shape reaches along every coordinate)."""
        return self.center.astype(float), self.radii.astype(float)

    def below(self, G: Floats, levels: Exact, *, strict: bool = False) -> Bools:
        """k: whether g . u <= level (< level if strict) for every point of the shape."""
        center, radii = self.floats

        def precisely(i: int) -> bool:
            some = np.flatnonzero(G[i])
            g = exact(G[i, some])
            room = levels[i] - g @ self.center[some] - abs(g) @ self.radii[some]
            return bool(room > 0 if strict else room >= 0)

        size = np.abs(G) @ (np.abs(center) + radii)
        return _decided(levels.astype(float) - G @ center - np.abs(G) @ radii, size, levels, precisely)

    def contains(self, u: Exact) -> bool:
        room = (self.floats[1] - np.abs(u.astype(float) - self.floats[0])).min()
        return bool(room > 0) if abs(room) > SLACK else bool(np.all(abs(u - self.center) <= self.radii))

    def extreme_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest."""
        return self.center + np.sign(g) * self.radii

    def contains_image(self, image: AffineImage, eta: Fraction, norm: Norm) -> bool:
        """Whether the image, perturbed by at most eta in each coordinate, lies in the box."""
        if not self.contains(image.center):
            return False
        drive = exact(image.b)
        return all(  # rows of A are directions without rounding
            image.shape.below(side * image.A, side * (self.center - drive) + self.radii - eta).all() for side in (1, -1)
        )

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points of the shape, half of them corners."""
        inside = generator.uniform(-1, 1, (count, len(self.center)))
        inside[::2] = np.sign(inside[::2])
        return self.floats[0] + inside * self.floats[1]


@dataclass(frozen=True, eq=False)
class Ball:
    """All u with ||u - center|| <= radius in a norm."""

    center: Exact
    radius: Fraction
    norm: Norm = "2"

    @cached_property
    def floats(self) -> tuple[Floats, Floats]:
        """(the center, how far the shape reaches along every coordinate)."""
        return self.center.astype(float), np.full(len(self.center), float(self.radius))

    def below(self, G: Floats, levels: Exact, *, strict: bool = False) -> Bools:
        """k: whether g . u <= level (< level if strict) for every point of the shape."""

        def precisely(i: int) -> bool:
            some = np.flatnonzero(G[i])
            g = exact(G[i, some])
            room = levels[i] - g @ self.center[some]
            if self.norm == "2":  # room >= radius ||g||, without the root
                reach = self.radius**2 * (g @ g)
                return bool(room > 0 and room**2 > reach if strict else room >= 0 and room**2 >= reach)
            reach = self.radius * (abs(g).sum() if self.norm == "inf" else abs(g).max())
            return bool(room > reach if strict else room >= reach)

        reach = float(self.radius) * np.linalg.norm(G, {"inf": 1, "2": 2, "1": np.inf}[self.norm], axis=1)
        center = self.floats[0]
        size = np.abs(G) @ np.abs(center) + reach
        return _decided(levels.astype(float) - G @ center - reach, size, levels, precisely)

    def contains(self, u: Exact) -> bool:
        far = np.linalg.norm(u.astype(float) - self.floats[0], {"inf": np.inf, "2": 2, "1": 1}[self.norm])
        room = float(self.radius) - float(far)
        return room > 0 if abs(room) > SLACK else within(u - self.center, self.radius, self.norm)

    def extreme_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest; in the Euclidean norm a rational one, nearly so."""
        return self.center + extreme_perturbation(g, self.radius, self.norm)

    def contains_image(self, image: AffineImage, eta: Fraction, norm: Norm) -> bool:
        """Whether the image, perturbed by at most eta, lies in the ball; only for points, in the norm of the ball."""
        if not isinstance(image.shape, Ball) or norm != self.norm or image.shape.radius != 0:
            raise InvalidInput(
                f"a ball of norm {self.norm!r} can be compared with points perturbed in its own norm only; got a "
                f"{type(image.shape).__name__} perturbed in norm {norm!r}: use boxes as cells."
            )
        return within(image.center - self.center, self.radius - eta, norm)

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points of the shape, half of them on its surface."""
        drawn = unit_vectors(generator, count, len(self.center), self.norm)
        drawn[1::2] *= generator.uniform(0, 1, (len(drawn[1::2]), 1))
        return self.floats[0] + float(self.radius) * drawn


def _decided(room: Floats, size: Floats, levels: Exact, precisely: Callable[[int], bool]) -> Bools:
    """Whether room is positive: by its sign where rounding cannot change it, else by `precisely`."""
    answers: Bools = room > 0
    for i in np.flatnonzero(np.abs(room) <= SLACK * (1 + size + np.abs(levels.astype(float)))):
        answers[i] = precisely(int(i))
    return answers

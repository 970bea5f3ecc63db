"""Boxes and balls, the shapes that cells are made of, and what is true of all their points at once.

    d  numbers of a hidden state     G  directions (k d)

"g . u <= level for all points u of a shape" is a comparison of rational numbers (of their squares in the Euclidean
norm), so it has an exact answer: float64 decides where rounding could not matter, and fractions decide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detent.automata.running import Bools
from detent.errors import InvalidInput, unknown

Norm = Literal["inf", "2", "1"]
NORMS: tuple[Norm, ...] = ("inf", "2", "1")
Exact = NDArray[Any]
"""An array of fractions."""
Floats = NDArray[np.float64]
SLACK = 1e-9
"""Relative; float64 errs by less than d 2^-52 in sums of d products, so this is ample up to a million numbers."""


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

    def far_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest."""
        return self.center + np.sign(g) * self.radii

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

    def far_point(self, g: Exact) -> Exact:
        """A point at which g . u is largest; in the Euclidean norm a rational one, nearly so."""
        return self.center + push(g, self.radius, self.norm)

    def sample(self, generator: np.random.Generator, count: int) -> Floats:
        """Points of the shape, half of them on its surface."""
        drawn = sphere(generator, count, len(self.center), self.norm)
        drawn[1::2] *= generator.uniform(0, 1, (len(drawn[1::2]), 1))
        return self.floats[0] + float(self.radius) * drawn


@dataclass(frozen=True, eq=False)
class Moved:
    """The image of a shape under h -> A h + b."""

    A: Floats
    b: Floats
    shape: Box | Ball

    @cached_property
    def center(self) -> Exact:
        made = exact(self.b)
        for i, row in enumerate(self.A):
            some = np.flatnonzero(row)
            made[i] += exact(row[some]) @ self.shape.center[some] if len(some) else 0
        return made

    def inside(self, box: Box, eta: Fraction) -> bool:
        """Whether the image, pushed by at most eta, lies in the box: a push reaches eta along a coordinate."""
        for side in (1, -1):  # rows of A are directions without rounding
            levels = side * (box.center - exact(self.b)) + box.radii - eta
            if not self.shape.below(side * self.A, levels).all():
                return False
        return True


Shape = Box | Ball


def _decided(room: Floats, size: Floats, levels: Exact, precisely: Any) -> Bools:
    """Whether there is room: by its sign where rounding could not have turned it, else precisely."""
    answers: Bools = room > 0
    for i in np.flatnonzero(np.abs(room) <= SLACK * (1 + size + np.abs(levels.astype(float)))):
        answers[i] = precisely(int(i))
    return answers


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


def included(shape: Shape | Moved, eta: Fraction, norm: Norm, target: Shape) -> bool:
    """Whether every point of the shape, pushed by at most eta, lies in the target. Exact in both directions."""
    if not target.contains(shape.center):
        return False
    if isinstance(target, Box):
        d = len(target.center)
        return (shape if isinstance(shape, Moved) else Moved(np.eye(d), np.zeros(d), shape)).inside(target, eta)
    if isinstance(shape, Ball) and norm == target.norm and (shape.radius == 0 or shape.norm == norm):
        return within(shape.center - target.center, target.radius - shape.radius - eta, norm)
    raise InvalidInput(
        f"boxes hold any shape, and balls hold balls and points pushed in their own norm {target.norm!r}; got a "
        f"{type(shape).__name__} pushed in norm {norm!r}: describe the cells by boxes."
    )

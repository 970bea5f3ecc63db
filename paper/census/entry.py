"""One architecture of the census: what it says of itself, and a way to draw its transition matrices.

d  numbers of a hidden state
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from paper.theory.shapes import Floats

Matrix = NDArray[Any]
BranchName = Literal["rho = 1", "rho < 1"]
REALIZES: dict[BranchName, str] = {
    "rho = 1": "no automaton at every length: R2 fails",
    "rho < 1": "at most the definite automata at every length: else R3 fails",
}
ROUNDING = 1e-7
"""Eigenvalues of a matrix that is not normal are computed to about the root of float64's precision."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A transition matrix with parameters that its architecture permits, and what they say of its spectrum."""

    matrix: Matrix
    moduli: Floats | None = None
    """d: the moduli of all eigenvalues, where the parameters tell them."""
    at_most: float = np.inf
    """No modulus is larger."""

    @property
    def radius(self) -> float:
        return float(np.abs(np.linalg.eigvals(self.matrix)).max())

    def disagreement(self) -> str | None:
        """What the eigenvalues say against the parameters; None if nothing."""
        found = np.sort(np.abs(np.linalg.eigvals(self.matrix)))
        if found[-1] > self.at_most + ROUNDING:
            return f"an eigenvalue has modulus {found[-1]:.9g}, above {self.at_most:.9g}"
        if self.moduli is not None and np.abs(found - np.sort(self.moduli)).max() > ROUNDING:
            return f"the moduli are {_short(found)}, not {_short(np.sort(self.moduli))}"
        return None


class Draw(Protocol):
    def __call__(self, generator: np.random.Generator, d: int, *, edge: bool) -> Drawn:
        """A matrix of size d (even) with random parameters; at the edge, with gates as open as they may be."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of the census."""

    name: str
    source: str
    recurrence: str
    transition: str
    spectrum: str
    branch: BranchName
    """Where the largest modulus that the parameters permit places it."""
    note: str = ""
    draw: Draw

    @property
    def realizes(self) -> str:
        return REALIZES[self.branch]

    def disagreement(self, generator: np.random.Generator, d: int = 8, draws: int = 20) -> str | None:
        """What random matrices say against the stated spectrum and branch; None if nothing."""
        usual, at_edge = ([self.draw(generator, d, edge=edge) for _ in range(draws)] for edge in (False, True))
        for drawn in (*usual, *at_edge):
            if drawn.matrix.shape != (d, d):
                return f"{self.name}: a matrix has shape {drawn.matrix.shape}, not {(d, d)}"
            against = drawn.disagreement()
            if against:
                return f"{self.name}: {against}"
        largest = max(drawn.radius for drawn in (*usual, *at_edge))
        if self.branch == "rho < 1" and largest >= 1:
            return f"{self.name}: a permitted matrix has spectral radius {largest:.9g}, so it is not on rho < 1"
        if self.branch == "rho = 1" and largest < 1 - ROUNDING:
            return f"{self.name}: no spectral radius above {largest:.9g} was attained, so it is not on rho = 1"
        return None

    def radii(self, generator: np.random.Generator, d: int = 8, draws: int = 20) -> tuple[float, float]:
        """The smallest and the largest spectral radius among random matrices, half of them at the edge."""
        found = [self.draw(generator, d, edge=edge).radius for edge in (False, True) for _ in range(draws)]
        return min(found), max(found)


def _short(values: Floats) -> str:
    return ", ".join(f"{value:.6g}" for value in values)

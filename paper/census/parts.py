"""What transition matrices are made of: gates, directions, rotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from paper.census.entry import Draw, Drawn, Matrix
from paper.theory.shapes import Floats

OPEN = 8.0
"""What comes before the sigmoid of a gate that is as open as can be."""


def sigmoid(x: ArrayLike) -> Floats:
    return 1 / (1 + np.exp(-np.asarray(x, float)))


def softplus(x: ArrayLike) -> Floats:
    return np.log1p(np.exp(np.asarray(x, float)))


def gate(generator: np.random.Generator, size: int | None, *, edge: bool) -> Floats:
    """Sigmoids of unit normal numbers; at the edge one of them nearly one."""
    before = np.atleast_1d(generator.standard_normal(size))
    if edge:
        before[0] = OPEN
    return sigmoid(before) if size is not None else sigmoid(before)[0]


def pace(generator: np.random.Generator, *, edge: bool) -> float:
    """A step size Delta; at the edge a short one."""
    return float(softplus(generator.standard_normal() - (OPEN if edge else 0)))


def direction(generator: np.random.Generator, d: int) -> Floats:
    """A unit vector."""
    drawn = generator.standard_normal(d)
    return drawn / np.linalg.norm(drawn)


def reflection(generator: np.random.Generator, d: int, beta: float) -> Matrix:
    """I - beta k k^T for a unit key k: one eigenvalue is 1 - beta, the others are one."""
    k = direction(generator, d)
    return np.eye(d) - beta * np.outer(k, k)


def reflected(d: int, beta: float, scale: float = 1.0) -> Floats:
    """Moduli of scale (I - beta k k^T)."""
    return abs(scale) * np.append(np.ones(d - 1), abs(1 - beta))


def diagonal(values: Matrix) -> Drawn:
    """A diagonal matrix tells its spectrum."""
    return Drawn(np.diag(values), np.abs(values), float(np.abs(values).max()))


def rotations(angles: Floats) -> Matrix:
    """Blocks that turn pairs of coordinates."""
    made = np.zeros((2 * len(angles), 2 * len(angles)))
    for i, angle in enumerate(angles):
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        made[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return made


def skew_exponential(generator: np.random.Generator, d: int) -> Matrix:
    """e^K for a random skew-symmetric K, through the Hermitian iK."""
    K = generator.standard_normal((d, d))
    values, vectors = np.linalg.eigh(1j * (K - K.T))
    return (vectors * np.exp(-1j * values)) @ vectors.conj().T


def gated_diagonal(generator: np.random.Generator, d: int, *, edge: bool) -> Drawn:
    """diag(sigmoid(.)), the transition of many gated recurrences."""
    return diagonal(gate(generator, d, edge=edge))


def decaying_diagonal(generator: np.random.Generator, d: int, *, edge: bool) -> Drawn:
    """diag(e^(Delta (-e^a + ib)))."""
    rates = -np.exp(generator.standard_normal(d)) + 1j * generator.uniform(-3, 3, d)
    return diagonal(np.exp(pace(generator, edge=edge) * rates))


GATED: Draw = gated_diagonal
DECAYING: Draw = decaying_diagonal

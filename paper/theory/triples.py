"""A recurrence that may realize an automaton: encoding, step, read-out, and a cell for every state.

    n  states     A  symbols     d  numbers of a hidden state     r  heads

Steps are affine, or tables on one-hot codes. Both have an `image` of a whole shape, so that conditions on cells can be
decided. Any other step is a function, and can only be sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Protocol

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.errors import InvalidInput
from paper.theory.shapes import AffineImage, Floats, Norm, Shape, check_norm, exact

Indices = tuple[int, ...]


class Step(Protocol):
    """The update of hidden states by a symbol."""

    def __call__(self, symbol: int, h: Floats) -> Floats:
        """... d -> ... d."""


class Readout(Protocol):
    """From hidden states to states of the automaton."""

    def __call__(self, h: Floats) -> Ints:
        """... d -> ..., MISSING where there is none."""

    def on(self, shape: Shape) -> int:
        """The state that is read at every point of the shape; MISSING unless there is one."""


class Affine:
    """h -> A_x h + b_x."""

    def __init__(self, A: Floats | Sequence[Floats], b: Floats | Sequence[Floats]) -> None:
        self.A, self.b = np.asarray(A, float), np.asarray(b, float)
        if self.A.ndim != 3 or self.A.shape[1] != self.A.shape[2] or self.b.shape != self.A.shape[:2]:
            raise InvalidInput(
                f"an affine recurrence has matrices (A, d, d) and vectors (A, d); got {self.A.shape} and "
                f"{self.b.shape}."
            )

    def __call__(self, symbol: int, h: Floats) -> Floats:
        return h @ self.A[symbol].T + self.b[symbol]

    def image(self, symbol: int, shape: Shape) -> list[AffineImage]:
        """The image of the shape."""
        return [AffineImage(self.A[symbol], self.b[symbol], shape)]

    def word_matrix(self, word: Sequence[int]) -> Floats:
        """A_w."""
        whole = np.eye(self.A.shape[1])
        for symbol in word:
            whole = self.A[symbol] @ whole
        return whole


class Tables:
    """One-hot codes of r heads: read the index of every head, move the indices, write one-hot codes again.

    `move(symbol, indices)` is any function on tuples of indices: independent heads, or a stack of layers.
    """

    def __init__(self, heads: Sequence[int], move: Callable[[int, Indices], Indices]) -> None:
        self.heads, self.move = tuple(heads), move

    def __call__(self, symbol: int, h: Floats) -> Floats:
        flat = h.reshape(-1, sum(self.heads))
        moved = [self.code(self.move(symbol, indices)) for indices in zip(*self.indices(flat).T.tolist(), strict=True)]
        return np.array(moved, float).reshape(h.shape)

    def indices(self, h: Floats) -> Ints:
        """... S -> ... r: the largest entry of every head, the lowest index on a tie."""
        parts = np.split(h, np.cumsum(self.heads)[:-1], axis=-1)
        return np.stack([part.argmax(-1) for part in parts], axis=-1)

    def code(self, indices: Sequence[int]) -> Floats:
        """r -> S: one one-hot vector per head."""
        return np.concatenate([np.eye(d)[k] for d, k in zip(self.heads, indices, strict=True)])

    def possible_indices(self, shape: Shape) -> list[Indices]:
        """The joint indices that are read somewhere in the shape: one, if the shape lies in one basin."""
        possible, at = [], 0
        for d in self.heads:
            unit = np.eye(sum(self.heads))[at : at + d]
            possible.append([k for k in range(d) if not _dominated(shape, unit, k)])
            at += d
        return list(product(*possible))

    def image(self, symbol: int, shape: Shape) -> list[AffineImage]:
        """The image of the shape: finitely many points."""
        reached = {self.move(symbol, indices) for indices in self.possible_indices(shape)}
        return [AffineImage.point(self.code(indices)) for indices in sorted(reached)]


def _dominated(shape: Shape, unit: Floats, k: int) -> bool:
    """Whether another index of the head exceeds k on the whole shape; a lower index wins a tie."""
    zeros = exact(np.zeros(len(unit), int))
    lower = shape.below(unit[k] - unit[:k], zeros[:k]).any()
    return bool(lower or shape.below(unit[k] - unit[k + 1 :], zeros[k + 1 :], strict=True).any())


class IndexReadout:
    """Read the index of every head and look up the state with these indices."""

    def __init__(self, tables: Tables, chi: Sequence[Indices]) -> None:
        self.tables, self.state = tables, {tuple(indices): q for q, indices in enumerate(chi)}

    def __call__(self, h: Floats) -> Ints:
        read = self.tables.indices(h)
        flat = [self.state.get(tuple(indices), MISSING) for indices in read.reshape(-1, read.shape[-1]).tolist()]
        return np.array(flat).reshape(read.shape[:-1])

    def on(self, shape: Shape) -> int:
        possible_indices = self.tables.possible_indices(shape)
        return self.state.get(possible_indices[0], MISSING) if len(possible_indices) == 1 else MISSING


@dataclass(frozen=True)
class Triple:
    """Encoding, step, read-out, and a region for every level of perturbation."""

    codes: Floats
    """n d: the code point of every state."""
    step: Step
    readout: Readout
    cells: Callable[[Fraction], list[list[Shape]]]
    """eta -> for every state, the shapes whose union is its cell."""
    norm: Norm = "inf"
    """Of perturbations."""

    def __post_init__(self) -> None:
        check_norm(self.norm)

    def run(self, word: Sequence[int], state: int) -> Floats:
        """L d: hidden states after every symbol, without perturbations."""
        h, path = self.codes[state], []
        for symbol in word:
            h = self.step(symbol, h)
            path.append(h)
        return np.array(path).reshape(len(word), self.codes.shape[1])

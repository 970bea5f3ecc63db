"""Whether the states of a recurrence can still be told apart: spread within a class over separation between classes.

    N vectors     m their width     n states     k directions that separate states

Chung, Choi and Kim (https://arxiv.org/abs/2605.07755): an affine step that keeps the states apart cannot shrink errors
in the directions that separate them; so the vectors of one state spread until the decoder confuses states, and the
ratio of spread to separation predicts when. A *class* here is a state together with the last symbol, since what a
decoder reads depends on both. `Code` holds the centroids of short words, the directions that separate states, and the
separation; `spread` measures later vectors in these directions; `readable_spread` is how much of it a decoder reads
through, found by adding noise to vectors of short words. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from exactstate.errors import InvalidInput
from paper.theory.shapes import Floats

Labels = NDArray[np.int64]
Decoder = Callable[[Floats], Labels]
"""Vectors N m -> the state that is read from each."""
DEPENDENT = 1e-6
"""A direction shorter than this share of the longest one is rounding."""
BISECTIONS = 12
LARGEST_NOISE = 16.0
"""In separations: beyond it nothing is readable."""


@dataclass(frozen=True, eq=False)
class Code:
    """Where the states are, on words so short that they are read rightly."""

    directions: Floats
    """k m: an orthonormal basis of the differences of centroids of states after the same symbol."""
    separation: float
    """Root mean square of these differences."""

    @classmethod
    def of(cls, vectors: Floats, states: Labels, symbols: Labels) -> Code:
        """From vectors with their states and last symbols."""
        centers = {key: vectors[at].mean(0) for key, at in _classes(states, symbols).items()}
        differences = [
            centers[p] - centers[q] for p, q in combinations(sorted(centers), 2) if p[1] == q[1] and p[0] != q[0]
        ]
        if not differences:
            raise InvalidInput("these words show no two states after the same symbol; there is nothing to tell apart.")
        stacked = np.stack(differences)
        _, lengths, axes = np.linalg.svd(stacked, full_matrices=False)
        separation = float(np.sqrt(np.square(stacked).sum(-1).mean()))
        return cls(axes[lengths > DEPENDENT * lengths[0]], separation)

    def spread(self, vectors: Floats, states: Labels, symbols: Labels) -> float:
        """Root mean square distance of vectors from the centroid of their class, in the directions of the code.

        Of classes with a single vector there is none; of the others it is unbiased.
        """
        inside = vectors @ self.directions.T
        total, freedom = 0.0, 0
        for at in _classes(states, symbols).values():
            own = inside[at]
            if len(own) > 1 and (own != own[0]).any():
                total += float(np.square(own - own.mean(0)).sum())
            freedom += len(own) - 1
        return float(np.sqrt(total / freedom)) if freedom else 0.0

    def noisy(self, vectors: Floats, size: float, generator: np.random.Generator) -> Floats:
        """Vectors with noise of this root mean square length in the directions of the code."""
        noise = generator.standard_normal((len(vectors), len(self.directions)))
        return vectors + size / np.sqrt(len(self.directions)) * noise @ self.directions

    def readable_spread(
        self, vectors: Floats, states: Labels, symbols: Labels, decoder: Decoder, accuracy: float,
        generator: np.random.Generator,
    ) -> float | None:  # fmt: skip
        """The spread at which the share of states that a decoder reads rightly falls to `accuracy`, by bisection.

        None if the decoder reads fewer than that without noise.
        """
        if np.mean(decoder(vectors) == states) < accuracy:
            return None
        low, high = 0.0, LARGEST_NOISE * self.separation
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            right = np.mean(decoder(self.noisy(vectors, middle, generator)) == states)
            low, high = (middle, high) if right >= accuracy else (low, middle)
        return float(np.hypot(self.spread(vectors, states, symbols), low))


def _classes(states: Labels, symbols: Labels) -> dict[tuple[int, int], Labels]:
    """By (state, symbol): which vectors."""
    order = np.lexsort((symbols, states))
    keys = np.stack([states[order], symbols[order]], axis=1)
    begins = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(1)])
    parts = np.split(order, begins[1:])
    return {(int(keys[b, 0]), int(keys[b, 1])): part for b, part in zip(begins, parts, strict=True)}

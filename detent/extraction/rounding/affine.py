"""Affine maps and sums: how far a computed one may be from the real one.

    R  rows     n  inputs     e  outputs

For y = W x + b with n inputs, in any order, with or without fused multiply-add, entry by entry,
|computed - real| <= gamma(n + 1) (|W| |x| + |b|). About half of that will do: a partial sum exceeds neither the sum of
the positive terms nor that of the negative ones, and the larger of the two is (|W| |x| + |b| + |y|) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from detent.extraction.rounding.balls import Ball, Floats, above, length, product, spectral
from detent.extraction.rounding.formats import OURS, Arithmetic, Format

Entries = tuple[Floats, Floats]
"""Midpoints, and how far a computed number may be from each."""
SQUARINGS = 9
"""Enough that the norm of a matrix of 128 rows is found to half a percent."""


@dataclass(frozen=True, eq=False)
class Affine:
    """x -> W x + b, with the norms that bounds need."""

    weight: Floats
    """e n."""
    bias: Floats
    """e."""

    def __call__(self, x: Floats) -> Floats:
        return product(x, self.weight.T) + self.bias

    @cached_property
    def absolute(self) -> Floats:
        return np.abs(self.weight)

    @cached_property
    def rows(self) -> Floats:
        """e: Euclidean norms of the rows."""
        return length(self.weight)

    @cached_property
    def norm(self) -> float:
        """The most that it stretches a difference."""
        e, n = self.weight.shape
        return float(spectral(self.weight if e <= n else self.weight.T, SQUARINGS))

    @cached_property
    def frobenius(self) -> float:
        return float(length(self.weight.reshape(-1)))

    def errors(self, x: Ball, y: Floats, arithmetic: Arithmetic, *, stores: int = 2) -> Floats:
        """R e: how far W x + b as computed, for x in the ball, may be from the real one; our own y included.

        `stores` counts roundings of the result: of the product, and of its sum with the bias.
        """
        n, off = self.weight.shape[1], self.rows * x.rad[:, None]
        reach = above(product(np.abs(x.mid), self.absolute.T) + off + np.abs(self.bias), n)
        partial = above(reach + np.abs(y) + off, n) / 2.0
        errors = of_sum(n + 1, partial, reach, arithmetic) + of_sum(n + 1, partial, reach, OURS)
        errors = errors + overflow(reach + errors, arithmetic.inner)
        for _ in range(stores):
            errors = errors + stored(np.abs(y) + np.abs(self.bias) + off + errors, arithmetic)
        return above(errors)

    def apply(self, x: Ball, arithmetic: Arithmetic, *, stores: int = 2) -> Ball:
        """The ball of what is computed."""
        y = self(x.mid)
        return Ball.around(y, self.norm * x.rad + length(self.errors(x, y, arithmetic, stores=stores)))

    def entries(self, x: Ball, arithmetic: Arithmetic, *, stores: int = 2) -> Entries:
        """R e: what is computed, entry by entry."""
        y = self(x.mid)
        return _known(y, above(self.rows * x.rad[:, None] + self.errors(x, y, arithmetic, stores=stores)))

    def wide_entries(self, x: Ball, arithmetic: Arithmetic) -> Entries:
        """The same for thousands of outputs: |W| |x| + |b| is replaced by |row of W| |x| + |b|, and so is |y|."""
        by_row, by_output = self._wide(x, arithmetic)
        return _known(self(x.mid), above(np.outer(above(x.rad + by_row), self.rows) + by_output))

    def wide_errors(self, x: Ball, arithmetic: Arithmetic) -> Floats:
        """R e: of computing alone, not of x."""
        by_row, by_output = self._wide(x, arithmetic)
        return above(np.outer(above(by_row), self.rows) + by_output)

    def _wide(self, x: Ball, arithmetic: Arithmetic) -> tuple[Floats, Floats]:
        """(R, to be multiplied by the norm of an output's weights; e, to be added)."""
        n, size = self.weight.shape[1], x.size
        factor, least = arithmetic.gamma(n + 3) + OURS.gamma(n + 3), (n + 3) * arithmetic.inner.tiny
        for _ in range(2):
            factor, least = factor + arithmetic.unit * (1.0 + factor), least + arithmetic.unit * least + arithmetic.tiny
        most = (1.0 + factor) * (float(self.rows.max()) * size + float(np.abs(self.bias).max())) + least
        lost = overflow(above(most), arithmetic.inner) + overflow(above(most), arithmetic.store)
        return factor * size + lost, factor * np.abs(self.bias) + least


def _known(y: Floats, errors: Floats) -> Entries:
    """Midpoints that overflowed know nothing."""
    if np.isfinite(y).all():
        return y, errors
    return np.where(np.isfinite(y), y, 0.0), np.where(np.isfinite(y), errors, np.inf)


def of_sum(terms: int, partial: Floats, reach: Floats, arithmetic: Arithmetic) -> Floats:
    """The error of adding up products, `reach` in absolute values, in any order; no partial sum exceeds `partial`.

    Errors of a sum add up: one for every product, of its size, and one for every addition, of the size of a partial sum
    and the errors before it. One more of each, for a bias that is added to a product that was stored.
    """
    once = arithmetic.gamma(1)
    additions = terms * once * (partial + arithmetic.gamma(terms + 1) * reach)
    return additions + 2.0 * once * reach + 2.0 * terms * arithmetic.inner.tiny


def stored(sizes: Floats, arithmetic: Arithmetic) -> Floats:
    """The error of rounding entries, of no more than these sizes, to the format they are stored in."""
    return arithmetic.unit * sizes + arithmetic.tiny + overflow(sizes, arithmetic.store)


def overflow(sizes: Floats, format: Format) -> Floats:
    """Infinite where a number of this size may not fit."""
    return np.where(sizes <= format.largest, 0.0, np.inf)


def add(x: Ball, y: Ball, arithmetic: Arithmetic) -> Ball:
    """x + y."""
    z, m = x.mid + y.mid, x.mid.shape[1]
    reach = above(length(z) + x.rad + y.rad)
    rounding = (arithmetic.gamma(1) + OURS.gamma(1)) * reach + m * arithmetic.inner.tiny
    rounding = rounding + stored(reach + rounding, arithmetic) + m * arithmetic.tiny
    return Ball.around(z, x.rad + y.rad + rounding)

"""Layer norm: f = (x - mean) / sigma with sigma^2 = variance + epsilon, then g f + b.

    R  rows     m  width

Seen as a vector with m + 1 entries (x - mean over sqrt(m), and sqrt(epsilon)), whose length is sigma, f is its
direction times sqrt(m). Directions of two vectors of lengths s and t differ by at most their distance / sqrt(s t), and
subtracting the mean shortens: f moves by at most |x - x'| / sqrt(sigma sigma'), and sigma by |x - x'| / sqrt(m).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from detent.extraction.rounding.affine import overflow, stored
from detent.extraction.rounding.balls import Ball, Floats, above, below, length
from detent.extraction.rounding.formats import OURS, Arithmetic


@dataclass(frozen=True, eq=False)
class Normalising:
    """A layer norm."""

    gain: Floats
    """m."""
    bias: Floats
    """m."""
    epsilon: float

    @cached_property
    def largest(self) -> float:
        return float(np.abs(self.gain).max())

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """Euclidean norms of gain and bias."""
        return float(length(self.gain)), float(length(self.bias))

    def apply(self, x: Ball, arithmetic: Arithmetic) -> Ball:
        m = len(self.gain)
        centred = x.mid - x.mid.mean(-1, keepdims=True)
        variance = np.square(centred).mean(-1)
        f = centred / np.sqrt(variance + self.epsilon)[:, None]
        y = f * self.gain + self.bias
        lost = OURS.assumed.variance * OURS.gamma(m + 3) * np.square(length(x.mid)) / m
        sigma = below(np.sqrt(below(variance) - np.minimum(above(lost), below(variance)) + self.epsilon))
        least = np.maximum(below(sigma - above(x.rad / np.sqrt(m))), below(np.sqrt(np.float64(self.epsilon))))
        moved = np.minimum(above(x.rad / np.sqrt(sigma * least)), above(np.float64(2.0 * np.sqrt(m))))
        error = self._error(x.size, least, above(np.full(len(x), self.largest * np.sqrt(m))), OURS)
        scaled = above(length(f * self.gain) + self.largest * moved + error)  # of g f, for x in the ball
        error = error + self._error(x.size, least, scaled, arithmetic)
        reach = above(length(y) + self.largest * moved + error)
        error = error + stored(reach, arithmetic) + m * arithmetic.tiny
        return Ball.around(y, self.largest * moved + error)

    def _error(self, size: Floats, least: Floats, scaled: Floats, arithmetic: Arithmetic) -> Floats:
        """R: the error made in computing g f + b, for x no longer than `size`, sigma at least `least`, g f no longer
        than `scaled`; whether x - mean is formed first or x / sigma and mean / sigma are."""
        m, assumed, tiny = len(self.gain), arithmetic.assumed, arithmetic.inner.tiny
        gain, bias = self.lengths
        mean = arithmetic.mean(m) * size / np.sqrt(m) + (m + 2) * tiny
        variance = assumed.variance * arithmetic.gamma(m + 3) * np.square(size) / m + (m + 4) * (1.0 + size) * tiny
        of_square = above((1.0 + arithmetic.gamma(1)) * variance / np.square(least) + arithmetic.gamma(2))
        of_root = of_square / 2.0 / np.maximum(1.0 - of_square, 0.0) ** 1.5
        of_root = np.where(of_square < 0.5, of_root * (1.0 + arithmetic.several(assumed.root)), np.inf)
        inverse = above(of_root + arithmetic.several(assumed.root))  # relative error of 1 / sigma
        terms = (1.0 + inverse) * ((self.largest + gain / np.sqrt(m)) * size + gain * mean) / least + bias
        error = inverse * scaled + (1.0 + inverse) * gain * mean / least + arithmetic.gamma(6) * terms
        under = 16.0 * m * tiny * (1.0 + self.largest) * (1.0 + size) * (1.0 + 1.0 / least)
        return above(error + under + overflow(np.square(size) + terms, arithmetic.inner))

"""Layer norm and RMS norm on intervals: what dividing by sigma does to an interval, and its rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactstate._types import Floats
from exactstate.extract.graph.arithmetic import EXACT, OURS, Arithmetic, overflow, stored
from exactstate.extract.graph.interval import Interval, Parameters
from exactstate.extract.graph.nodes import (
    Normalize,
)  # fmt: skip
from exactstate.extract.graph.upper import above, below, length


@dataclass(frozen=True, eq=False)
class NormParts:
    """A norm by groups (R groups rows): the centered input, the reciprocal of sigma, and how far both may move."""

    x: Interval
    centered: Interval
    gain: Floats
    bias: Floats
    gain_off: Floats
    """How far a machine's gain may be from that."""
    bias_off: Floats
    inverse: Floats
    """1 / sigma at the midpoint."""
    least: Floats
    """No larger than any sigma."""
    largest: Floats
    """No smaller than any 1 / sigma."""
    wobble: Floats
    """No smaller than the change of 1 / sigma."""
    ball: Floats
    stretch: Floats
    """No smaller than how much normalizing stretches a difference."""
    center: bool

    @property
    def most(self) -> Floats:
        return self.centered.size

    @classmethod
    def of(cls, parameters: Parameters, node: Normalize, x: Interval, known: Floats | None = None) -> NormParts:
        """From the input; `known` (R groups) is no larger than the norm of any centered input."""
        m, epsilon = node.size // node.groups, node.own_epsilon if node.epsilon is None else node.epsilon
        if node.epsilon is None and parameters.arithmetic.inner.unit:
            epsilon = 2.0 * parameters.arithmetic.inner.unit
        mid, rad = x.mid.reshape(-1, m), x.rad.reshape(-1, m)
        ball = np.minimum(np.repeat(x.ball, node.groups), length(rad))
        x = Interval(mid, rad, ball, np.zeros_like(mid))
        if node.centered:
            center = mid.mean(-1, keepdims=True)
            slack = OURS.gamma(m + 3) * np.abs(mid).mean(-1, keepdims=True) * 4.0
            c = Interval.of(
                mid - center,
                rad + rad.mean(-1, keepdims=True) + slack,
                np.zeros_like(mid),
                ball + length(np.broadcast_to(slack, mid.shape)),
            )
        else:
            c = x
        square = np.square(c.mid).mean(-1)
        sigma = np.sqrt(square + epsilon)
        slack = 2.0**-40 * (sigma + np.sqrt(np.square(np.abs(mid)).mean(-1)))
        low = np.sqrt(np.square(np.maximum(np.abs(c.mid) - c.rad, 0.0)).mean(-1) + epsilon)
        high = np.sqrt(np.square(c.size).mean(-1) + epsilon)
        moved = above(ball / np.sqrt(m))
        low = np.maximum(np.maximum(low, sigma - moved) - slack, below(np.sqrt(np.float64(epsilon))))
        high = np.minimum(high, sigma + moved) + slack
        inverse = 1.0 / sigma
        if known is not None:
            least = np.sqrt(np.square(np.maximum(known, 0.0)).reshape(-1) / m + epsilon) * (1.0 - 2.0**-40)
            low = np.maximum(low, least)
            inverse = 0.5 * (1.0 / low + 1.0 / np.maximum(low, high))
        wobble = above(np.maximum(np.maximum(1.0 / low - inverse, inverse - 1.0 / high), 0.0) + 2.0**-45 * inverse)
        gain = np.ones(m) if node.gain is None else parameters.array(node.gain)
        bias = np.zeros(m) if node.bias is None else parameters.array(node.bias)
        stretch = above(1.0 / np.sqrt(below(sigma - slack) * low))
        radii = [parameters.radius(part) for part in (node.gain, node.bias)]
        off = [np.zeros(m) if radius is None else radius for radius in radii]
        return cls(
            x, c, gain, bias, off[0], off[1], inverse, low, above(1.0 / low), wobble, ball, stretch, node.centered
        )

    def rounding(self, arithmetic: Arithmetic, size: Floats, most: Floats) -> Floats:
        """Of computing and storing gain * (x - mean) / sigma + bias, for entries of these sizes, ours included."""
        ours = OURS.several(64.0) * above(np.abs(self.gain) * most * self.largest[:, None] + np.abs(self.bias))
        return above(ours + self._rounding(arithmetic, size, most))

    def _rounding(self, arithmetic: Arithmetic, size: Floats, most: Floats) -> Floats:
        inexact = above(self.gain_off * most * self.largest[:, None] + self.bias_off)
        inexact = inexact if self.gain_off.any() or self.bias_off.any() else np.zeros_like(self.x.mid)
        if arithmetic is EXACT:
            return inexact
        m, assumed, tiny = self.x.mid.shape[1], arithmetic.assumed, arithmetic.inner.tiny
        least, whole = self.least[:, None], np.minimum(length(self.x.size), above(length(self.x.mid) + self.x.ball))
        mean_square = above(np.square(whole) / m)[:, None]
        mean_size = np.minimum(self.x.size.mean(-1, keepdims=True), np.sqrt(mean_square))
        mean = (arithmetic.mean(m) * mean_size + (m + 2) * tiny) if self.center else np.zeros_like(mean_size)
        variance = (
            assumed.variance * arithmetic.gamma(m + 3) * mean_square + (m + 4) * (1.0 + np.sqrt(m * mean_square)) * tiny
        )
        of_square = above((1.0 + arithmetic.gamma(1)) * variance / np.square(least) + arithmetic.gamma(2))
        of_root = of_square / 2.0 / np.maximum(1.0 - of_square, 0.0) ** 1.5
        of_root = np.where(of_square < 0.5, of_root * (1.0 + arithmetic.several(assumed.root)), np.inf)
        inverse = above(of_root + arithmetic.several(assumed.root))
        gain = np.abs(self.gain) + self.gain_off
        terms = (
            (1.0 + inverse) * gain * (size + (mean_size if self.center else 0.0) + mean) / least
            + np.abs(self.bias)
            + self.bias_off
        )
        error = (
            inexact
            + inverse * gain * most / least
            + (1.0 + inverse) * gain * mean / least
            + arithmetic.gamma(6) * terms
        )
        under = 16.0 * m * tiny * (1.0 + gain) * (1.0 + size) * (1.0 + 1.0 / least)
        error = above(error + under + overflow(m * mean_square + terms, arithmetic.inner))
        result = above(gain * most * self.largest[:, None] + np.abs(self.bias) + self.bias_off)
        for _ in range(1 if self.center else 2):  # an RMS norm may be stored before its gain is multiplied with
            error = error + stored(result + error, arithmetic)
        return above(error)

"""The SiLU and the gated MLP: D (SiLU(G x + c) * (U x + b)) + a.

    R  rows     m  width     h  hidden width

The SiLU, s(x) = x / (1 + exp(-x)), has |s'| < 1.1 and |s''| <= 1/2. Write g = G x + c and u = U x + b at a midpoint,
and e for how far x is from it. Where g and u are off by G e + p and U e + q, their product is off by

    s U e + s' u G e   and   s q + s' u p   and at most   |u| (G e + p)^2 / 4 + |s - s(g + G e + p)| |U e + q|

The first two terms are linear in e. Followed by D they are J e, and the norm of J is taken of the whole matrix, row by
row: the product of the norms of its factors would be several times larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.extraction.rounding.affine import Affine, overflow, stored
from detent.extraction.rounding.balls import Ball, Floats, above, length, narrow, product, spectral
from detent.extraction.rounding.formats import OURS, Arithmetic

STEEPEST = 1.1
SQUARINGS = 2


@dataclass(frozen=True, eq=False)
class Silu:
    """s and s' at midpoints, and how far s may move when its argument does."""

    value: Floats
    slope: Floats
    steep: Floats
    """No smaller than |slope|, and summed without cancellation: our own slope is off by a few roundings of this."""
    steepest: Floats
    """No smaller than |s'| anywhere within reach."""
    moved: Floats
    """No smaller than the change of s."""

    @classmethod
    def at(cls, mid: Floats, moved: Floats) -> Silu:
        """At midpoints, for arguments that are off by at most `moved`."""
        # exp overflows to infinity below -709, where the SiLU is 0 to within `LEAST`
        open_ = 1.0 / (1.0 + np.exp(-mid))
        shut = 1.0 / (1.0 + np.exp(mid))
        slope, steep = open_ * (1.0 + mid * shut), above(open_ * (1.0 + np.abs(mid) * shut))
        steepest = np.minimum(above(np.abs(slope) + OURS.silu * steep * 4.0 + 0.5 * moved), STEEPEST)
        return cls(mid * open_, slope, steep, steepest, above(steepest * moved))

    def errors(self, sizes: Floats, arithmetic: Arithmetic) -> Floats:
        """Of computing and storing s, for arguments of these sizes within the reach given above; our own included."""
        inner = arithmetic.inner
        reach = above(np.abs(self.value) * (1.0 + OURS.silu) + self.moved)
        # an exponential that overflows makes the result 0, and then it was no larger than the second term
        errors = (arithmetic.silu + OURS.silu) * reach + sizes / inner.largest + 2.0 * (1.0 + sizes) * inner.tiny
        return above(errors + stored(reach + errors, arithmetic) + overflow(sizes, inner))


def silu(x: Ball, off: Floats, arithmetic: Arithmetic) -> Ball:
    """s(x), where no entry of x is further than `off` from its midpoint."""
    s = Silu.at(x.mid, off)
    errors = s.errors(above(np.abs(x.mid) + off), arithmetic)
    return Ball.around(s.value, s.steepest.max(-1) * x.rad + length(errors))


@dataclass(frozen=True, eq=False)
class _Change:
    """A linear map at midpoints, and how far what is computed may be from it."""

    mid: Floats
    error: Floats
    """Of computing it, entry by entry."""
    off: Floats
    """Of that and of its input."""
    length: Floats
    """R: the Euclidean norm of all of it."""

    @classmethod
    def of(cls, affine: Affine, x: Ball, arithmetic: Arithmetic) -> _Change:
        mid = affine(x.mid)
        error = affine.errors(x, mid, arithmetic)
        return cls(mid, error, above(affine.rows * x.rad[:, None] + error), above(affine.norm * x.rad + length(error)))


def _errors(s: Silu, g: _Change, u: _Change, arithmetic: Arithmetic) -> Floats:
    """R h: how far s(g) u as computed may be from its linear change, entry by entry, second order left out."""
    of_silu = s.errors(above(np.abs(g.mid) + g.off), arithmetic)
    reach = above((np.abs(s.value) + s.moved + of_silu) * (np.abs(u.mid) + u.off))
    rounding = (arithmetic.gamma(1) + OURS.gamma(1)) * reach + arithmetic.inner.tiny
    rounding = rounding + stored(reach + rounding, arithmetic)
    linear = np.abs(s.value) * u.error + s.steep * np.abs(u.mid) * g.error
    # our own value and slope are not the real ones
    ours = OURS.silu * 4.0 * (np.abs(s.value) * u.off + s.steep * np.abs(u.mid) * g.off)
    return above(linear + ours + of_silu * (np.abs(u.mid) + u.off) + rounding)


@dataclass(frozen=True, eq=False)
class Gated:
    """A gated MLP."""

    gate: Affine
    up: Affine
    down: Affine

    def apply(self, x: Ball, arithmetic: Arithmetic, *, sharp: bool) -> Ball:
        """With `sharp`, the norm of every row's Jacobian is taken; without, the product of norms."""
        g, u = _Change.of(self.gate, x, arithmetic), _Change.of(self.up, x, arithmetic)
        s = Silu.at(g.mid, g.off)
        curved = 0.25 * (g.off * np.abs(u.mid)).max(-1) * g.length + s.moved.max(-1) * u.length
        rest = above(length(_errors(s, g, u, arithmetic)) + curved)
        through = above(
            np.abs(s.value).max(-1) * self.up.norm + (s.steep * np.abs(u.mid)).max(-1) * self.gate.norm
        )  # fmt: skip
        hidden = s.value * u.mid
        y = self.down(hidden)
        local = length(self.down.errors(Ball(hidden, above(through * x.rad + rest)), y, arithmetic))
        gain = self.down.norm * through
        if sharp and x.rad.any():
            gain = np.minimum(gain, self._gain(s, u.mid))
        return Ball.around(y, gain * x.rad + self.down.norm * rest + local)

    def _gain(self, s: Silu, u: Floats) -> Floats:
        """R: no smaller than the norm of J = D (s U + s' u G); in float32, a norm needs few digits, and its error."""
        (h, m), rows, kind = self.gate.weight.shape, len(u), narrow()
        value, slope = s.value.T.astype(kind)[:, :, None], (s.slope * u).T.astype(kind)[:, :, None]
        change = value * self.up.weight.astype(kind)[:, None, :]
        change += slope * self.gate.weight.astype(kind)[:, None, :]
        jacobian = product(self.down.weight.astype(kind), change.reshape(h, rows * m)).reshape(-1, rows, m)
        sizes = length(s.value * self.up.rows) + length(s.steep * u * self.gate.rows)
        lost = (h + 8) * float(np.finfo(kind).eps) * self.down.frobenius * sizes
        under = 1.0 + self.up.frobenius + self.gate.frobenius + sizes
        lost = lost + 2.0**-100 * h * m * (1.0 + self.down.frobenius) * under
        return above(spectral(jacobian.swapaxes(0, 1), SQUARINGS) + lost)

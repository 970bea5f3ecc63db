"""Bounds of the parts of a network: affine maps, sums, layer norms, SiLUs, and the gated MLP.

    R  rows     m  width     h  hidden width

The gated MLP is D (SiLU(G x + c) * (U x + b)) + a. The SiLU, s(x) = x / (1 + exp(-x)), has |s'| < 1.1 and |s''| <= 1/2.
Write g = G x + c and u = U x + b at a midpoint, and e for how far x is from it. Where g and u are off by G e + p and
U e + q, their product is off by

    s U e + s' u G e   and   s q + s' u p   and at most   |u| (G e + p)^2 / 4 + |s - s(g + G e + p)| |U e + q|

The first two terms are linear in e. Followed by D they are J e, and the norm of J is taken of the whole matrix, row by
row: the product of the norms of its factors would be several times larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from exactstate._types import Floats, Ints
from exactstate.extract.rounding.arithmetic import OURS, Arithmetic
from exactstate.extract.rounding.balls import LEAST, OPERATIONS, Ball, above, below, length, narrow, product, spectral
from exactstate.number_formats import Format

Entries = tuple[Floats, Floats]
"""Midpoints, and how far a computed number may be from each."""
JacobianNorm = Literal["product", "frobenius", "spectral"]
"""What bounds the norm of a Jacobian, from crude and cheap to sharp and dear."""
SQUARINGS = 9
"""Enough that the norm of a matrix of 128 rows is bounded to half a percent."""


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
        magnitude = above(product(np.abs(x.mid), self.absolute.T) + off + np.abs(self.bias), n)
        partial = above(magnitude + np.abs(y) + off, n) / 2.0
        errors = of_sum(n + 1, partial, magnitude, arithmetic) + of_sum(n + 1, partial, magnitude, OURS)
        errors = errors + overflow(magnitude + errors, arithmetic.inner)
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

    def widest_error(self, x: Ball, arithmetic: Arithmetic) -> Floats:
        """R: the largest of `wide_entries`, without computing the others."""
        by_row, by_output = self._wide(x, arithmetic)
        front = self._front
        return above(np.outer(above(x.rad + by_row), self.rows[front]) + by_output[front]).max(-1)

    @cached_property
    def _front(self) -> Ints:
        """Outputs such that no other has both a longer row and a larger bias: the largest error is one of theirs."""
        order = np.lexsort((-np.abs(self.bias), -self.rows))
        biases = np.abs(self.bias)[order]
        return order[np.append(True, biases[1:] > np.maximum.accumulate(biases)[:-1])]

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


def of_sum(terms: int, partial: Floats, magnitude: Floats, arithmetic: Arithmetic) -> Floats:
    """The error of adding up products, `magnitude` in absolute values, in any order; no partial sum exceeds `partial`.

    Errors of a sum add up: one for every product, of its size, and one for every addition, of the size of a partial sum
    and the errors before it. One more of each, for a bias that is added to a product that was stored.
    """
    once = arithmetic.gamma(1)
    additions = terms * once * (partial + arithmetic.gamma(terms + 1) * magnitude)
    return additions + 2.0 * once * magnitude + 2.0 * terms * arithmetic.inner.tiny


def stored(sizes: Floats, arithmetic: Arithmetic) -> Floats:
    """The error of rounding entries, of no more than these sizes, to the format they are stored in."""
    return arithmetic.unit * sizes + arithmetic.tiny + overflow(sizes, arithmetic.store)


def overflow(sizes: Floats, format: Format) -> Floats:
    """Infinite where a number of this size may not fit."""
    return np.where(sizes <= format.largest, 0.0, np.inf)


def add(x: Ball, y: Ball, arithmetic: Arithmetic) -> Ball:
    """x + y."""
    z, m = x.mid + y.mid, x.mid.shape[1]
    magnitude = above(length(z) + x.rad + y.rad)
    rounding = (arithmetic.gamma(1) + OURS.gamma(1)) * magnitude + m * arithmetic.inner.tiny
    rounding = rounding + stored(magnitude + rounding, arithmetic) + m * arithmetic.tiny
    return Ball.around(z, x.rad + y.rad + rounding)


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer norm: f = (x - mean) / sigma with sigma^2 = variance + epsilon, then g f + b."""

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
        least = np.maximum(below(sigma - above(x.rad / np.sqrt(m))), below(np.sqrt(np.full(1, self.epsilon))))
        moved = np.minimum(above(x.rad / np.sqrt(sigma * least)), above(np.full(1, 2.0 * np.sqrt(m))))
        error = self._error(x.size, least, above(np.full(len(x), self.largest * np.sqrt(m))), OURS)
        scaled = above(length(f * self.gain) + self.largest * moved + error)  # of g f, for x in the ball
        error = error + self._error(x.size, least, scaled, arithmetic)
        magnitude = above(length(y) + self.largest * moved + error)
        error = error + stored(magnitude, arithmetic) + m * arithmetic.tiny
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


STEEPEST = 1.1
SILU_SQUARINGS = 2


@dataclass(frozen=True, eq=False)
class Silu:
    """s and s' at midpoints, and how far s may move when its argument does."""

    value: Floats
    slope: Floats
    steep: Floats
    """No smaller than |slope|, and summed without cancellation: our own slope is off by a few roundings of this."""
    steepest: Floats
    """No smaller than |s'| anywhere in that range."""
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
        """Of computing and storing s, for arguments of these sizes in the range given above; our own included."""
        inner = arithmetic.inner
        magnitude = above(np.abs(self.value) * (1.0 + OURS.silu) + self.moved)
        # an exponential that overflows makes the result 0, and then it was no larger than the second term
        errors = (arithmetic.silu + OURS.silu) * magnitude + sizes / inner.largest + 2.0 * (1.0 + sizes) * inner.tiny
        return above(errors + stored(magnitude + errors, arithmetic) + overflow(sizes, inner))


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
    def of(cls, affine: Affine, x: Ball, arithmetic: Arithmetic, *, quick: bool) -> _Change:
        mid = affine(x.mid)
        error = affine.wide_errors(x, arithmetic) if quick else affine.errors(x, mid, arithmetic)
        return cls(mid, error, above(affine.rows * x.rad[:, None] + error), above(affine.norm * x.rad + length(error)))


def _errors(s: Silu, g: _Change, u: _Change, arithmetic: Arithmetic) -> Floats:
    """R h: how far s(g) u as computed may be from its linear change, entry by entry, second order left out."""
    of_silu = s.errors(above(np.abs(g.mid) + g.off), arithmetic)
    magnitude = above((np.abs(s.value) + s.moved + of_silu) * (np.abs(u.mid) + u.off))
    rounding = (arithmetic.gamma(1) + OURS.gamma(1)) * magnitude + arithmetic.inner.tiny
    rounding = rounding + stored(magnitude + rounding, arithmetic)
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

    def apply(self, x: Ball, arithmetic: Arithmetic, *, norm: JacobianNorm = "spectral") -> Ball:
        """`norm` is what bounds the Jacobian of every row: the product of the norms of its factors, or its own.

        With the Frobenius norm, errors of sums are bounded by lengths alone, as in `Affine.wide_errors`.
        """
        quick = norm == "frobenius"
        g, u = (_Change.of(affine, x, arithmetic, quick=quick) for affine in (self.gate, self.up))
        s = Silu.at(g.mid, g.off)
        curved = 0.25 * (g.off * np.abs(u.mid)).max(-1) * g.length + s.moved.max(-1) * u.length
        rest = above(length(_errors(s, g, u, arithmetic)) + curved)
        through = above(
            np.abs(s.value).max(-1) * self.up.norm + (s.steep * np.abs(u.mid)).max(-1) * self.gate.norm
        )  # fmt: skip
        hidden = s.value * u.mid
        y = self.down(hidden)
        inside = Ball(hidden, above(through * x.rad + rest))
        local = length(
            self.down.wide_errors(inside, arithmetic) if quick else self.down.errors(inside, y, arithmetic)
        )  # fmt: skip
        gain = self.down.norm * through
        if norm != "product" and x.rad.any():
            gain = np.minimum(gain, self._frobenius(s, u.mid) if norm == "frobenius" else self._spectral(s, u.mid))
        return Ball.around(y, gain * x.rad + self.down.norm * rest + local)

    @cached_property
    def _squares(self) -> tuple[Floats, Floats, Floats]:
        """h h: |D (s U + t G)|^2 is s A s + 2 s B t + t C t in the Frobenius norm; of D' D times U U', U G', G G'."""
        down, up, gate = self.down.weight.T, self.up.weight, self.gate.weight
        crossed = product(down, down.T)
        return crossed * product(up, up.T), crossed * product(up, gate.T), crossed * product(gate, gate.T)

    def _frobenius(self, s: Silu, u: Floats) -> Floats:
        """R: no smaller than the Frobenius norm of J = D (s U + s' u G), without forming it."""
        (h, m), (of_up, crossed, of_gate) = self.gate.weight.shape, self._squares
        value, slope = s.value, s.slope * u
        squares = np.einsum("ri,ri->r", product(value, of_up) + 2.0 * product(slope, crossed.T), value)
        squares += np.einsum("ri,ri->r", product(slope, of_gate), slope)
        columns = length(self.down.weight.T)
        terms = np.abs(value) @ (columns * self.up.rows) + (s.steep * np.abs(u)) @ (columns * self.gate.rows)
        lost = 4.0 * (h + m + OPERATIONS) * 2.0**-52 * np.square(above(terms, h)) + LEAST
        return above(np.sqrt(np.maximum(squares, 0.0) + lost))

    def _spectral(self, s: Silu, u: Floats) -> Floats:
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
        return above(spectral(jacobian.swapaxes(0, 1), SILU_SQUARINGS) + lost)

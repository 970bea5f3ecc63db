"""Drift of a perfectly trained rotation: 2 pi / 7, rounded once to a number format and then iterated in fp64.

The rotation by 2 pi / n carries Z_n under the constant word: its n code points are the corners of a regular polygon.
Rounding cosine and sine to a format leaves a rotation by a slightly wrong angle, times a radius that is not quite one.
The phase error grows by the same amount at every step, so the read-out (the nearest corner) is wrong from the first
step at which it exceeds pi / n, and the norm grows or shrinks geometrically. Nothing is learned, and only the weights
are rounded to the format.

`drift_rows` returns, for every format, one summary and then steps evenly log_spaced on a logarithmic scale:

    kind "summary"  format, order, cosine, sine (the rounded weights), angle_error (radians per step),
                    log_radius (per step), first_wrong_step, by
    kind "step"     format, step, phase_error (radians, growing through full turns), log_norm (natural), wrong, by

`by` is "iteration" if the step was reached by multiplying in fp64, and "closed form" if it lies beyond `limit`: then
the number follows from the rounded weights in exact arithmetic. So it is for fp64, which fails after some 10^16 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import atan2, ceil, cos, floor, log1p, log10, pi, sin, tan, tau

import numpy as np
from numpy.typing import NDArray

from exactstate.errors import InvalidConfig, unknown
from exactstate.records import Row

FORMATS = {
    "fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16",
    "fp8 e4m3": "float8_e4m3fn", "fp8 e5m2": "float8_e5m2",
}  # fmt: skip
"""Number formats, finest first, and what torch calls them."""
DIGITS = 60
LIMIT = 100_000_000
"""The most steps that are iterated, by default; fp32 fails well before."""
CHUNK = 1 << 20
GUARD = 8
"""Extra digits of intermediate results."""


@dataclass(frozen=True)
class RoundedRotation:
    """The rotation by 2 pi / order with its entries rounded to a format."""

    format: str
    order: int
    cosine: float
    sine: float

    @classmethod
    def to(cls, format: str, order: int = 7) -> RoundedRotation:
        """Round the exact cosine and sine of 2 pi / order."""
        if order < 3:
            raise InvalidConfig(f"a polygon of code points has at least 3 corners; got {order}.")
        cosine, sine = circle_point(1, order, DIGITS)
        return cls(format, order, round_to_format(float(cosine), format), round_to_format(float(sine), format))

    @property
    def angle_error(self) -> float:
        """Error of the angle of one step, in radians; accurate even where it is 10^-17."""
        with localcontext() as context:
            context.prec = DIGITS
            cosine, sine = circle_point(1, self.order, DIGITS)
            c, s = Decimal(self.cosine), Decimal(self.sine)
            return atan2(float(s * cosine - c * sine), float(c * cosine + s * sine))

    @property
    def log_radius(self) -> float:
        """The natural logarithm of the factor by which one step scales."""
        with localcontext() as context:
            context.prec = DIGITS
            return log1p(float(Decimal(self.cosine) ** 2 + Decimal(self.sine) ** 2 - 1)) / 2

    @property
    def first_wrong_step(self) -> int:
        """The first t with |t angle_error| > pi / order, in exact arithmetic with the rounded weights."""
        if self.angle_error == 0:
            raise InvalidConfig(
                f"{self.format} represents the angle 2 pi / {self.order} exactly: this rotation never fails."
            )
        return floor(pi / self.order / abs(self.angle_error)) + 1


def round_to_format(value: float, format: str) -> float:
    """The number of the format that is round_to_format to a value."""
    import torch

    if format not in FORMATS:
        raise unknown("number format", format, FORMATS)
    return float(torch.tensor(value, dtype=torch.float64).to(getattr(torch, FORMATS[format])).double())


def drift_rows(
    formats: Sequence[str] = tuple(FORMATS), *, order: int = 7, limit: int = LIMIT, per_decade: int = 24,
    beyond: float = 4.0,
) -> list[Row]:  # fmt: skip
    """Rows as described above, up to `beyond` times the failing step of each format."""
    rows: list[Row] = []
    for rotation in (RoundedRotation.to(format, order) for format in formats):
        predicted = rotation.first_wrong_step
        last = max(ceil(beyond * predicted), 2 * order)
        reached = last if last <= limit else predicted + 1 if predicted < limit else min(limit, CHUNK)
        wanted = log_spaced(last, per_decade)
        found, steps = iterate(rotation, reached, [t for t in wanted if t <= reached])
        first, by = (found, "iteration") if found is not None else (predicted, "closed form")
        rows.append({
            "kind": "summary", "format": rotation.format, "order": order, "cosine": rotation.cosine,
            "sine": rotation.sine, "angle_error": rotation.angle_error, "log_radius": rotation.log_radius,
            "first_wrong_step": first, "by": by,
        })  # fmt: skip
        rows += steps + [_in_closed_form(rotation, t) for t in wanted if t > reached]
    return rows


def iterate(rotation: RoundedRotation, last: int, steps: Sequence[int]) -> tuple[int | None, list[Row]]:
    """(the first step up to `last` that is decoded wrongly, if there is one; a row for each of `steps`), in fp64."""
    first: int | None = None
    rows: list[Row] = []
    for begin, h in _relative_states(rotation, last):
        wrong = np.abs(h.imag) > tan(pi / rotation.order) * h.real
        if first is None and wrong.any():
            first = begin + int(wrong.argmax())
        for step in (step for step in steps if begin <= step < begin + len(h)):
            at = h[step - begin]
            angle, predicted = float(np.angle(at)), step * rotation.angle_error
            phase_error = angle + tau * round((predicted - angle) / tau)
            rows.append(_row(rotation, step, phase_error, float(np.log(abs(at))), "iteration"))
    return first, rows


def _relative_states(rotation: RoundedRotation, last: int) -> Iterator[tuple[int, NDArray[np.complex128]]]:
    """(first step, states h_t = R h_{t-1} rotated back by t corners), in chunks."""
    chunk = CHUNK - CHUNK % rotation.order
    back = np.exp(-1j * tau * (1 + np.arange(chunk) % rotation.order) / rotation.order)
    factor, h = complex(rotation.cosine, rotation.sine), 1 + 0j
    for begin in range(1, last + 1, chunk):
        states = np.full(min(chunk, last + 1 - begin), factor)
        states[0] *= h
        np.multiply.accumulate(states, out=states)
        h = states[-1]
        yield begin, states * back[: len(states)]


def _in_closed_form(rotation: RoundedRotation, step: int) -> Row:
    return _row(rotation, step, step * rotation.angle_error, step * rotation.log_radius, "closed form")


def _row(rotation: RoundedRotation, step: int, phase_error: float, log_norm: float, by: str) -> Row:
    off = atan2(sin(phase_error), cos(phase_error))
    return {
        "kind": "step", "format": rotation.format, "step": step, "phase_error": float(phase_error),
        "log_norm": log_norm, "wrong": abs(off) > pi / rotation.order, "by": by,
    }  # fmt: skip


def log_spaced(last: int, per_decade: int) -> list[int]:
    """Steps from 1 to `last`, both included, evenly on a logarithmic scale.

    >>> log_spaced(100, per_decade=2)
    [1, 3, 10, 32, 100]
    """
    points = np.geomspace(1, last, max(2, ceil(log10(last) * per_decade) + 1))
    return sorted({1, *(round(float(t)) for t in points[1:-1]), last})


def circle_point(turns: int, order: int, digits: int = 60) -> tuple[Decimal, Decimal]:
    """Cosine and sine of 2 pi turns / order."""
    with localcontext() as context:
        context.prec = digits + GUARD
        angle = 2 * compute_pi(digits) * (turns % order) / order
        cosine = sine = Decimal(0)
        term, power = Decimal(1), 0
        while abs(term) > Decimal(10) ** -(digits + GUARD) or power < angle:
            sign = -1 if power % 4 > 1 else 1
            cosine, sine = (cosine, sine + sign * term) if power % 2 else (cosine + sign * term, sine)
            power += 1
            term *= angle / power
        last = Decimal(10) ** -digits
        return cosine.quantize(last), sine.quantize(last)


def compute_pi(digits: int = 60) -> Decimal:
    """Machin 1706: pi = 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext() as context:
        context.prec = digits + GUARD
        return 16 * _arctan_of_one_over(5, digits) - 4 * _arctan_of_one_over(239, digits)


def _arctan_of_one_over(n: int, digits: int) -> Decimal:
    total, power, k = Decimal(0), Decimal(1) / n, 0
    while power > Decimal(10) ** -(digits + GUARD):
        total += (-power if k % 2 else power) / (2 * k + 1)
        power /= n * n
        k += 1
    return total

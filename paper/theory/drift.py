"""A perfectly trained rotation still drifts: 2 pi / 7, rounded once to a number format and then iterated in fp64.

The rotation by 2 pi / n carries Z_n under the constant word: its n code points are the corners of a regular polygon.
Rounding cosine and sine to a format leaves a rotation by a slightly wrong angle, times a radius that is not quite one.
The phase error grows by the same amount at every step, so the read-out (the nearest corner) is wrong from the first
step at which it exceeds pi / n, and the norm grows or shrinks geometrically. Nothing is learned, and after the weights
nothing is rounded but by fp64 itself.

`drift_rows` returns, for every format, one summary and then steps evenly spread on a logarithmic scale:

    kind "summary"  format, order, cosine, sine (the rounded weights), angle_error (radians per step),
                    log_radius (per step), first_wrong_step, by
    kind "step"     format, step, phase_error (radians, growing through full turns), log_norm (natural), wrong, by

`by` is "iteration" when the step was reached by multiplying in fp64, and "closed form" when it lies beyond `limit`:
then the number is that of the rounded weights in exact arithmetic. fp64 is among these: its failing length, some 10^16,
is told by the bound, not by waiting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import atan2, ceil, cos, floor, log1p, log10, pi, sin, tan, tau

import numpy as np
from numpy.typing import NDArray

from detent.errors import InvalidConfig, unknown
from detent.records import Row
from paper.theory.exact import circle_point

# -- Steps at which a long run is looked at: so many for every factor of ten.


def spread(last: int, per_decade: int) -> list[int]:
    """Steps from 1 to `last`, both included, evenly on a logarithmic scale.

    >>> spread(100, per_decade=2)
    [1, 3, 10, 32, 100]
    """
    points = np.geomspace(1, last, max(2, ceil(log10(last) * per_decade) + 1))
    return sorted({1, *(round(float(t)) for t in points[1:-1]), last})


FORMATS = {
    "fp64": "float64", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16",
    "fp8 e4m3": "float8_e4m3fn", "fp8 e5m2": "float8_e5m2",
}  # fmt: skip
"""Number formats, finest first, and what torch calls them."""
DIGITS = 60
LIMIT = 100_000_000
"""Steps iterated at most, unless told otherwise: fp32 fails well before."""
CHUNK = 1 << 20


@dataclass(frozen=True)
class Rounded:
    """The rotation by 2 pi / order with its entries rounded to a format."""

    format: str
    order: int
    cosine: float
    sine: float

    @classmethod
    def to(cls, format: str, order: int = 7) -> Rounded:
        """Round the exact cosine and sine of 2 pi / order."""
        if order < 3:
            raise InvalidConfig(f"a polygon of code points has at least 3 corners; got {order}.")
        cosine, sine = circle_point(1, order, DIGITS)
        return cls(format, order, nearest(float(cosine), format), nearest(float(sine), format))

    @property
    def angle_error(self) -> float:
        """By how much one step turns too far, in radians; right to the last bits even where it is 10^-17."""
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
        """The first t with |t angle_error| > pi / order: every rounding but that of the weights is left out."""
        if self.angle_error == 0:
            raise InvalidConfig(
                f"{self.format} holds the angle 2 pi / {self.order} exactly: this rotation never fails."
            )
        return floor(pi / self.order / abs(self.angle_error)) + 1


def nearest(value: float, format: str) -> float:
    """The number of the format that is nearest to a value."""
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
    for rotation in (Rounded.to(format, order) for format in formats):
        told = rotation.first_wrong_step
        last = max(ceil(beyond * told), 2 * order)
        reached = last if last <= limit else told + 1 if told < limit else min(limit, CHUNK)
        wanted = spread(last, per_decade)
        found, steps = iterate(rotation, reached, [t for t in wanted if t <= reached])
        first, by = (found, "iteration") if found is not None else (told, "closed form")
        rows.append({
            "kind": "summary", "format": rotation.format, "order": order, "cosine": rotation.cosine,
            "sine": rotation.sine, "angle_error": rotation.angle_error, "log_radius": rotation.log_radius,
            "first_wrong_step": first, "by": by,
        })  # fmt: skip
        rows += steps + [_in_closed_form(rotation, t) for t in wanted if t > reached]
    return rows


def iterate(rotation: Rounded, last: int, steps: Sequence[int]) -> tuple[int | None, list[Row]]:
    """(the first step up to `last` that is decoded wrongly, if there is one; a row for each of `steps`), in fp64."""
    first: int | None = None
    rows: list[Row] = []
    for begin, h in _off_corner(rotation, last):
        wrong = np.abs(h.imag) > tan(pi / rotation.order) * h.real
        if first is None and wrong.any():
            first = begin + int(wrong.argmax())
        for step in (step for step in steps if begin <= step < begin + len(h)):
            at = h[step - begin]
            off, told = float(np.angle(at)), step * rotation.angle_error
            phase_error = off + tau * round((told - off) / tau)
            rows.append(_row(rotation, step, phase_error, float(np.log(abs(at))), "iteration"))
    return first, rows


def _off_corner(rotation: Rounded, last: int) -> Iterator[tuple[int, NDArray[np.complex128]]]:
    """(step of the first, states h_t = R h_{t-1} one after the other, each turned back by t corners)."""
    chunk = CHUNK - CHUNK % rotation.order
    back = np.exp(-1j * tau * (1 + np.arange(chunk) % rotation.order) / rotation.order)
    factor, h = complex(rotation.cosine, rotation.sine), 1 + 0j
    for begin in range(1, last + 1, chunk):
        states = np.full(min(chunk, last + 1 - begin), factor)
        states[0] *= h
        np.multiply.accumulate(states, out=states)
        h = states[-1]
        yield begin, states * back[: len(states)]


def _in_closed_form(rotation: Rounded, step: int) -> Row:
    return _row(rotation, step, step * rotation.angle_error, step * rotation.log_radius, "closed form")


def _row(rotation: Rounded, step: int, phase_error: float, log_norm: float, by: str) -> Row:
    off = atan2(sin(phase_error), cos(phase_error))
    return {
        "kind": "step", "format": rotation.format, "step": step, "phase_error": float(phase_error),
        "log_norm": log_norm, "wrong": abs(off) > pi / rotation.order, "by": by,
    }  # fmt: skip

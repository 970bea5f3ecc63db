"""What is assumed of a machine that computes in a number format, and the errors that follow.

A rounding to a format changes a number by at most a factor 1 + d with |d| <= unit, and by at most `tiny` when it
underflows. An error of one ulp (unit in the last place) is a relative error of at most two units.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from exactstate._types import Floats
from exactstate.errors import InvalidConfig, unknown
from exactstate.number_formats import FORMATS, Format

REAL = Format(name="real", unit=0.0, tiny=0.0, largest=float("inf"))
INSIDE = ("float32", "same")


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumptions:
    """The accuracy of a machine's operations: everything that a bound relies on. Errors are in ulps."""

    basic: float = 0.5
    """Of a sum, a difference, a product, a fused multiply-add. 0.5 is rounding to nearest; 1 allows either neighbor,
    and so covers matrix units that truncate."""
    divide: float = 2.0
    """Of a division."""
    root: float = 4.0
    """Of the reciprocal of a square root."""
    exp: float = 32.0
    """Of the exponential function; fast ones on GPUs err by 2 and as many ulps again as their argument is large."""
    variance: float = 4.0
    """The variance of m numbers is off by at most this many times gamma(m + 3) times their mean square. That is proved
    for two passes and for the mean square less the squared mean, and known for running updates."""
    inside: str = "float32"
    """What the inside of an operation is computed in, where the format has 16 bits: 'float32', as libraries do, or
    'same' for a machine that has nothing but the format."""

    def __post_init__(self) -> None:
        for name in ("basic", "divide", "root", "exp"):
            if not 0.5 <= getattr(self, name) < 1e6:
                raise InvalidConfig(f"{name} is an error of at least 0.5 ulp; got {getattr(self, name)}.")
        if not 4.0 <= self.variance < 1e6:
            raise InvalidConfig(f"variance is a factor of at least 4; got {self.variance}.")
        if self.inside not in INSIDE:
            raise unknown("inner format", self.inside, INSIDE)

    def sentences(self, format: str) -> tuple[str, ...]:
        """The assumptions as sentences, for a certificate."""
        inner = self.arithmetic(format).inner
        return (
            f"parameters are rounded to {format}, to nearest with ties to even, before anything is computed",
            f"results of operations are rounded to {format}, to nearest, or kept wider; a matrix product may be "
            "rounded once before its bias is added",
            f"matrix products, layer norms and SiLUs are computed in {inner.name} or wider from operands as they are "
            "stored, in any order, with or without fused multiply-add",
            f"tables are chosen from logits in {inner.name}",
            f"a sum or product errs by at most {self.basic:g} ulp of {inner.name}, a division by {self.divide:g}, the "
            f"reciprocal of a square root by {self.root:g}, an exponential by {self.exp:g}",
            f"the variance of m numbers errs by at most {self.variance:g} gamma(m + 3) times their mean square",
            f"numbers too small for {inner.name} err by at most {inner.tiny:.3g}",
        )

    def arithmetic(self, format: str) -> Arithmetic:
        """The arithmetic of a machine that satisfies the assumptions, in a format."""
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        store = FORMATS[format]
        widened = self.inside == "float32" and store.unit > FORMATS["float32"].unit
        return Arithmetic(store, FORMATS["float32"] if widened else store, self)


ASSUMED = {
    "float64": Assumptions(),
    "float32": Assumptions(),
    "float16": Assumptions(basic=1.0),
    "bfloat16": Assumptions(basic=1.0),
}
"""The default assumptions for every format."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Error bounds of operations that are computed in an inner format and stored in another."""

    store: Format
    inner: Format
    assumed: Assumptions = field(default_factory=Assumptions)

    def several(self, ulps: float) -> float:
        """Relative error of a chain of operations whose errors add up to so many ulps."""
        total = 2.0 * ulps * self.inner.unit
        return total / (1.0 - total) if total < 1.0 else float("inf")

    def gamma(self, n: int) -> float:
        """Relative error of n sums or products in a row."""
        return self.several(n * self.assumed.basic)

    def mean(self, n: int) -> float:
        """Error of the mean of n numbers, relative to the mean of their absolute values."""
        return self.several(n * self.assumed.basic + self.assumed.divide)

    @property
    def silu(self) -> float:
        """Relative error of x / (1 + exp(-x)), or of x times the reciprocal."""
        return self.several(self.assumed.exp + self.assumed.divide + 2 * self.assumed.basic)

    @property
    def unit(self) -> float:
        """Relative error of storing what was computed inside; nothing where that is the same format."""
        return 0.0 if self.store is self.inner else self.store.unit

    @property
    def tiny(self) -> float:
        """Absolute error of storing."""
        return 0.0 if self.store is self.inner else self.store.tiny


EXACT = Arithmetic(REAL, REAL)
"""The real numbers."""
OURS = Arithmetic(FORMATS["float64"], FORMATS["float64"], Assumptions(divide=0.5, root=2.0, exp=4.0))
"""What the bounds themselves are computed in: IEEE float64, and an exponential that is good to 4 ulps."""


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

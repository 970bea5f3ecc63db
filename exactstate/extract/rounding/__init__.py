"""Rounding errors of a model's logits, bounded for every machine that satisfies stated assumptions."""

from exactstate.extract.rounding.arithmetic import ASSUMED, Assumptions
from exactstate.extract.rounding.bounds import RoundingBounds, bounds, coarsest, rounding_errors
from exactstate.extract.rounding.tracing import BoundedArgmax, BoundedLogits, Traced

__all__ = [
    "ASSUMED", "Assumptions", "BoundedArgmax", "BoundedLogits", "RoundingBounds", "Traced", "bounds", "coarsest",
    "rounding_errors",
]  # fmt: skip

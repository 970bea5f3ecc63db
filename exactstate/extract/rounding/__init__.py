"""Rounding errors of a model's logits, bounded for every machine that satisfies stated assumptions."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.extract.rounding.arithmetic import ASSUMED as ASSUMED
    from exactstate.extract.rounding.arithmetic import Assumptions as Assumptions
    from exactstate.extract.rounding.bounds import RoundingBounds as RoundingBounds
    from exactstate.extract.rounding.bounds import bounds as bounds
    from exactstate.extract.rounding.bounds import coarsest as coarsest
    from exactstate.extract.rounding.bounds import rounding_errors as rounding_errors
    from exactstate.extract.rounding.tracing import BoundedArgmax as BoundedArgmax
    from exactstate.extract.rounding.tracing import BoundedLogits as BoundedLogits
    from exactstate.extract.rounding.tracing import Traced as Traced

__all__ = lazy(__name__)

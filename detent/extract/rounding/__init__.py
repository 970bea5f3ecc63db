"""Rounding errors of a model's logits, bounded for every machine that satisfies stated assumptions."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.extract.rounding.arithmetic import ASSUMED as ASSUMED
    from detent.extract.rounding.arithmetic import Assumptions as Assumptions
    from detent.extract.rounding.bounds import RoundingBounds as RoundingBounds
    from detent.extract.rounding.bounds import bounds as bounds
    from detent.extract.rounding.bounds import coarsest as coarsest
    from detent.extract.rounding.bounds import rounding_errors as rounding_errors
    from detent.extract.rounding.tracing import BoundedArgmax as BoundedArgmax
    from detent.extract.rounding.tracing import BoundedLogits as BoundedLogits
    from detent.extract.rounding.tracing import Traced as Traced

__all__ = lazy(__name__)

"""Rounding errors of a model's logits, bounded for every machine that keeps to stated assumptions."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.extract.rounding.bounds import RoundingBounds as RoundingBounds
    from detent.extract.rounding.bounds import bounds as bounds
    from detent.extract.rounding.bounds import coarsest as coarsest
    from detent.extract.rounding.formats import ASSUMED as ASSUMED
    from detent.extract.rounding.formats import FORMATS as FORMATS
    from detent.extract.rounding.formats import Assumptions as Assumptions
    from detent.extract.rounding.tracing import Bounded as Bounded
    from detent.extract.rounding.tracing import Decided as Decided
    from detent.extract.rounding.tracing import Traced as Traced

__all__ = lazy(__name__)

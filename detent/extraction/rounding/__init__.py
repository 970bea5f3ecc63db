"""Rounding errors of a model's logits, bounded for every machine that keeps to stated assumptions."""

from detent.extraction.rounding.formats import ASSUMED as ASSUMED
from detent.extraction.rounding.formats import FORMATS as FORMATS
from detent.extraction.rounding.formats import Assumptions as Assumptions
from detent.extraction.rounding.one_layer import RoundingBounds as RoundingBounds
from detent.extraction.rounding.one_layer import bounds as bounds
from detent.extraction.rounding.one_layer import coarsest as coarsest
from detent.extraction.rounding.tracing import Bounded as Bounded
from detent.extraction.rounding.tracing import Decided as Decided
from detent.extraction.rounding.tracing import Traced as Traced

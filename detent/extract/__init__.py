"""Extraction: reads machines out of models, and never sees a target."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.extract.adapter import Adapter as Adapter
    from detent.extract.explore import Budget as Budget
    from detent.extract.extract import digest as digest
    from detent.extract.extract import extract as extract
    from detent.extract.result import Column as Column
    from detent.extract.result import Extracted as Extracted
    from detent.extract.result import LayerTables as LayerTables
    from detent.extract.result import RoundingErrors as RoundingErrors
    from detent.extract.rounding.bounds import rounding_errors as rounding_errors

__all__ = lazy(__name__, call=True)

"""Extraction: reads machines out of models, and never sees a target."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.extract.adapter import Adapter as Adapter
    from exactstate.extract.explore import Budget as Budget
    from exactstate.extract.extract import digest as digest
    from exactstate.extract.extract import extract as extract
    from exactstate.extract.result import Column as Column
    from exactstate.extract.result import Extracted as Extracted
    from exactstate.extract.result import LayerTables as LayerTables
    from exactstate.extract.result import RoundingErrors as RoundingErrors
    from exactstate.extract.rounding import rounding_errors as rounding_errors

__all__ = lazy(__name__, {
    "adapter": ["Adapter"],
    "explore": ["Budget"],
    "extract": ["digest", "extract"],
    "result": ["Column", "Extracted", "LayerTables", "RoundingErrors"],
    "rounding": ["rounding_errors"],
}, call=True)  # fmt: skip

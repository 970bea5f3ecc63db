"""Extraction: reads machines out of models, and never sees a target."""

from detent.extraction.budget import Budget as Budget
from detent.extraction.digest import digest as digest
from detent.extraction.extracted import Extracted as Extracted
from detent.extraction.layer_read import Column as Column
from detent.extraction.layer_read import LayerRead as LayerRead
from detent.extraction.proving import RoundingErrors as RoundingErrors
from detent.extraction.proving import rounding_errors as rounding_errors
from detent.extraction.reading import extract as extract

"""Evaluation: answers into scores. Takes any callable that reads words; NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.evaluate.accuracy import Bar as Bar
    from detent.evaluate.accuracy import first_errors as first_errors
    from detent.evaluate.accuracy import question_accuracy as question_accuracy
    from detent.evaluate.accuracy import sequence_accuracy as sequence_accuracy
    from detent.evaluate.length_sweep import Sweep as Sweep
    from detent.evaluate.length_sweep import sweep_questions as sweep_questions
    from detent.evaluate.length_sweep import sweep_words as sweep_words
    from detent.evaluate.predictors import Reader as Reader

__all__ = lazy(__name__)

"""Evaluation: accuracies, length sweeps of anything that predicts a sequence, sweeps of runs."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.evaluate.accuracy import AccuracyThreshold as AccuracyThreshold
    from detent.evaluate.accuracy import answer_accuracy as answer_accuracy
    from detent.evaluate.accuracy import first_errors as first_errors
    from detent.evaluate.accuracy import sequence_accuracy as sequence_accuracy
    from detent.evaluate.length_sweep import LengthSweep as LengthSweep
    from detent.evaluate.length_sweep import sweep_questions as sweep_questions
    from detent.evaluate.length_sweep import sweep_words as sweep_words
    from detent.evaluate.predictors import NetworkPredictor as NetworkPredictor
    from detent.evaluate.predictors import SequencePredictor as SequencePredictor
    from detent.evaluate.predictors import TablePredictor as TablePredictor
    from detent.evaluate.sweep_run import sweep_run as sweep_run

__all__ = lazy(__name__)

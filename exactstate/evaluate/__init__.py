"""Evaluation: accuracies, length sweeps of anything that predicts a sequence, sweeps of runs."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.evaluate.accuracy import AccuracyThreshold as AccuracyThreshold
    from exactstate.evaluate.accuracy import answer_accuracy as answer_accuracy
    from exactstate.evaluate.accuracy import first_errors as first_errors
    from exactstate.evaluate.accuracy import sequence_accuracy as sequence_accuracy
    from exactstate.evaluate.length_sweep import LengthSweep as LengthSweep
    from exactstate.evaluate.length_sweep import sweep_questions as sweep_questions
    from exactstate.evaluate.length_sweep import sweep_words as sweep_words
    from exactstate.evaluate.predictors import NetworkPredictor as NetworkPredictor
    from exactstate.evaluate.predictors import SequencePredictor as SequencePredictor
    from exactstate.evaluate.predictors import TablePredictor as TablePredictor
    from exactstate.evaluate.sweep_run import sweep_run as sweep_run

__all__ = lazy(__name__)

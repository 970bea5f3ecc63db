"""Evaluation: accuracies, length sweeps of anything that predicts a sequence, sweeps of runs."""

from exactstate.evaluate.accuracy import AccuracyThreshold, answer_accuracy, first_errors
from exactstate.evaluate.length_sweep import LengthSweep, sweep_questions, sweep_words
from exactstate.evaluate.predictors import NetworkPredictor, SequencePredictor, TablePredictor
from exactstate.evaluate.sweep_run import sweep_run

__all__ = [
    "AccuracyThreshold", "LengthSweep", "NetworkPredictor", "SequencePredictor", "TablePredictor",
    "answer_accuracy", "first_errors", "sweep_questions", "sweep_run", "sweep_words",
]  # fmt: skip

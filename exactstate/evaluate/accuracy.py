"""Accuracies of predictions, and the threshold that defines failure.

    B  sequences     L  length

A sequence counts as correct when the prediction is correct at every position: one late error makes it wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactstate._types import Ints
from exactstate.errors import InvalidConfig, InvalidInput


def first_errors(predictions: Ints, labels: Ints) -> Ints:
    """B: the first position where the prediction is wrong; L where there is none."""
    if predictions.shape != labels.shape or predictions.ndim != 2:
        raise InvalidInput(
            f"expected one prediction per word and position, shape {labels.shape}; got {predictions.shape}."
        )
    if not labels.shape[1]:
        return np.zeros(len(labels), np.intp)
    wrong = predictions != labels
    return np.where(wrong.any(axis=1), wrong.argmax(axis=1), wrong.shape[1])


def answer_accuracy(predictions: Ints, answers: Ints) -> float:
    """The share of sequences whose question is answered correctly."""
    if predictions.shape != answers.shape or predictions.ndim != 1:
        raise InvalidInput(f"expected one answer per word, shape {answers.shape}; got {predictions.shape}.")
    return float((predictions == answers).mean())


@dataclass(frozen=True)
class AccuracyThreshold:
    """Evaluation fails when accuracy is below `share`.

    >>> AccuracyThreshold(1.0).failing_errors(512), AccuracyThreshold(0.9).failing_errors(512)
    (1, 52)
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"an accuracy threshold is above 0 and at most 1; got {self.share}.")

    def failing_errors(self, sequences: int) -> int:
        """The smallest number of wrong sequences at which accuracy is below the threshold."""
        # the decimal as written: the double next to 0.9 would count one error more or less where 10% is a whole number
        return int((1 - Fraction(str(self.share))) * sequences) + 1


NFSM_THRESHOLD, BASELINE_THRESHOLD = AccuracyThreshold(1.0), AccuracyThreshold(0.9)
"""The paper's thresholds."""

"""The bar that accuracy is held against, and how many errors it takes to fall below it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from detent._types import Ints
from detent.errors import InvalidConfig, InvalidInput

# -- The two accuracies of the paper.


def first_errors(said: Ints, wanted: Ints) -> Ints:
    """B: the first position where what was said is wrong; L where nothing is."""
    if said.shape != wanted.shape or said.ndim != 2:
        raise InvalidInput(f"one label per word and position was wanted, {wanted.shape}; got {said.shape}.")
    if not wanted.shape[1]:
        return np.zeros(len(wanted), np.intp)
    wrong = said != wanted
    return np.where(wrong.any(axis=1), wrong.argmax(axis=1), wrong.shape[1])


def sequence_accuracy(said: Ints, wanted: Ints) -> float:
    """The share of words along which every state is right."""
    return float((first_errors(said, wanted) == wanted.shape[1]).mean())


def question_accuracy(said: Ints, answers: Ints) -> float:
    """The share of words whose question is answered rightly."""
    if said.shape != answers.shape or said.ndim != 1:
        raise InvalidInput(f"one answer per word was wanted, {answers.shape}; got {said.shape}.")
    return float((said == answers).mean())


@dataclass(frozen=True)
class Bar:
    """Accuracy fails when it falls below `share`.

    >>> Bar(1.0).errors(512), Bar(0.9).errors(512), Bar(0.9).errors(10)
    (1, 52, 2)
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"a share of words that must be right is above 0 and at most 1; got {self.share}.")

    def errors(self, words: int) -> int:
        """The least number of wrong words at which the accuracy is below the bar."""
        # as people write it: the double next to 0.9 would ask for one error more or less where 10% is a whole number
        return int((1 - Fraction(str(self.share))) * words) + 1


EXACT, BASELINE = Bar(1.0), Bar(0.9)
"""The paper's bars for the NFSM and for the baselines."""

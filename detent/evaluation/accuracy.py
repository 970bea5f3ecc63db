"""The two accuracies of the paper.

    B  words     L  their length

A word counts as right when every state said along it is right; a question when its answer is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detent.errors import InvalidInput

Ints = NDArray[np.integer]


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

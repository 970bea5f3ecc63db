"""Accuracies against a loop over words and positions."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.evaluate import AccuracyThreshold, answer_accuracy, first_errors


def test_first_errors_are_those_of_a_loop() -> None:
    generator = np.random.default_rng(0)
    predictions, labels = generator.integers(3, size=(40, 7)), generator.integers(3, size=(40, 7))
    predictions[:11] = labels[:11]
    predictions[11, 6] = 1 - labels[11, 6]
    first = [next((t for t in range(7) if a[t] != b[t]), 7) for a, b in zip(predictions, labels, strict=True)]
    assert first_errors(predictions, labels).tolist() == first


def test_answer_accuracy() -> None:
    assert answer_accuracy(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0])) == 0.75


@pytest.mark.parametrize("predictions", [np.zeros((4, 3), int), np.zeros(4, int)])
def test_first_errors_and_answer_accuracy_reject_shapes_that_do_not_match(predictions: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match=r"expected one prediction per word and position, shape \(4, 2\); got \(4"):
        first_errors(predictions, np.zeros((4, 2), int))
    with pytest.raises(InvalidInput, match="expected one answer per word"):
        answer_accuracy(predictions, np.zeros(5, int))


@pytest.mark.parametrize("words", [1, 7, 10, 64, 128, 512, 1000])
@pytest.mark.parametrize("share", [1.0, 0.99, 0.9, 0.5])
def test_accuracy_threshold_counts_failing_errors_as_division_does(share: float, words: int) -> None:
    """In whole hundredths, so that no rounding decides."""
    percent = round(share * 100)
    expected = next(wrong for wrong in range(words + 1) if 100 * (words - wrong) < percent * words)
    assert AccuracyThreshold(share).failing_errors(words) == expected


def test_accuracy_threshold_rejects_a_share_that_nothing_is_below() -> None:
    with pytest.raises(InvalidConfig, match=r"above 0 and at most 1; got 0\.0"):
        AccuracyThreshold(0.0)

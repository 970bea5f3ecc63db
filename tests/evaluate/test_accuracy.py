"""The two accuracies, against a loop over words and positions."""

from __future__ import annotations

import numpy as np
import pytest

from detent.errors import InvalidConfig, InvalidInput
from detent.evaluate import Bar, first_errors, question_accuracy, sequence_accuracy


def test_accuracy_is_the_share_of_words_without_an_error() -> None:
    generator = np.random.default_rng(0)
    said, wanted = generator.integers(3, size=(40, 7)), generator.integers(3, size=(40, 7))
    said[:11] = wanted[:11]
    said[11, 6] = 1 - wanted[11, 6]
    first = [next((t for t in range(7) if a[t] != b[t]), 7) for a, b in zip(said, wanted, strict=True)]
    assert first_errors(said, wanted).tolist() == first
    assert sequence_accuracy(said, wanted) == sum(at == 7 for at in first) / 40


def test_one_late_error_makes_a_word_wrong() -> None:
    wanted = np.zeros((4, 1000), np.uint8)
    said = wanted.copy()
    said[2, 999] = 1
    assert sequence_accuracy(said, wanted) == 0.75


def test_words_of_length_zero_are_right() -> None:
    assert sequence_accuracy(np.zeros((3, 0), int), np.zeros((3, 0), int)) == 1.0


def test_answers() -> None:
    assert question_accuracy(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0])) == 0.75


@pytest.mark.parametrize("said", [np.zeros((4, 3), int), np.zeros(4, int)])
def test_shapes_that_do_not_fit_are_refused(said: np.ndarray) -> None:
    with pytest.raises(InvalidInput, match=r"one label per word and position was wanted, \(4, 2\); got \(4"):
        first_errors(said, np.zeros((4, 2), int))
    with pytest.raises(InvalidInput, match="one answer per word was wanted"):
        question_accuracy(said, np.zeros(5, int))


@pytest.mark.parametrize("words", [1, 7, 10, 64, 128, 512, 1000])
@pytest.mark.parametrize("share", [1.0, 0.99, 0.9, 0.5])
def test_the_bar_counts_errors_as_division_does(share: float, words: int) -> None:
    """In whole hundredths, so that no rounding decides."""
    percent = round(share * 100)
    wanted = next(wrong for wrong in range(words + 1) if 100 * (words - wrong) < percent * words)
    assert Bar(share).errors(words) == wanted


def test_a_bar_that_nothing_can_fall_below_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"above 0 and at most 1; got 0\.0"):
        Bar(0.0)

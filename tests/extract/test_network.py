"""The arg max with its margin: the lowest index on a tie, a margin that is never too large."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from detent.errors import InvalidInput
from detent.extract.network import ArgmaxMargins


def test_argmax_margins_of_random_logits() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(50, 7))
    found = ArgmaxMargins.of(logits.copy(), "they")
    for row, best, second, margin in zip(logits, found.best, found.runner_up, found.margins, strict=True):
        order = sorted(range(7), key=lambda j: -row[j])
        assert [best, second] == order[:2]
        exact = Fraction(row[order[0]]) - Fraction(row[order[1]])
        assert Fraction(margin) <= exact
        assert margin == pytest.approx(float(exact), rel=1e-14)


def test_argmax_margins_of_a_tie() -> None:
    found = ArgmaxMargins.of(np.array([[1.0, 5.0, 5.0], [2.0, 2.0, 2.0]]), "they")
    assert found.best.tolist() == [1, 0]
    assert found.runner_up.tolist() == [2, 1]
    assert found.margins.tolist() == [0.0, 0.0]


def test_argmax_margins_of_one_entry_are_infinite() -> None:
    found = ArgmaxMargins.of(np.array([[3.0]], np.float32), "they")
    assert found.best.tolist() == [0]
    assert found.margins.tolist() == [np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_argmax_margins_refuse_what_is_not_finite(bad: float) -> None:
    with pytest.raises(
        InvalidInput, match="the logits of layer 3 are not all finite; such weights describe no machine"
    ):
        ArgmaxMargins.of(np.array([[0.0, bad]]), "the logits of layer 3")

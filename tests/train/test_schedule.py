"""Learning-rate schedules at their ends, in the middle, and beyond."""

from __future__ import annotations

import pytest

from exactstate.train.schedule import cosine, inverse


def test_cosine_falls_from_the_first_value_to_the_last() -> None:
    assert cosine(1.0, 0.1, 0, 100) == 1.0
    assert cosine(1.0, 0.1, 50, 100) == pytest.approx(0.55)
    assert cosine(1.0, 0.1, 100, 100) == pytest.approx(0.1)
    assert cosine(1.0, 0.1, 1000, 100) == pytest.approx(0.1)


def test_inverse_is_constant_then_falls_to_its_floor() -> None:
    assert [inverse(2.0, step) for step in (0, 50, 99)] == [2.0, 2.0, 2.0]
    assert inverse(2.0, 199) == 1.0
    assert inverse(2.0, 10**6) == pytest.approx(0.2)

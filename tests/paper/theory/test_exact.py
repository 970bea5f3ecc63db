"""Pi, cosines and sines, against mpmath."""

from __future__ import annotations

from decimal import Decimal

import mpmath
import pytest

from paper.theory.exact import circle_point, pi


def test_pi_to_a_hundred_digits() -> None:
    with mpmath.workdps(120):
        assert abs(Decimal(mpmath.nstr(mpmath.pi, 110)) - pi(100)) < Decimal(10) ** -100


@pytest.mark.parametrize(("turns", "order"), [(1, 7), (3, 5), (6, 7), (11, 7), (1, 360)])
def test_points_of_the_circle(turns: int, order: int) -> None:
    with mpmath.workdps(90):
        angle = 2 * mpmath.pi * turns / order
        for told, wanted in zip(circle_point(turns, order, 60), (mpmath.cos(angle), mpmath.sin(angle)), strict=True):
            assert abs(told - Decimal(mpmath.nstr(wanted, 80))) <= Decimal(10) ** -60


def test_what_is_exact_is_exact() -> None:
    assert circle_point(1, 4) == (0, 1)
    assert circle_point(2, 4) == (-1, 0)
    assert circle_point(0, 3) == (1, 0)

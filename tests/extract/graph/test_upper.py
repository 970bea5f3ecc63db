"""Upper bounds are above the exact value, in fractions; norms above the singular values, in fifty digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from exactstate.extract.graph.interval import Interval
from exactstate.extract.graph.upper import above, below, length, spectral


def exact(values):
    return sum((Fraction(float(value)) for value in values), Fraction(0))


def test_above_is_above_and_plain_float64_is_not():
    draw = np.random.default_rng(0)
    short = 0
    for n in (1, 3, 100, 5000):
        values = draw.random(n) ** 8
        total = values.sum()
        short += Fraction(float(total)) < exact(values)
        assert Fraction(float(above(total, n))) >= exact(values)
        assert Fraction(float(below(np.float64(values[0] / 3)))) <= Fraction(float(values[0])) / 3
    assert short


def test_above_is_infinite_where_nothing_is_known():
    assert above(np.array([np.nan, np.inf, 0.0])).tolist()[:2] == [np.inf, np.inf]
    unknown = np.zeros((2, 2))
    lost = Interval.of(np.array([[1.0, np.inf], [1.0, 2.0]]), unknown, unknown, np.array([0.5, 0.5]))
    assert np.isfinite(lost.mid).all()
    assert np.isinf(lost.ball).tolist() == [True, False]
    assert np.isinf(lost.rad).tolist() == [[False, True], [False, False]]


def test_length_is_an_upper_bound():
    rows = np.random.default_rng(1).normal(size=(4, 7)) * np.array([[1e-160], [1e-9], [1.0], [1e150]])
    for row, found in zip(rows, length(rows), strict=True):
        assert Fraction(float(found)) ** 2 >= exact(0 * row) + sum(Fraction(float(value)) ** 2 for value in row)
    assert length(rows)[2] <= np.linalg.norm(rows[2]) * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (8, 8)])
@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e9])
def test_spectral_is_above_the_largest_singular_value(dtype, shape, scale):
    matrix = (np.random.default_rng(2).normal(size=shape) * scale).astype(dtype)
    largest = max(mpmath.svd_r(mpmath.matrix(matrix.astype(float).tolist()), compute_uv=False))
    for squarings in (0, 1, 2, 9):
        assert mpmath.mpf(float(spectral(matrix, squarings))) >= largest
    assert spectral(matrix, 9) <= float(largest) * 1.01
    assert spectral(matrix, 2) <= float(largest) * shape[0] ** 0.125 * 1.01


def test_spectral_of_stacks_and_extreme_matrices():
    stack = np.random.default_rng(3).normal(size=(4, 6, 5)).astype(np.float32)
    alone = [float(spectral(matrix, 3)) for matrix in stack]
    np.testing.assert_allclose(spectral(stack, 3), alone, rtol=1e-5)
    assert 0 <= spectral(np.zeros((3, 3)), 4) < 1e-20
    with np.errstate(all="ignore"):
        assert spectral(np.full((2, 2), 1e30, np.float32), 2) >= 2e30
        assert np.isinf(spectral(np.full((2, 2), np.inf), 2))
        assert np.isinf(spectral(np.array([[np.nan]]), 2))

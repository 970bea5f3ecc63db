"""Linear maps: sums in every order, of exact points and of points of a ball, stay within the bound."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from detent.extract.rounding import ASSUMED
from detent.extract.rounding.balls import Ball
from detent.extract.rounding.formats import EXACT
from detent.extract.rounding.layers import Affine, add
from tests.extract.rounding.machines import ORDERS, STORE, Machine

FORMATS = ("float32", "float16", "bfloat16")


def stored(format, array):
    return STORE[format](array.astype(np.float32)).astype(float)


def exactly(affine, x):
    """In fractions."""
    return [
        [sum(Fraction(w) * Fraction(v) for w, v in zip(row, point, strict=True)) + Fraction(b)
         for row, b in zip(affine.weight.tolist(), affine.bias.tolist(), strict=True)]
        for point in x.tolist()
    ]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 37])
def test_no_order_of_summation_leaves_the_bound(format, order, n):
    draw = np.random.default_rng(n)
    affine = Affine(stored(format, draw.normal(size=(4, n))), stored(format, draw.normal(size=4)))
    x = stored(format, draw.normal(size=(3, n)) * 10.0 ** draw.integers(-3, 4, (3, n)))
    y, errors = affine.entries(Ball.points(x), ASSUMED[format].arithmetic(format))
    wide = affine.wide_entries(Ball.points(x), ASSUMED[format].arithmetic(format))
    assert np.array_equal(wide[0], y)
    real = exactly(affine, x)
    for apart in (False, True):
        machine = Machine(format, order, "two passes", draw, bias_apart=apart)
        computed = machine.affine(affine.weight, affine.bias, x)
        for i, j in np.ndindex(y.shape):
            off = abs(Fraction(float(computed[i, j])) - real[i][j])
            assert off + abs(Fraction(float(y[i, j])) - real[i][j]) <= min(errors[i, j], wide[1][i, j])


def test_sums_that_are_rounded_up_every_time_use_the_bound_up():
    """1 and a little more than half of what fits behind it, again and again."""
    for n in (50, 3000):
        x = np.array([[1.0, *[2.0**-24 * (1 + 2.0**-12)] * n]])
        affine = Affine(np.ones((1, n + 1)), np.zeros(1))
        y, errors = affine.entries(Ball.points(x), ASSUMED["float32"].arithmetic("float32"))
        computed = Machine("float32", "forwards", "two passes", np.random.default_rng(0)).affine(
            np.ones((1, n + 1)), [0], x
        )
        off = float(np.abs(computed - y)[0, 0])
        assert 0.9 * errors[0, 0] < off <= errors[0, 0]


def test_our_own_rounding_is_within_the_bound_of_exact_arithmetic():
    draw = np.random.default_rng(4)
    affine, x = Affine(draw.normal(size=(5, 64)), draw.normal(size=5)), draw.normal(size=(6, 64))
    y, errors = affine.entries(Ball.points(x), EXACT)
    off = [
        [abs(Fraction(float(y[i, j])) - value) for j, value in enumerate(row)]
        for i, row in enumerate(exactly(affine, x))
    ]
    assert any(value > 0 for row in off for value in row)
    assert all(value <= errors[i, j] for i, row in enumerate(off) for j, value in enumerate(row))
    assert errors.max() < 1e-12


def test_points_of_a_ball_are_mapped_into_the_ball():
    draw = np.random.default_rng(5)
    affine = Affine(draw.normal(size=(9, 6)), draw.normal(size=9))
    x = Ball(draw.normal(size=(2, 6)), np.array([0.5, 3.0]))
    y = affine.apply(x, EXACT)
    off = affine.entries(x, EXACT)[1]
    stretched = np.linalg.svd(affine.weight)[2][0]
    for direction in (stretched, *draw.normal(size=(200, 6))):
        moved = affine(x.mid + x.rad[:, None] * direction / np.linalg.norm(direction)) - y.mid
        assert (np.linalg.norm(moved, axis=1) <= y.rad).all()
        assert (np.abs(moved) <= off).all()
    assert (np.linalg.norm(affine(x.mid + x.rad[:, None] * stretched) - y.mid, axis=1) >= 0.99 * y.rad).all()


def test_overflow_is_infinite():
    affine = Affine(np.full((1, 4), 100.0), np.zeros(1))
    arithmetic = ASSUMED["float16"].arithmetic("float16")
    with np.errstate(all="ignore"):
        assert np.isfinite(affine.entries(Ball.points(np.full((1, 4), 100.0)), arithmetic)[1]).all()
        for entries in (affine.entries, affine.wide_entries):
            assert np.isinf(entries(Ball.points(np.full((1, 4), 200.0)), arithmetic)[1]).all()
        assert np.isinf(affine.entries(Ball(np.zeros((1, 4)), np.array([np.inf])), EXACT)[1]).all()
        huge = Affine(np.full((1, 4), 1e308), np.zeros(1)).entries(Ball.points(np.full((1, 4), 10.0)), EXACT)
    assert huge[0].tolist() == [[0.0]]
    assert np.isinf(huge[1]).all()


@pytest.mark.parametrize("format", FORMATS)
def test_sums_of_two(format):
    draw = np.random.default_rng(6)
    x, y = (stored(format, draw.normal(size=(5, 11))) for _ in range(2))
    computed = Machine(format, "forwards", "two passes", draw).add(x.astype(np.float32), y.astype(np.float32))
    found = add(Ball.points(x), Ball.points(y), ASSUMED[format].arithmetic(format))
    off = np.linalg.norm(computed.astype(float) - (x + y), axis=1)
    assert (off > 0).any()
    assert (off <= found.rad).all()

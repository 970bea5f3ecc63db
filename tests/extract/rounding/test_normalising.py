"""Layer norms: points of a ball, machines that normalise in their own ways, rows with hardly any variance."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from detent.extract.rounding import ASSUMED, Assumptions
from detent.extract.rounding.balls import Ball
from detent.extract.rounding.formats import EXACT
from detent.extract.rounding.layers import Normalising
from tests.extract.rounding.machines import MOMENTS, ORDERS, STORE, Machine

FORMATS = ("float32", "float16", "bfloat16")


def norm_of(m, draw, format="float32"):
    gain, bias = (STORE[format](draw.normal(size=m).astype(np.float32)).astype(float) for _ in range(2))
    return Normalising(gain, bias, 1e-5)


def really(norm, row):
    x = [mpmath.mpf(float(value)) for value in row]
    mean = mpmath.fsum(x) / len(x)
    sigma = mpmath.sqrt(mpmath.fsum((value - mean) ** 2 for value in x) / len(x) + mpmath.mpf(norm.epsilon))
    return np.array([float((v - mean) / sigma * g + b) for v, g, b in zip(x, norm.gain, norm.bias, strict=True)])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("moments", MOMENTS)
def test_no_way_to_normalise_leaves_the_bound(format, moments):
    draw = np.random.default_rng(0)
    norm = norm_of(19, draw, format)
    x = draw.normal(size=(6, 19)) * np.array([1, 0.01, 100, 1, 1, 3])[:, None] + np.array([0, 0, 0, 3, -10, 0])[:, None]
    x = STORE[format](x.astype(np.float32))
    found = norm.apply(Ball.points(x.astype(float)), ASSUMED[format].arithmetic(format))
    real = np.array([really(norm, row) for row in x])
    assert (np.linalg.norm(found.mid - real, axis=1) < 1e-12).all()
    for order in ORDERS:
        machine = Machine(format, order, moments, draw)
        computed = machine.norm(norm.gain.astype(np.float32), norm.bias.astype(np.float32), 1e-5, x)
        assert (np.linalg.norm(computed - found.mid, axis=1) <= found.rad).all()
    dtype = getattr(torch, format)
    parts = (torch.from_numpy(part).to(dtype) for part in (x, norm.gain, norm.bias))
    rows, gain, bias = parts
    by_torch = torch.nn.functional.layer_norm(rows, (19,), gain, bias, 1e-5).double().numpy()
    assert (np.linalg.norm(by_torch - found.mid, axis=1) <= found.rad).all()


@pytest.mark.parametrize(
    ("weak", "moments", "mean", "variance"),
    [("root", "two passes", 0.0, 4.0), ("root", "running", 0.0, 4.0), ("divide", "two passes", 10.0, 16.0)],
)
def test_functions_that_err_a_lot_are_allowed_for(weak, moments, mean, variance):
    draw = np.random.default_rng(7)
    norm = Normalising(np.ones(19), np.zeros(19), 1e-5)
    x = (draw.normal(size=(6, 19)) + mean).astype(np.float32)
    found = norm.apply(
        Ball.points(x.astype(float)), Assumptions(**{weak: 1e4}, variance=variance).arithmetic("float32")
    )  # fmt: skip
    shares = []
    for _ in range(20):
        machine = Machine("float32", "random", moments, draw, **{weak: 9e3})
        computed = machine.norm(norm.gain.astype(np.float32), norm.bias.astype(np.float32), 1e-5, x)
        shares.append(np.linalg.norm(computed - found.mid, axis=1) / found.rad)
    assert 0.2 < np.max(shares) <= 1


def test_points_of_a_ball_are_mapped_into_the_ball():
    draw = np.random.default_rng(1)
    norm = norm_of(7, draw)
    for rad in (1e-6, 0.1, 1.0, 30.0):
        x = Ball(draw.normal(size=(3, 7)), np.full(3, rad))
        found, moved = norm.apply(x, EXACT), []
        for direction in draw.normal(size=(500, 3, 7)):
            point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
            moved.append(np.linalg.norm([really(norm, row) for row in point] - found.mid, axis=1))
        assert (np.max(moved, axis=0) <= found.rad).all()
        assert (np.max(moved, axis=0) >= found.rad / 12).all()


def test_rows_without_variance_know_little_but_say_so():
    norm = Normalising(np.ones(8), np.zeros(8), 1e-5)
    flat = Ball.points(np.full((1, 8), 1000.0))
    with np.errstate(all="ignore"):
        in_single = norm.apply(flat, ASSUMED["float32"].arithmetic("float32"))
        assert np.isinf(in_single.rad).all()
        assert np.isfinite(norm.apply(flat, EXACT).rad).all()
        assert np.isinf(norm.apply(Ball(flat.mid, np.array([np.inf])), EXACT).rad).all()
        assert np.isinf(Normalising(np.ones(8), np.zeros(8), 0.0).apply(flat, EXACT).rad).all()
    small = norm.apply(Ball.points(1e-4 * np.arange(8.0)[None]), ASSUMED["float32"].arithmetic("float32"))
    assert (small.rad < 1e-4).all()


def test_squares_that_overflow_are_lost():
    norm = Normalising(np.ones(4), np.zeros(4), 1e-5)
    same = Assumptions(inside="same").arithmetic("float16")
    with np.errstate(all="ignore"):
        assert np.isinf(norm.apply(Ball.points(np.array([[300.0, -300.0, 1.0, 2.0]])), same).rad).all()
    assert np.isfinite(norm.apply(Ball.points(np.array([[30.0, -30.0, 1.0, 2.0]])), same).rad).all()

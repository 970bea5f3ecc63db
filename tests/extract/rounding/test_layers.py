"""Bounds of affine maps, sums, layer norms and gated MLPs: no machine leaves them."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch

from exactstate.extract.rounding import ASSUMED, Assumptions
from exactstate.extract.rounding.arithmetic import EXACT
from exactstate.extract.rounding.balls import Ball
from exactstate.extract.rounding.layers import STEEPEST, Affine, Gated, Norm, Silu, add, silu
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.rounding.machines import MOMENTS, ORDERS, STORE, Machine


def stored(format, array):
    return STORE[format](array.astype(np.float32)).astype(float)


def exactly(affine, x):
    """In fractions."""
    return [
        [sum(Fraction(w) * Fraction(v) for w, v in zip(row, point, strict=True)) + Fraction(b)
         for row, b in zip(affine.weight.tolist(), affine.bias.tolist(), strict=True)]
        for point in x.tolist()
    ]  # fmt: skip


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 37])
def test_affine_entries_cover_every_order_of_summation(format, order, n):
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


def test_affine_entries_are_tight_for_sums_that_always_round_up():
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


def test_affine_entries_cover_float64_rounding():
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


def test_affine_maps_points_of_a_ball_into_the_ball():
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


def test_affine_overflow_is_infinite():
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


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_add_covers_every_machine(format):
    draw = np.random.default_rng(6)
    x, y = (stored(format, draw.normal(size=(5, 11))) for _ in range(2))
    computed = Machine(format, "forwards", "two passes", draw).add(x.astype(np.float32), y.astype(np.float32))
    found = add(Ball.points(x), Ball.points(y), ASSUMED[format].arithmetic(format))
    off = np.linalg.norm(computed.astype(float) - (x + y), axis=1)
    assert (off > 0).any()
    assert (off <= found.rad).all()


def norm_of(m, draw, format="float32"):
    gain, bias = (STORE[format](draw.normal(size=m).astype(np.float32)).astype(float) for _ in range(2))
    return Norm(gain, bias, 1e-5)


def real_norm(norm, row):
    x = [mpmath.mpf(float(value)) for value in row]
    mean = mpmath.fsum(x) / len(x)
    sigma = mpmath.sqrt(mpmath.fsum((value - mean) ** 2 for value in x) / len(x) + mpmath.mpf(norm.epsilon))
    return np.array([float((v - mean) / sigma * g + b) for v, g, b in zip(x, norm.gain, norm.bias, strict=True)])


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("moments", MOMENTS)
def test_norm_covers_every_way_to_normalize(format, moments):
    draw = np.random.default_rng(0)
    norm = norm_of(19, draw, format)
    x = draw.normal(size=(6, 19)) * np.array([1, 0.01, 100, 1, 1, 3])[:, None] + np.array([0, 0, 0, 3, -10, 0])[:, None]
    x = STORE[format](x.astype(np.float32))
    found = norm.apply(Ball.points(x.astype(float)), ASSUMED[format].arithmetic(format))
    real = np.array([real_norm(norm, row) for row in x])
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
def test_norm_allows_for_inaccurate_functions(weak, moments, mean, variance):
    draw = np.random.default_rng(7)
    norm = Norm(np.ones(19), np.zeros(19), 1e-5)
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


def test_norm_maps_points_of_a_ball_into_the_ball():
    draw = np.random.default_rng(1)
    norm = norm_of(7, draw)
    for rad in (1e-6, 0.1, 1.0, 30.0):
        x = Ball(draw.normal(size=(3, 7)), np.full(3, rad))
        found, moved = norm.apply(x, EXACT), []
        for direction in draw.normal(size=(500, 3, 7)):
            point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
            moved.append(np.linalg.norm([real_norm(norm, row) for row in point] - found.mid, axis=1))
        assert (np.max(moved, axis=0) <= found.rad).all()
        assert (np.max(moved, axis=0) >= found.rad / 12).all()


def test_norm_of_rows_without_variance_is_wide():
    norm = Norm(np.ones(8), np.zeros(8), 1e-5)
    flat = Ball.points(np.full((1, 8), 1000.0))
    with np.errstate(all="ignore"):
        in_single = norm.apply(flat, ASSUMED["float32"].arithmetic("float32"))
        assert np.isinf(in_single.rad).all()
        assert np.isfinite(norm.apply(flat, EXACT).rad).all()
        assert np.isinf(norm.apply(Ball(flat.mid, np.array([np.inf])), EXACT).rad).all()
        assert np.isinf(Norm(np.ones(8), np.zeros(8), 0.0).apply(flat, EXACT).rad).all()
    small = norm.apply(Ball.points(1e-4 * np.arange(8.0)[None]), ASSUMED["float32"].arithmetic("float32"))
    assert (small.rad < 1e-4).all()


def test_norm_with_overflowing_squares_is_infinite():
    norm = Norm(np.ones(4), np.zeros(4), 1e-5)
    same = Assumptions(inside="same").arithmetic("float16")
    with np.errstate(all="ignore"):
        assert np.isinf(norm.apply(Ball.points(np.array([[300.0, -300.0, 1.0, 2.0]])), same).rad).all()
    assert np.isfinite(norm.apply(Ball.points(np.array([[30.0, -30.0, 1.0, 2.0]])), same).rad).all()


def gated_of(draw, m=6, h=11, format="float32"):
    def affine(e, n):
        weight, bias = draw.normal(size=(e, n)) / n**0.5, 0.3 * draw.normal(size=e)
        return Affine(*(STORE[format](part.astype(np.float32)).astype(float) for part in (weight, bias)))

    return Gated(affine(h, m), affine(h, m), affine(m, h))


def real_gated(gated, x):
    g, u = gated.gate(x), gated.up(x)
    return gated.down(g / (1 + np.exp(-g)) * u)


def test_silu_derivative_bounds():
    def s(x):
        return x / (1 + mpmath.exp(-x))

    grid = [mpmath.mpf(i) / 8 for i in range(-240, 241)]
    assert max(abs(mpmath.diff(s, x, 2)) for x in grid) <= mpmath.mpf(1) / 2 + mpmath.mpf(10) ** -20
    assert max(abs(mpmath.diff(s, x)) for x in grid) < STEEPEST
    found = Silu.at(np.array([float(x) for x in grid]), np.zeros(len(grid)))
    for x, slope, steep in zip(grid, found.slope, found.steep, strict=True):
        assert abs(mpmath.diff(s, x) - slope) < 1e-15 * (1 + steep)
        assert abs(slope) <= steep


@np.errstate(over="ignore")
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_silu_errors_cover_every_machine(format):
    x = np.concatenate([np.linspace(-30, 30, 500), [-1e4, -100.0, -88.5, 0.0, 1e-30, 100.0]])
    x = STORE[format](x.astype(np.float32))
    real = np.array([float(mpmath.mpf(float(v)) / (1 + mpmath.exp(-mpmath.mpf(float(v))))) for v in x])
    found = Silu.at(x.astype(float), np.zeros(len(x)))
    errors = found.errors(np.abs(x).astype(float), ASSUMED[format].arithmetic(format))
    for seed in range(20):
        computed = Machine(format, "forwards", "two passes", np.random.default_rng(seed)).silu(x)
        assert (np.abs(computed - real) <= errors).all()
    ball = silu(Ball.points(x[None].astype(float)), np.zeros((1, len(x))), ASSUMED[format].arithmetic(format))
    assert np.linalg.norm(computed - real) <= ball.rad


@pytest.mark.parametrize("rad", [1e-5, 0.01, 0.5, 4.0])
def test_gated_maps_points_of_a_ball_into_the_ball(rad):
    draw = np.random.default_rng(2)
    gated = gated_of(draw)
    x = Ball(draw.normal(size=(4, 6)), np.full(4, rad))
    sharp, frobenius, crude = (gated.apply(x, EXACT, norm=norm) for norm in ("spectral", "frobenius", "product"))
    assert (sharp.rad <= frobenius.rad).all()
    assert (frobenius.rad <= crude.rad * (1 + 1e-9)).all()
    moved = []
    for direction in draw.normal(size=(2000, 4, 6)):
        point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved.append(np.linalg.norm(real_gated(gated, point) - sharp.mid, axis=1))
    assert (np.max(moved, axis=0) <= sharp.rad).all()
    if rad < 1e-3:  # where first order is all there is, the norm of the Jacobian is nearly reached
        assert (np.max(moved, axis=0) >= sharp.rad / 1.4).all()


def test_gated_counts_curvature():
    """At 0 the SiLU is x / 2 + x^2 / 4 and then less."""
    one = np.ones((1, 1))
    gated = Gated(Affine(one, np.zeros(1)), Affine(0 * one, np.ones(1)), Affine(one, np.zeros(1)))
    for rad in (0.1, 1.0):
        found = gated.apply(Ball(np.zeros((1, 1)), np.array([rad])), EXACT, norm="spectral")
        assert rad / (1 + np.exp(-rad)) <= found.rad[0] < 1.03 * (rad / 2 + rad**2 / 4)


def test_silu_with_overflowing_exponentials():
    x = np.linspace(-20, -11, 40).astype(np.float16).astype(np.float32)
    arithmetic = Assumptions(inside="same").arithmetic("float16")
    errors = Silu.at(x.astype(float), np.zeros(len(x))).errors(np.abs(x).astype(float), arithmetic)
    machine = Machine("float16", "forwards", "two passes", np.random.default_rng(0), same=True)
    with np.errstate(over="ignore"):
        computed = machine.silu(x)
    assert (computed == 0).any()
    assert (np.abs(computed - x / (1 + np.exp(-x.astype(float)))) <= errors).all()


def test_silu_change_within_a_ball():
    draw = np.random.default_rng(3)
    x = Ball(3 * draw.normal(size=(5, 6)), np.full(5, 0.7))
    found = silu(x, np.full((5, 6), 0.7), EXACT)
    for direction in draw.normal(size=(500, 5, 6)):
        point = x.mid + 0.7 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        assert (np.linalg.norm(point / (1 + np.exp(-point)) - found.mid, axis=1) <= found.rad).all()


def test_gated_frobenius_norm_of_the_jacobian():
    """By differences: the bound is the Frobenius norm of the matrix of derivatives, and hardly more."""
    draw = np.random.default_rng(7)
    gated = gated_of(draw)
    point = draw.normal(size=(3, 6))
    g, u = gated.gate(point), gated.up(point)
    bound = gated._frobenius(Silu.at(g, np.zeros_like(g)), u)
    step = 1e-6
    jacobian = [
        (real_gated(gated, point + step * axis) - real_gated(gated, point - step * axis)) / (2 * step)
        for axis in np.eye(6)
    ]
    np.testing.assert_allclose(bound, np.sqrt(np.square(jacobian).sum((0, 2))), rtol=1e-6)


def test_widest_error_is_the_largest_of_all_outputs():
    draw = np.random.default_rng(8)
    affine = Affine(draw.normal(size=(300, 6)) * draw.exponential(size=(300, 1)), 5 * draw.normal(size=300))
    x = Ball(draw.normal(size=(9, 6)), draw.exponential(size=9) * 1e-4)
    arithmetic = ASSUMED["float32"].arithmetic("float32")
    assert 1 < len(affine._front) < 100
    assert np.array_equal(affine.widest_error(x, arithmetic), affine.wide_entries(x, arithmetic)[1].max(-1))


@pytest.mark.parametrize("norm", ["spectral", "frobenius"])
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_gated_covers_every_machine(format, norm):
    draw = np.random.default_rng(4)
    gated = gated_of(draw, format=format)
    x = STORE[format](draw.normal(size=(5, 6)).astype(np.float32))
    found = gated.apply(Ball.points(x.astype(float)), ASSUMED[format].arithmetic(format), norm=norm)
    for order in ORDERS:
        machine = Machine(format, order, "two passes", draw, bias_apart=order == "random")
        gate, up = (machine.affine(part.weight, part.bias, x) for part in (gated.gate, gated.up))
        hidden = machine.multiply(machine.silu(gate), up)
        computed = machine.affine(gated.down.weight, gated.down.bias, hidden)
        assert (np.linalg.norm(computed - found.mid, axis=1) <= found.rad).all()

"""Rules of the graph, one operation at a time: no machine leaves the interval, and no point of a ball the ball behind.

Machines differ in order of summation, way to normalize and error of functions; sums are compared in fractions, norms
and functions in fifty digits.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch

from exactstate.extract.graph.arithmetic import ASSUMED, EXACT, Assumptions
from exactstate.extract.graph.functions import FUNCTIONS
from exactstate.extract.graph.gated import _frobenius, parts_of
from exactstate.extract.graph.interval import Interval
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.graph.nodes import Add, Conv, Function, Graph, Multiply, Node, Normalize, Stream
from exactstate.extract.graph.steps import Steps
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.graph.machines import MOMENTS, ORDERS, STORE, Machine

ARITHMETIC = {format: ASSUMED[format].arithmetic(format) for format in NETWORK_FORMATS}


def bounds_of(node, streams, arithmetic, *, quick=False):
    steps = Steps(np.arange(len(streams[0].mid))[:, None], ())
    return IntervalBounds(Graph(layers=(), output=node), arithmetic, steps, streams=streams, quick=quick)


def bounded(node, streams, arithmetic, *, quick=False):
    return bounds_of(node, streams, arithmetic, quick=quick).at(node)


def ball(mid, rad):
    wide = np.broadcast_to(np.asarray(rad, float).reshape(-1, 1), mid.shape)
    return Interval(mid, wide, wide[:, 0], wide)


def stream(size, layer=0):
    return Stream(size=size, layer=layer)


def stored(format, array):
    return STORE[format](np.asarray(array, np.float32)).astype(float)


def affine(draw, e, n, format="float32", scale=1.0):
    return stored(format, scale * draw.normal(size=(e, n))), stored(format, scale * draw.normal(size=e))


def mapped(weight, bias, x):
    tap = ((0, torch.from_numpy(weight)),)
    return Conv(size=len(weight), args=(x,), taps=tap, bias=torch.from_numpy(bias))


def exactly(weight, bias, x):
    """In fractions."""
    return [
        [sum(Fraction(w) * Fraction(v) for w, v in zip(row, point, strict=True)) + Fraction(b)
         for row, b in zip(weight.tolist(), bias.tolist(), strict=True)]
        for point in x.tolist()
    ]  # fmt: skip


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 37])
def test_linear_map_covers_every_order_of_summation(format, order, n):
    draw = np.random.default_rng(n)
    weight, bias = affine(draw, 4, n, format)
    x = stored(format, draw.normal(size=(3, n)) * 10.0 ** draw.integers(-3, 4, (3, n)))
    node = mapped(weight, bias, stream(n))
    found, quick = (bounded(node, [Interval.points(x)], ARITHMETIC[format], quick=quick) for quick in (False, True))
    real = exactly(weight, bias, x)
    for apart in (False, True):
        machine = Machine(format, order, "two passes", draw, bias_apart=apart)
        computed = machine.affine(weight, bias, x)
        for i, j in np.ndindex(found.mid.shape):
            off = abs(Fraction(float(computed[i, j])) - real[i][j])
            assert off + abs(Fraction(float(found.mid[i, j])) - real[i][j]) <= min(found.rad[i, j], quick.rad[i, j])


def test_linear_map_is_tight_for_sums_that_always_round_up():
    """1 and a little more than half of what fits behind it, again and again."""
    for n in (50, 3000):
        x = np.array([[1.0, *[2.0**-24 * (1 + 2.0**-12)] * n]])
        found = bounded(mapped(np.ones((1, n + 1)), np.zeros(1), stream(n + 1)), [Interval.points(x)],
                        ARITHMETIC["float32"])  # fmt: skip
        machine = Machine("float32", "forwards", "two passes", np.random.default_rng(0))
        off = float(np.abs(machine.affine(np.ones((1, n + 1)), [0], x) - found.mid)[0, 0])
        assert 0.9 * found.rad[0, 0] < off <= found.rad[0, 0]


def test_linear_map_covers_float64_rounding():
    draw = np.random.default_rng(4)
    weight, bias, x = draw.normal(size=(5, 64)), draw.normal(size=5), draw.normal(size=(6, 64))
    found = bounded(mapped(weight, bias, stream(64)), [Interval.points(x)], EXACT)
    off = [
        [abs(Fraction(float(found.mid[i, j])) - value) for j, value in enumerate(row)]
        for i, row in enumerate(exactly(weight, bias, x))
    ]
    assert any(value > 0 for row in off for value in row)
    assert all(value <= found.rad[i, j] for i, row in enumerate(off) for j, value in enumerate(row))
    assert found.rad.max() < 1e-12


@pytest.mark.parametrize("quick", [False, True])
def test_linear_map_of_a_ball(quick):
    draw = np.random.default_rng(5)
    weight, bias = affine(draw, 9, 6)
    x = ball(draw.normal(size=(2, 6)), [0.5, 3.0])
    y = bounded(mapped(weight, bias, stream(6)), [x], EXACT, quick=quick)
    stretched = np.linalg.svd(weight)[2][0]
    for direction in (stretched, *draw.normal(size=(200, 6))):
        moved = (x.mid + x.ball[:, None] * direction / np.linalg.norm(direction)) @ weight.T + bias - y.mid
        assert (np.linalg.norm(moved, axis=1) <= y.ball).all()
        assert (np.abs(moved) <= y.rad).all()
    reached = np.linalg.norm((x.mid + x.ball[:, None] * stretched) @ weight.T + bias - y.mid, axis=1)
    assert (reached >= 0.98 * y.ball).all()


def test_overflow_is_infinite():
    node = mapped(np.full((1, 4), 100.0), np.zeros(1), stream(4))
    for quick in (False, True):
        fits, large = (bounded(node, [Interval.points(np.full((1, 4), value))], ARITHMETIC["float16"], quick=quick)
                       for value in (100.0, 200.0))  # fmt: skip
        assert np.isfinite(fits.rad).all()
        assert np.isinf(large.rad).all()
    assert np.isinf(bounded(node, [ball(np.zeros((1, 4)), [np.inf])], EXACT).rad).all()
    huge = mapped(np.full((1, 4), 1e308), np.zeros(1), stream(4))
    with np.errstate(all="ignore"):
        found = bounded(huge, [Interval.points(np.full((1, 4), 10.0))], EXACT)
    assert found.mid.tolist() == [[0.0]]
    assert np.isinf(found.rad).all()


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize(("kind", "method"), [(Add, "add"), (Multiply, "multiply")])
def test_sums_and_products_cover_every_machine(format, kind, method):
    draw = np.random.default_rng(6)
    x, y = (stored(format, draw.normal(size=(5, 11))) for _ in range(2))
    machine = Machine(format, "forwards", "two passes", draw)
    computed = getattr(machine, method)(x.astype(np.float32), y.astype(np.float32)).astype(float)
    node = kind(size=11, args=(stream(11), stream(11, 1)))
    found = bounded(node, [Interval.points(x), Interval.points(y)], ARITHMETIC[format])
    off = np.abs(computed - (x + y if kind is Add else x * y))
    assert (off > 0).any()
    assert (off <= found.rad).all()
    assert (np.linalg.norm(off, axis=1) <= found.ball).all()


@pytest.mark.parametrize("kind", [Add, Multiply])
def test_sums_and_products_of_balls(kind):
    draw = np.random.default_rng(9)
    x, y = (ball(draw.normal(size=(3, 5)), np.full(3, rad)) for rad in (0.3, 0.7))
    found = bounded(kind(size=5, args=(stream(5), stream(5, 1))), [x, y], ARITHMETIC["bfloat16"])
    for one, other in draw.normal(size=(500, 2, 3, 5)):
        a, b = (part.mid + part.ball[:, None] * way / np.linalg.norm(way, axis=1, keepdims=True)
                for part, way in ((x, one), (y, other)))  # fmt: skip
        moved = (a + b if kind is Add else a * b) - found.mid
        assert (np.abs(moved) <= found.rad).all()
        assert (np.linalg.norm(moved, axis=1) <= found.ball).all()


def normalize(gain, bias, epsilon=1e-5, centered=True):
    parts = (torch.from_numpy(np.asarray(part, float)) for part in (gain, bias))
    m = len(gain)
    return Normalize(size=m, args=(stream(m),), **dict(zip(("gain", "bias"), parts, strict=True)), epsilon=epsilon,
                     own_epsilon=epsilon, centered=centered)  # fmt: skip


def real_norm(gain, bias, row, epsilon=1e-5):
    x = [mpmath.mpf(float(value)) for value in row]
    mean = mpmath.fsum(x) / len(x)
    sigma = mpmath.sqrt(mpmath.fsum((value - mean) ** 2 for value in x) / len(x) + mpmath.mpf(epsilon))
    return np.array([float((v - mean) / sigma * g + b) for v, g, b in zip(x, gain, bias, strict=True)])


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("moments", MOMENTS)
def test_norm_covers_every_way_to_normalize(format, moments):
    draw = np.random.default_rng(0)
    gain, bias = affine(draw, 1, 19, format)[0][0], stored(format, draw.normal(size=19))
    x = draw.normal(size=(6, 19)) * np.array([1, 0.01, 100, 1, 1, 3])[:, None] + np.array([0, 0, 0, 3, -10, 0])[:, None]
    x = STORE[format](x.astype(np.float32))
    found = bounded(normalize(gain, bias), [Interval.points(x.astype(float))], ARITHMETIC[format])
    real = np.array([real_norm(gain, bias, row) for row in x])
    assert (np.linalg.norm(found.mid - real, axis=1) < 1e-12).all()
    for order in ORDERS:
        machine = Machine(format, order, moments, draw)
        computed = machine.norm(gain.astype(np.float32), bias.astype(np.float32), 1e-5, x)
        assert (np.abs(computed - found.mid) <= found.rad).all()
        assert (np.linalg.norm(computed - found.mid, axis=1) <= found.ball).all()
    rows, weight, shift = (torch.from_numpy(part).to(getattr(torch, format)) for part in (x, gain, bias))
    by_torch = torch.nn.functional.layer_norm(rows, (19,), weight, shift, 1e-5).double().numpy()
    assert (np.abs(by_torch - found.mid) <= found.rad).all()


@pytest.mark.parametrize(
    ("weak", "moments", "mean", "variance"),
    [("root", "two passes", 0.0, 4.0), ("root", "running", 0.0, 4.0), ("divide", "two passes", 10.0, 16.0)],
)
def test_norm_allows_for_inaccurate_functions(weak, moments, mean, variance):
    draw = np.random.default_rng(7)
    x = (draw.normal(size=(6, 19)) + mean).astype(np.float32)
    weaker = Assumptions(**{weak: 1e4}, variance=variance).arithmetic("float32")
    found = bounded(normalize(np.ones(19), np.zeros(19)), [Interval.points(x.astype(float))], weaker)
    shares = []
    for _ in range(20):
        machine = Machine("float32", "random", moments, draw, **{weak: 9e3})
        computed = machine.norm(np.ones(19, np.float32), np.zeros(19, np.float32), 1e-5, x)
        shares.append(np.abs(computed - found.mid) / found.rad)
    assert 0.2 < np.max(shares) <= 1


def test_norm_of_a_ball():
    draw = np.random.default_rng(1)
    gain, bias = draw.normal(size=(2, 7))
    for rad in (1e-6, 0.1, 1.0, 30.0):
        x = ball(draw.normal(size=(3, 7)), np.full(3, rad))
        found, moved = bounded(normalize(gain, bias), [x], EXACT), []
        for direction in draw.normal(size=(500, 3, 7)):
            point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
            moved.append(np.linalg.norm([real_norm(gain, bias, row) for row in point] - found.mid, axis=1))
        assert (np.max(moved, axis=0) <= found.ball).all()
        if rad < 1:
            assert (np.max(moved, axis=0) >= found.ball / 12).all()


def test_norm_of_rows_without_variance_is_wide():
    flat, node = Interval.points(np.full((1, 8), 1000.0)), normalize(np.ones(8), np.zeros(8))
    assert np.isinf(bounded(node, [flat], ARITHMETIC["float32"]).rad).all()
    assert np.isfinite(bounded(node, [flat], EXACT).rad).all()
    assert np.isinf(bounded(normalize(np.ones(8), np.zeros(8), 0.0), [flat], EXACT).rad).all()
    small = bounded(node, [Interval.points(1e-4 * np.arange(8.0)[None])], ARITHMETIC["float32"])
    assert (small.rad < 1e-4).all()


def test_norm_with_overflowing_squares_is_infinite():
    same, node = Assumptions(inside="same").arithmetic("float16"), normalize(np.ones(4), np.zeros(4))
    large, fits = (bounded(node, [Interval.points(row)], same)
                   for row in (np.array([[300.0, -300.0, 1.0, 2.0]]), np.array([[30.0, -30.0, 1.0, 2.0]])))  # fmt: skip
    assert np.isinf(large.rad).all()
    assert np.isfinite(fits.rad).all()


@np.errstate(over="ignore")
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_silu_covers_every_machine(format):
    x = np.concatenate([np.linspace(-30, 30, 500), [-1e4, -100.0, -88.5, 0.0, 1e-30, 100.0]])
    x = STORE[format](x.astype(np.float32))
    real = np.array([float(mpmath.mpf(float(v)) / (1 + mpmath.exp(-mpmath.mpf(float(v))))) for v in x])
    node = Function(size=len(x), args=(stream(len(x)),), function="silu")
    found = bounded(node, [Interval.points(x[None].astype(float))], ARITHMETIC[format])
    for seed in range(20):
        computed = Machine(format, "forwards", "two passes", np.random.default_rng(seed)).silu(x)
        assert (np.abs(computed - real) <= found.rad[0]).all()


def test_silu_with_overflowing_exponentials():
    x = np.linspace(-20, -11, 40).astype(np.float16).astype(np.float32)
    node = Function(size=len(x), args=(stream(len(x)),), function="silu")
    found = bounded(node, [Interval.points(x[None].astype(float))], Assumptions(inside="same").arithmetic("float16"))
    machine = Machine("float16", "forwards", "two passes", np.random.default_rng(0), same=True)
    with np.errstate(over="ignore"):
        computed = machine.silu(x)
    assert (computed == 0).any()
    assert (np.abs(computed - x / (1 + np.exp(-x.astype(float)))) <= found.rad[0]).all()


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("rad", [1e-3, 0.1, 0.7])
def test_functions_of_a_ball(name, rad):
    draw = np.random.default_rng(3)
    x = ball(3 * draw.normal(size=(5, 6)), np.full(5, rad))
    found = bounded(Function(size=6, args=(stream(6),), function=name), [x], EXACT)
    for direction in draw.normal(size=(500, 5, 6)):
        point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved = FUNCTIONS[name].value(point) - found.mid
        assert (np.abs(moved) <= found.rad).all()
        assert (np.linalg.norm(moved, axis=1) <= found.ball).all()


class Gated:
    """A gated MLP as a graph, and as it is computed."""

    def __init__(self, draw, m=6, h=11, format="float32", function="silu"):
        sizes = [(h, m), (h, m), (m, h)]
        self.maps = [
            (stored(format, draw.normal(size=(e, n)) / n**0.5), stored(format, 0.3 * draw.normal(size=e)))
            for e, n in sizes
        ]
        self.function, x = function, stream(m)
        gate, up = (mapped(*part, x) for part in self.maps[:2])
        opened = Function(size=h, args=(gate,), function=function)
        self.node: Node = mapped(*self.maps[2], Multiply(size=h, args=(opened, up)))

    def __call__(self, x):
        gate, up, down = self.maps
        hidden = FUNCTIONS[self.function].value(x @ gate[0].T + gate[1]) * (x @ up[0].T + up[1])
        return hidden @ down[0].T + down[1]


FINE = Assumptions().arithmetic("float64")
"""Real numbers but for a little: in `EXACT` the rule is left out."""


@pytest.mark.parametrize("function", ["silu", "gelu", "sigmoid"])
@pytest.mark.parametrize("rad", [1e-5, 0.01, 0.5, 4.0])
def test_gated_mlp_of_a_ball(rad, function, monkeypatch):
    draw = np.random.default_rng(2)
    gated = Gated(draw, function=function)
    x = ball(draw.normal(size=(4, 6)), np.full(4, rad))
    sharp = bounded(gated.node, [x], FINE)
    with monkeypatch.context() as patched:
        patched.setattr("exactstate.extract.graph.intervals.parts_of", lambda node: None)
        crude = bounded(gated.node, [x], FINE)
    assert (sharp.ball <= crude.ball * (1 + 1e-9)).all()
    moved = []
    for direction in draw.normal(size=(2000, 4, 6)):
        point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved.append(np.linalg.norm(gated(point) - sharp.mid, axis=1))
    assert (np.max(moved, axis=0) <= sharp.ball).all()
    if rad < 1e-3:  # where first order is all there is, the norm of the Jacobian is nearly reached
        assert (np.max(moved, axis=0) >= sharp.ball / 1.4).all()
        assert (sharp.ball < 0.5 * crude.ball).any()


def test_gated_mlp_counts_curvature():
    """At 0 the SiLU is x / 2 + x^2 / 4 and then less."""
    gated, one = Gated(np.random.default_rng(0), 1, 1), np.ones((1, 1))
    gate, up = mapped(one, np.zeros(1), stream(1)), mapped(0 * one, np.ones(1), stream(1))
    up.args = gate.args
    opened = Function(size=1, args=(gate,), function="silu")
    gated.node = mapped(one, np.zeros(1), Multiply(size=1, args=(opened, up)))
    for rad in (0.1, 1.0):
        found = bounded(gated.node, [ball(np.zeros((1, 1)), [rad])], FINE)
        assert rad / (1 + np.exp(-rad)) <= found.ball[0] < 1.03 * (rad / 2 + rad**2 / 4)


def test_gated_mlp_frobenius_norm_of_the_jacobian():
    """By differences: the bound is the Frobenius norm of the matrix of derivatives, and hardly more."""
    draw = np.random.default_rng(7)
    gated, point, step = Gated(draw), draw.normal(size=(3, 6)), 1e-6
    bounds, parts = bounds_of(gated.node, [Interval.points(point)], FINE, quick=True), parts_of(gated.node)
    bounds.at(gated.node)
    f, u = bounds.at(parts.opened).mid, bounds.at(parts.up).mid
    slope = FUNCTIONS["silu"].slope(bounds.at(parts.gate).mid)
    bound = _frobenius(bounds, parts, f, slope * u, np.abs(slope * u))
    jacobian = [(gated(point + step * axis) - gated(point - step * axis)) / (2 * step) for axis in np.eye(6)]
    np.testing.assert_allclose(bound, np.sqrt(np.square(jacobian).sum((0, 2))), rtol=1e-6)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_gated_mlp_covers_every_machine(format, quick):
    draw = np.random.default_rng(4)
    gated = Gated(draw, format=format)
    x = STORE[format](draw.normal(size=(5, 6)).astype(np.float32))
    # a little around x, so that Jacobians are used
    found = bounded(gated.node, [ball(x.astype(float), np.full(5, 1e-9))], ARITHMETIC[format], quick=quick)
    for order in ORDERS:
        machine = Machine(format, order, "two passes", draw, bias_apart=order == "random")
        gate, up = (machine.affine(*part, x) for part in gated.maps[:2])
        computed = machine.affine(*gated.maps[2], machine.multiply(machine.silu(gate), up))
        assert (np.linalg.norm(computed - found.mid, axis=1) <= found.ball).all()
        assert (np.abs(computed - found.mid) <= found.rad).all()

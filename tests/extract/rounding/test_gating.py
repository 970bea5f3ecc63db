"""The SiLU's derivatives, and gated MLPs: points of a ball, machines, and the two ways to bound the Jacobian."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from detent.extract.rounding import ASSUMED, Assumptions
from detent.extract.rounding.balls import Ball
from detent.extract.rounding.formats import EXACT
from detent.extract.rounding.layers import STEEPEST, Affine, Gated, Silu, silu
from tests.extract.rounding.machines import ORDERS, STORE, Machine

FORMATS = ("float32", "float16", "bfloat16")


def gated_of(draw, m=6, h=11, format="float32"):
    def affine(e, n):
        weight, bias = draw.normal(size=(e, n)) / n**0.5, 0.3 * draw.normal(size=e)
        return Affine(*(STORE[format](part.astype(np.float32)).astype(float) for part in (weight, bias)))

    return Gated(affine(h, m), affine(h, m), affine(m, h))


def really(gated, x):
    g, u = gated.gate(x), gated.up(x)
    return gated.down(g / (1 + np.exp(-g)) * u)


def test_the_derivatives_of_the_silu():
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
@pytest.mark.parametrize("format", FORMATS)
def test_a_machine_computes_the_silu_within_the_bound(format):
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
def test_points_of_a_ball_are_mapped_into_the_ball(rad):
    draw = np.random.default_rng(2)
    gated = gated_of(draw)
    x = Ball(draw.normal(size=(4, 6)), np.full(4, rad))
    sharp, crude = gated.apply(x, EXACT, sharp=True), gated.apply(x, EXACT, sharp=False)
    assert (sharp.rad <= crude.rad).all()
    moved = []
    for direction in draw.normal(size=(2000, 4, 6)):
        point = x.mid + rad * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        moved.append(np.linalg.norm(really(gated, point) - sharp.mid, axis=1))
    assert (np.max(moved, axis=0) <= sharp.rad).all()
    if rad < 1e-3:  # where first order is all there is, the norm of the Jacobian is nearly reached
        assert (np.max(moved, axis=0) >= sharp.rad / 1.4).all()


def test_curvature_is_counted():
    """At 0 the SiLU is x / 2 + x^2 / 4 and then less."""
    one = np.ones((1, 1))
    gated = Gated(Affine(one, np.zeros(1)), Affine(0 * one, np.ones(1)), Affine(one, np.zeros(1)))
    for rad in (0.1, 1.0):
        found = gated.apply(Ball(np.zeros((1, 1)), np.array([rad])), EXACT, sharp=True)
        assert rad / (1 + np.exp(-rad)) <= found.rad[0] < 1.03 * (rad / 2 + rad**2 / 4)


def test_exponentials_that_overflow():
    x = np.linspace(-20, -11, 40).astype(np.float16).astype(np.float32)
    arithmetic = Assumptions(inside="same").arithmetic("float16")
    errors = Silu.at(x.astype(float), np.zeros(len(x))).errors(np.abs(x).astype(float), arithmetic)
    machine = Machine("float16", "forwards", "two passes", np.random.default_rng(0), same=True)
    with np.errstate(over="ignore"):
        computed = machine.silu(x)
    assert (computed == 0).any()
    assert (np.abs(computed - x / (1 + np.exp(-x.astype(float)))) <= errors).all()


def test_the_change_of_a_silu_within_a_ball():
    draw = np.random.default_rng(3)
    x = Ball(3 * draw.normal(size=(5, 6)), np.full(5, 0.7))
    found = silu(x, np.full((5, 6), 0.7), EXACT)
    for direction in draw.normal(size=(500, 5, 6)):
        point = x.mid + 0.7 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        assert (np.linalg.norm(point / (1 + np.exp(-point)) - found.mid, axis=1) <= found.rad).all()


@pytest.mark.parametrize("format", FORMATS)
def test_no_machine_leaves_the_bound(format):
    draw = np.random.default_rng(4)
    gated = gated_of(draw, format=format)
    x = STORE[format](draw.normal(size=(5, 6)).astype(np.float32))
    found = gated.apply(Ball.points(x.astype(float)), ASSUMED[format].arithmetic(format), sharp=True)
    for order in ORDERS:
        machine = Machine(format, order, "two passes", draw, bias_apart=order == "random")
        gate, up = (machine.affine(part.weight, part.bias, x) for part in (gated.gate, gated.up))
        hidden = machine.multiply(machine.silu(gate), up)
        computed = machine.affine(gated.down.weight, gated.down.bias, hidden)
        assert (np.linalg.norm(computed - found.mid, axis=1) <= found.rad).all()

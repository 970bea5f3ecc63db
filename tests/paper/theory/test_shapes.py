"""Shapes: every exact answer against random points, and exactly on the boundary."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from exactstate.errors import InvalidInput, UnknownName
from paper.theory.shapes import NORMS, AffineImage, Ball, Box, check_norm, exact, extreme_perturbation, within

rng = np.random.default_rng(5)
SHAPES = [Box(exact([0.5, -1, 2]), exact([1, 0.25, 0])), *(Ball(exact([0.5, -1, 2]), F(3, 4), norm) for norm in NORMS)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{type(shape).__name__}-{getattr(shape, 'norm', '')}")
def test_below_agrees_with_random_points(shape: Box | Ball) -> None:
    points = shape.sample(np.random.default_rng(0), 4000)
    assert all(shape.contains(exact(u)) for u in points[:50] * (1 - 1e-9) + 1e-9 * shape.floats[0])
    for g in np.random.default_rng(1).standard_normal((40, 3)):
        top, far = (points @ g).max(), float(g @ shape.extreme_point(exact(g)).astype(float))
        assert top <= far + 1e-9
        assert shape.below(g[None], exact([far + 1e-6])).all()
        assert not shape.below(g[None], exact([far - 1e-6])).any()


def test_below_is_exact_on_the_boundary() -> None:
    g, third = np.array([[1.0, 1.0]]), F(1, 3)
    box = Box(exact([0, 0]), np.array([third, third], object))
    assert box.below(g, np.array([2 * third], object)).all()
    assert not box.below(g, np.array([2 * third], object), strict=True).any()
    assert not box.below(g, np.array([2 * third - F(1, 10**30)], object)).any()
    ball = Ball(exact([0, 0]), F(5, 7), "2")
    g = np.array([[3.0, 4.0]])
    assert ball.below(g, exact([F(25, 7)])).all()
    assert not ball.below(g, exact([F(25, 7)]), strict=True).any()
    assert not ball.below(g, exact([F(25, 7) - F(1, 10**40)])).any()


@pytest.mark.parametrize("norm", NORMS)
def test_extreme_perturbation_is_never_too_long(norm: str) -> None:
    for g in exact(rng.standard_normal((20, 4))):
        e = extreme_perturbation(g, F(1, 3), norm)
        assert within(e, F(1, 3), norm)
        assert not within(e, F(1, 3) * (1 - F(1, 10**9)), norm)


def test_contains_image_of_boxes_is_exact() -> None:
    A, b = np.array([[0.5, 0.25], [0.0, -0.5]]), np.array([1.0, 0.0])
    image = AffineImage(A, b, Box(exact([0, 0]), exact([1, 1])))
    assert Box(exact([1, 0]), exact([1, 0.75])).contains_image(image, F(1, 4), "inf")
    assert not Box(exact([1, 0]), exact([1, 0.75])).contains_image(image, F(1, 4) + F(1, 10**20), "inf")
    assert not Box(exact([5, 0]), exact([1, 0.75])).contains_image(image, F(1, 8), "inf")


def test_contains_image_and_check_norm_refuse_bad_input() -> None:
    with pytest.raises(UnknownName, match="unknown norm '3'"):
        check_norm("3")
    with pytest.raises(InvalidInput, match="points perturbed in its own norm only; got a Box perturbed in norm '2'"):
        Ball(exact([0.5, -1, 2]), F(1), "2").contains_image(
            AffineImage(np.eye(3), np.zeros(3), SHAPES[0]), F(1, 4), "2"
        )

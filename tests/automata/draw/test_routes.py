"""Curves: cut exactly, around states, into them from outside."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata.draw.routes import along, beside, cut, free_direction, loop, place_label, routes
from exactstate.automata.draw.scene import Arrow

CIRCLE = np.array([0.5, 0.5])


def polynomial(route: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Bezier curves as everybody writes them down."""
    t = t[:, None]
    if len(route) == 3:
        a, b, c = route
        return (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c
    a, b, c, d = route
    return (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d


@pytest.mark.parametrize("degree", [2, 3])
def test_along_and_cut_are_bezier_curves(degree: int) -> None:
    route = np.random.default_rng(degree).normal(size=(degree + 1, 2))
    times = np.linspace(0, 1, 9)
    np.testing.assert_allclose(along(route, times), polynomial(route, times), atol=1e-12)
    np.testing.assert_allclose(
        polynomial(cut(route, 0.2, 0.7), times), polynomial(route, 0.2 + 0.5 * times), atol=1e-12
    )


def test_routes_go_around_states() -> None:
    points = np.array([[0.0, 0], [3, 0], [6, 0]])
    (straight,) = routes([Arrow(0, 1, (0,), "")], points, CIRCLE)
    (bent,) = routes([Arrow(0, 2, (0,), "")], points, CIRCLE)
    assert np.ptp(along(straight)[:, 1]) == 0
    assert np.linalg.norm(along(bent) - points[1], axis=1).min() > 0.5


def test_routes_begin_and_end_outside_their_states() -> None:
    points = np.array([[0.0, 0], [3, 1]])
    there, back = routes([Arrow(0, 1, (0,), ""), Arrow(1, 0, (1,), "")], points, np.array([0.9, 0.5]))
    for curve in (there, back):
        for state in points:
            assert (np.linalg.norm((along(curve) - state) / [0.9, 0.5], axis=1) > 0.98).all()
    # a pair bends to opposite sides
    assert np.linalg.norm(along(there)[16] - along(back)[16]) > 0.3


def test_loop_stays_near_and_outside() -> None:
    for angle in np.linspace(-3, 3, 7):
        curve = along(loop(np.zeros(2), np.array([0.9, 0.5]), angle))
        assert (np.linalg.norm(curve / [0.9, 0.5], axis=1) > 0.98).all()
        assert np.abs(curve).max() < 2.5


def test_free_direction_avoids_arrows_and_neighbors() -> None:
    points = np.array([[0.0, 0], [2, 0]])
    assert abs(free_direction(0, points, [np.pi / 2], -np.pi / 2) + np.pi / 2) < 0.3
    assert abs(free_direction(0, points, [np.pi / 2, -np.pi / 2], 0.0)) > 2.5


def test_place_label_avoids_states_and_other_labels() -> None:
    candidates = np.array([[0.0, 0], [2, 0], [4, 0]])
    half, none = np.array([0.4, 0.2]), np.empty((0, 2))
    points = np.array([[0.0, 0.1]])
    assert place_label(candidates, half, points, CIRCLE, [], none).tolist() == [2, 0]
    assert place_label(candidates, half, points, CIRCLE, [(candidates[1], half)], none).tolist() == [4, 0]
    assert place_label(candidates, half, points + 9, CIRCLE, [], none).tolist() == [0, 0]


def test_beside_touches_the_point() -> None:
    for angle in np.linspace(-3, 3, 13):
        half = np.array([0.7, 0.2])
        middle = beside(np.zeros(2), angle, half, gap=0.0)
        assert np.isclose((np.abs(middle) / half).max(), 1.0)

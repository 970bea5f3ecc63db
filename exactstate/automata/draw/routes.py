"""Route arrows around states, loops into free corners, labels to free positions. Lengths in heights of a state.

A state is an ellipse, `size` its half width and half height. A route is a Bezier curve: 3 points for an arrow,
4 for a loop, cut where it leaves its source and enters its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from exactstate.automata.draw.layout import Points
from exactstate.automata.draw.scene import Arrow

Route = NDArray[np.float64]
_TIMES = np.linspace(0, 1, 33)
_BENDS = (0.0, 0.12, -0.12, 0.22, -0.22, 0.34, -0.34, 0.5, -0.5)
_BENDS_OF_A_PAIR = (0.16, 0.26, 0.38, 0.5)


def along(route: Route, times: Points = _TIMES) -> Points:
    """Points of a Bezier curve at these times (de Casteljau)."""
    points = np.repeat(route[None], len(times), axis=0)
    while points.shape[1] > 1:
        points = points[:, :-1] + times[:, None, None] * (points[:, 1:] - points[:, :-1])
    return points[:, 0]


def cut(route: Route, begin: float, end: float) -> Route:
    """The part of a Bezier curve between two times, as a Bezier curve."""
    degree = len(route) - 1

    def blossom(times: Sequence[float]) -> Points:
        points = route
        for t in times:
            points = points[:-1] + t * (points[1:] - points[:-1])
        return points[0]

    return np.array([blossom([begin] * (degree - i) + [end] * i) for i in range(degree + 1)])


def routes(arrows: Iterable[Arrow], points: Points, size: Points) -> list[Route]:
    """A curve for every arrow between different states: straight where it can be, bent around other states."""
    arrows = list(arrows)
    joined = {(arrow.source, arrow.target) for arrow in arrows}
    return [
        _best_bend(arrow, points, size, _BENDS_OF_A_PAIR if (arrow.target, arrow.source) in joined else _BENDS)
        for arrow in arrows
    ]


def _best_bend(arrow: Arrow, points: Points, size: Points, bends: Sequence[float]) -> Route:
    begin, end = points[arrow.source], points[arrow.target]
    left = np.array([begin[1] - end[1], end[0] - begin[0]])
    others = np.delete(points, [arrow.source, arrow.target], axis=0)

    def bent(bend: float) -> Route:
        return np.array([begin, (begin + end) / 2 + bend * left, end])

    def in_the_way(bend: float) -> int:
        away = np.linalg.norm((along(bent(bend))[:, None] - others[None]) / (size + 0.15), axis=2)
        return int((away < 1).any(0).sum())

    # bends come in order of preference: the first that is free, else the first that is freest
    best, fewest = bends[0], len(points)
    for bend in bends:
        if (hit := in_the_way(bend)) < fewest:
            best, fewest = bend, hit
        if fewest == 0:
            break
    return _between(bent(best), begin, end, size)


def _between(route: Route, begin: Points, end: Points, size: Points, gap: float = 0.06) -> Route:
    """The part of the curve outside its two states, with a small gap before the head."""
    times = np.linspace(0, 1, 257)
    at = along(route, times)
    outside_begin = np.linalg.norm((at - begin) / size, axis=1) > 1
    outside_end = np.linalg.norm((at - end) / (size + gap), axis=1) > 1
    free = np.flatnonzero(outside_begin & outside_end)
    return cut(route, times[free[0]], times[free[-1]]) if len(free) > 1 else route


def free_direction(q: int, points: Points, busy: Sequence[float], preferred: float) -> float:
    """The angle at which state q has most space: far from its arrows and from near states, close to `preferred`."""
    angles = np.linspace(-np.pi, np.pi, 48, endpoint=False)
    to = np.delete(points, q, axis=0) - points[q]
    near = to[np.linalg.norm(to, axis=1) < 4.5]
    space = np.full(len(angles), np.pi)
    for angle in [*busy, *np.arctan2(near[:, 1], near[:, 0])]:
        space = np.minimum(space, np.abs(_turn(angles - angle)))
    return float(angles[np.argmax(np.minimum(space, 1.1) - 0.15 * np.abs(_turn(angles - preferred)))])


def _turn(angle: Points) -> Points:
    """The same angle between -pi and pi."""
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


def loop(center: Points, size: Points, angle: float, length: float = 1.0) -> Route:
    """A small loop out of a state and back, in this direction."""

    def on_rim(turn: float, far: float) -> Points:
        direction = np.array([np.cos(turn), np.sin(turn)])
        return np.asarray(center + far * direction / np.linalg.norm(direction / size))

    def out(turn: float) -> Points:
        rim = on_rim(turn, 1.0)
        return np.asarray(rim + length * np.array([np.cos(turn), np.sin(turn)]))

    # on a wide ellipse equal angles are unequal distances along the rim, so the legs stand by distance
    spread = 0.42 * float(size[1] / np.hypot(size[0] * np.sin(angle), size[1] * np.cos(angle)))
    wide = np.clip(spread, 0.2, 0.6)
    return np.array(
        [on_rim(angle - wide, 1.0), out(angle - 0.9 * wide), out(angle + 0.9 * wide), on_rim(angle + wide, 1.06)]
    )


def beside(at: Points, angle: float, half: Points, gap: float = 0.1) -> Points:
    """Where the middle of a box lies that touches a point from this direction."""
    direction = np.array([np.cos(angle), np.sin(angle)])
    return np.asarray(at + direction * (gap + float((half / np.maximum(np.abs(direction), 1e-9)).min())))


def place_label(
    candidates: Points,
    half: Points,
    points: Points,
    size: Points,
    boxes: Sequence[tuple[Points, Points]],
    curves: Points,
) -> Points:
    """The candidate where a box of this half width and height covers least; earlier ones are better."""

    def cost(i: int) -> float:
        at = candidates[i]
        on_states = (np.abs(points - at) < size + half).all(1).sum()
        on_boxes = sum(bool((np.abs(center - at) < other + half).all()) for center, other in boxes)
        on_curves = (np.abs(curves - at) < half).all(1).sum() if len(curves) else 0
        return 40.0 * on_states + 25.0 * on_boxes + 0.4 * on_curves + 0.3 * i

    return np.asarray(candidates[min(range(len(candidates)), key=cost)])

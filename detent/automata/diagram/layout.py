"""Place the states of a machine on the plane: try several layouts, keep the one that reads best.

    n  states     E  arrows (pairs of different states)

Deterministic for a given seed.
"""

from __future__ import annotations

import numpy as np

from detent.automata.diagram.candidates import Points, candidates
from detent.automata.running import Ints

BETWEEN_PARTS = 0.9


def place(n: int, pairs: Ints, tables: Ints, start: int, *, seed: int = 0) -> Points:
    """Positions (n 2) with the median arrow of length 1; pairs (E 2) are joined by arrows.

    Parts that no arrow joins are placed by themselves, the one with the start first, in rows as in a text.
    """
    parts, placed = _parts(n, pairs, start), []
    for part in parts:
        number = np.full(n, -1)
        number[part] = np.arange(len(part))
        inside = number[pairs[np.isin(pairs[:, 0], part)]]
        # a symbol that leads out of the part has no cycles in it
        within = number[tables[:, part]]
        points = _place_part(len(part), inside, within[(within >= 0).all(1)], int(max(number[start], 0)), seed)
        placed.append(points - [points[:, 0].min(), points[:, 1].max()])
    whole = np.zeros((n, 2))
    for part, points, corner in zip(
        parts, placed, _corners([np.ptp(points, axis=0) for points in placed]), strict=True
    ):
        whole[part] = points + corner
    return whole


def _corners(extents: list[Points]) -> Points:
    """The upper left corners of boxes in rows, in a shape that is wider than tall."""
    boxes = np.array(extents) + BETWEEN_PARTS
    line = max(boxes[:, 0].max(), 1.5 * float(np.sqrt(boxes.prod(1).sum())))
    corners, right, top, tallest = [], 0.0, 0.0, 0.0
    for width, height in boxes:
        if right and right + width > line + 1e-9:
            right, top, tallest = 0.0, top - tallest, 0.0
        corners.append([right, top])
        right, tallest = right + width, max(tallest, height)
    return np.array(corners)


def _place_part(n: int, pairs: Ints, tables: Ints, start: int, seed: int) -> Points:
    if n <= 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])[:n] if start == 0 else np.array([[1.0, 0.0], [0.0, 0.0]])[:n]
    normal = [_normal(points, pairs, start) for points in candidates(n, pairs, tables, start, seed)]
    # rounded, so that of layouts as good as each other the first and plainest is taken
    return min(normal, key=lambda points: round(clutter(points, pairs)))


def _parts(n: int, pairs: Ints, start: int) -> list[Ints]:
    """The connected parts: the one with the start, then by size."""
    part = np.arange(n)
    while True:
        lowest = part.copy()
        np.minimum.at(lowest, pairs[:, 0], part[pairs[:, 1]])
        np.minimum.at(lowest, pairs[:, 1], part[pairs[:, 0]])
        if np.array_equal(lowest, part):
            break
        part = lowest
    parts = [np.flatnonzero(part == name) for name in np.unique(part)]
    return sorted(parts, key=lambda members: (start not in members, -len(members)))


def clutter(points: Points, pairs: Ints) -> float:
    """How badly a layout reads: crossings, arrows through states, states too close, arrows too long."""
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1) if len(pairs) else np.ones(1)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 10 * np.eye(len(points))
    close = np.clip(0.9 - apart, 0, None).sum()
    area = float(np.prod(np.ptp(points, axis=0) + 1)) / len(points)
    return (
        crossings(points, pairs)
        + 3.0 * _pierced(points, pairs)
        + 8.0 * float(close)
        + 0.5 * float(np.clip(lengths - 1.5, 0, None).sum())
        + 1.0 * area
    )


def crossings(points: Points, pairs: Ints) -> int:
    """How many pairs of straight arrows cross, apart from those that meet in a state."""
    begin, end = points[pairs[:, 0]], points[pairs[:, 1]]

    def side(p: Points, q: Points, r: Points) -> Points:
        """Positive where r lies left of the line from p to q, for all pairs of a line and a point."""
        along, to = (q - p)[:, None], r[None] - p[:, None]
        return np.asarray(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    first, second = side(begin, end, begin), side(begin, end, end)
    apart = first * second < -1e-12
    shared = (pairs[:, None, :, None] == pairs[None, :, None, :]).any((2, 3))
    return int((apart & apart.T & ~shared).sum() // 2)


def _pierced(points: Points, pairs: Ints, clearance: float = 0.28) -> float:
    """How many states lie on arrows that do not concern them."""
    if not len(pairs):
        return 0.0
    begin, along = points[pairs[:, 0]], points[pairs[:, 1]] - points[pairs[:, 0]]
    to = points[None] - begin[:, None]
    share = np.clip((to * along[:, None]).sum(2) / np.maximum((along**2).sum(1), 1e-12)[:, None], 0, 1)
    distance = np.linalg.norm(to - share[..., None] * along[:, None], axis=2)
    np.put_along_axis(distance, pairs.astype(np.intp), np.inf, axis=1)
    return float((distance < clearance).sum())


def _normal(points: Points, pairs: Ints, start: int) -> Points:
    """Lying rather than standing, the start on the left or on top, with the median arrow of length 1."""
    centred = points - points.mean(0)
    if np.ptp(centred[:, 1]) > np.ptp(centred[:, 0]):
        centred = centred[:, ::-1]
    aside = [-1 if centred[start, 0] > 1e-9 else 1, -1 if centred[start, 1] < -1e-9 else 1]
    lengths = np.linalg.norm(centred[pairs[:, 0]] - centred[pairs[:, 1]], axis=1) if len(pairs) else np.ones(1)
    return np.asarray(centred * aside / max(float(np.median(lengths)), 1e-9))

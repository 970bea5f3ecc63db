"""Place the states of a machine in the plane: try several layouts, keep the most readable one.

    n  states     E  arrows (pairs of different states)

Candidates are circles, layers by distance from the start, concentric cycles of a permutation, planar drawings (Tutte,
"How to draw a graph", 1963), and stress majorization from these and from random positions (Gansner, Koren and North,
"Graph drawing by stress majorization", 2004). `clutter` scores them. Deterministic for a seed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from exactstate._types import Ints

Points = NDArray[np.float64]
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
    """The score of a layout, lower is better: crossings, arrows through states, states too close, long arrows."""
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
    """The number of states that lie on arrows between other states."""
    if not len(pairs):
        return 0.0
    begin, along = points[pairs[:, 0]], points[pairs[:, 1]] - points[pairs[:, 0]]
    to = points[None] - begin[:, None]
    share = np.clip((to * along[:, None]).sum(2) / np.maximum((along**2).sum(1), 1e-12)[:, None], 0, 1)
    distance = np.linalg.norm(to - share[..., None] * along[:, None], axis=2)
    np.put_along_axis(distance, pairs.astype(np.intp), np.inf, axis=1)
    return float((distance < clearance).sum())


def _normal(points: Points, pairs: Ints, start: int) -> Points:
    """Wider than tall, the start on the left or on top, the median arrow of length 1."""
    centerd = points - points.mean(0)
    if np.ptp(centerd[:, 1]) > np.ptp(centerd[:, 0]):
        centerd = centerd[:, ::-1]
    aside = [-1 if centerd[start, 0] > 1e-9 else 1, -1 if centerd[start, 1] < -1e-9 else 1]
    lengths = np.linalg.norm(centerd[pairs[:, 0]] - centerd[pairs[:, 1]], axis=1) if len(pairs) else np.ones(1)
    return np.asarray(centerd * aside / max(float(np.median(lengths)), 1e-9))


def candidates(n: int, pairs: Ints, tables: Ints, start: int, seed: int) -> Iterator[Points]:
    """Layouts of n >= 3 connected states, the plainest first, in no particular scale."""
    steps = _distances(n, pairs)
    yield _circle(np.arange(n))
    yield _circle(_chain(steps, start))
    yield _layers(steps[start], pairs)
    for table in tables[:4]:
        rings = _rings(table)
        if rings is not None:
            yield rings
            yield _stress(steps, rings)
    for flat in _planar(n, pairs):
        yield flat
        yield _stress(steps, flat, rounds=15)
    yield _stress(steps, _circle(_chain(steps, start)))
    random = np.random.default_rng(seed)
    for _ in range(8 if n <= 40 else 3):
        yield _stress(steps, random.normal(size=(n, 2)))


def _distances(n: int, pairs: Ints) -> Points:
    """Arrows between any two states, directions ignored; states without a way are one farther than the farthest."""
    steps = np.full((n, n), np.inf)
    steps[pairs[:, 0], pairs[:, 1]] = steps[pairs[:, 1], pairs[:, 0]] = 1
    np.fill_diagonal(steps, 0)
    for middle in range(n):
        np.minimum(steps, steps[:, middle, None] + steps[None, middle], out=steps)
    return np.where(np.isinf(steps), steps[np.isfinite(steps)].max() + 1, steps)


def _circle(order: Ints, radius: float = 1.0) -> Points:
    """The states evenly on a circle in this order, the first one on the left."""
    turn = np.pi - 2 * np.pi * np.arange(len(order)) / len(order)
    points = np.empty((len(order), 2))
    points[order] = radius * np.stack([np.cos(turn), np.sin(turn)], 1)
    return points


def _chain(steps: Points, start: int) -> Ints:
    """An order in which neighbors follow each other: always the nearest state that is left."""
    order, left = [start], np.ones(len(steps), bool)
    left[start] = False
    while left.any():
        order.append(int(np.argmin(np.where(left, steps[order[-1]], np.inf))))
        left[order[-1]] = False
    return np.array(order)


def _layers(depth: Points, pairs: Ints) -> Points:
    """Columns by distance from the start, each sorted by where its neighbors are, a few times."""
    n = len(depth)
    points = np.stack([depth * 1.2, np.zeros(n)], 1)
    joined = np.zeros((n, n))
    joined[pairs[:, 0], pairs[:, 1]] = joined[pairs[:, 1], pairs[:, 0]] = 1
    height = np.arange(n, dtype=float)
    for _ in range(12):
        pulled = (joined @ height + 0.1 * height) / (joined.sum(1) + 0.1)
        for layer in np.unique(depth):
            (members,) = np.nonzero(depth == layer)
            rank = np.argsort(np.argsort(pulled[members], kind="stable"))
            height[members] = rank - (len(members) - 1) / 2
    points[:, 1] = height
    return points


def _rings(table: Ints) -> Points | None:
    """The cycles of a permutation as concentric rings; None when it has none, or too many."""
    n = len(table)
    if len(np.unique(table)) < n:
        return None
    cycles, left = [], set(range(n))
    while left:
        q, cycle = min(left), []
        while q in left:
            left.remove(q)
            cycle.append(q)
            q = int(table[q])
        cycles.append(cycle)
    if not 2 <= len(cycles) <= 4 or len(cycles[0]) < 3:
        return None
    points = np.empty((n, 2))
    for i, cycle in enumerate(cycles):
        points[cycle] = _circle(np.arange(len(cycle)), 1.0 + i)
    return points


def _planar(n: int, pairs: Ints) -> Iterator[Points]:
    """If arrows need not cross: a face outside, every other state between its neighbors, arrows of like length."""
    import networkx

    planar, embedding = networkx.check_planarity(networkx.Graph(pairs.tolist()))
    if not planar:
        return
    seen: set[tuple[int, int]] = set()
    faces = [embedding.traverse_face(u, v, seen) for u, v in embedding.edges() if (u, v) not in seen]
    for face in sorted(faces, key=len, reverse=True)[:2]:
        if len(set(face)) == len(face) >= 3:
            yield _tutte(n, pairs, np.array(face))


def _tutte(n: int, pairs: Ints, outside: Ints) -> Points:
    inside = np.setdiff1d(np.arange(n), outside)
    points = np.zeros((n, 2))
    points[outside] = _circle(np.arange(len(outside)))
    pull = np.ones(len(pairs))
    for _ in range(25):
        joined = np.zeros((n, n))
        joined[pairs[:, 0], pairs[:, 1]] = joined[pairs[:, 1], pairs[:, 0]] = pull
        matrix = (np.diag(joined.sum(1)) - joined)[np.ix_(inside, inside)]
        points[inside] = np.linalg.lstsq(matrix, joined[np.ix_(inside, outside)] @ points[outside], rcond=None)[0]
        # any positive pulls keep the drawing free of crossings, so long arrows may pull harder
        lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
        pull *= np.sqrt(np.maximum(lengths, 1e-3) / lengths.mean())
    return points


def _stress(steps: Points, points: Points, rounds: int = 200) -> Points:
    """Move all points at once to where the stress bound is smallest, until nothing moves (majorization)."""
    wanted = np.maximum(steps, 1e-9)
    weight = np.where(steps > 0, wanted**-2.0, 0.0)
    # all points shifted alike have equal stress; adding 1 pins the mean and makes the matrix invertible
    laplacian = np.linalg.inv(np.diag(weight.sum(1)) - weight + 1.0)
    points = points * (steps.mean() / max(float(np.abs(points).mean()), 1e-9))
    for _ in range(rounds):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = np.where(apart > 1e-9, weight * steps / np.maximum(apart, 1e-9), 0.0)
        moved = laplacian @ ((np.diag(pull.sum(1)) - pull) @ points)
        still, points = np.abs(moved - points).max() < 1e-4, moved
        if still:
            break
    # stress does not know up from left: turn the longest extent level
    centerd = points - points.mean(0)
    return np.asarray(centerd @ np.linalg.svd(centerd, full_matrices=False)[2].T)

"""Placing states: nothing on top of each other, few crossings, the same every time."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from exactstate._types import Ints
from exactstate.automata import cyclic, dihedral, symmetric
from exactstate.automata.draw.layout import clutter, crossings, place
from exactstate.automata.draw.scene import arrows_of
from exactstate.automata.machine import Semiautomaton


def pairs_of(machine: Semiautomaton) -> Ints:
    ends = {tuple(sorted((arrow.source, arrow.target))) for arrow in arrows_of(machine) if not arrow.is_loop}
    return np.array(sorted(ends), int).reshape(-1, 2)


def placed(machine: Semiautomaton, seed: int = 0) -> np.ndarray:
    return place(machine.n_states, pairs_of(machine), machine.tables, 0, seed=seed)


def crossings_in_fractions(points: np.ndarray, pairs: Ints) -> int:
    """The textbook way, two segments at a time, without rounding."""

    def left_of(p: list[Fraction], q: list[Fraction], r: list[Fraction]) -> int:
        turn = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        return (turn > 0) - (turn < 0)

    exact = [[Fraction(float(x)) for x in point] for point in points]
    count = 0
    for (a, b), (c, d) in combinations(pairs.tolist(), 2):
        p, q, r, s = exact[a], exact[b], exact[c], exact[d]
        meets = left_of(p, q, r) * left_of(p, q, s) < 0 and left_of(r, s, p) * left_of(r, s, q) < 0
        count += meets and not {a, b} & {c, d}
    return count


@pytest.mark.parametrize("n", [4, 5, 9, 14])
def test_crossings_are_counted_as_in_the_textbook(n: int) -> None:
    random = np.random.default_rng(n)
    points = random.integers(0, 50, (n, 2)).astype(float)
    pairs = np.array(list(combinations(range(n), 2)))[:: 1 + n // 6]
    assert crossings(points, pairs) == crossings_in_fractions(points, pairs)


@pytest.mark.parametrize("machine", [cyclic(7), symmetric(3), dihedral(6), symmetric(4)], ids=["C7", "S3", "D6", "S4"])
def test_place_without_crossings_where_possible(machine: Semiautomaton) -> None:
    machine = Semiautomaton(symbols=machine.symbols[-3:], tables=machine.tables[-3:])
    if machine.n_states == 7:
        machine = Semiautomaton(symbols=("1",), tables=machine.tables[:1])
    assert crossings(placed(machine), pairs_of(machine)) == 0


@pytest.mark.parametrize(("n", "A"), [(1, 1), (2, 1), (3, 2), (12, 3), (30, 2), (45, 2)])
def test_place_is_deterministic_and_keeps_states_apart(n: int, A: int) -> None:
    machine = Semiautomaton(symbols=tuple("abc"[:A]), tables=np.random.default_rng(n).integers(0, n, (A, n)))
    points = placed(machine)
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(n)
    assert apart.min() > 0.05
    assert np.array_equal(points, placed(machine))


def test_place_separates_disconnected_parts() -> None:
    machine = Semiautomaton(symbols=("a",), tables=[[1, 2, 0, 4, 3, 5]])
    points = placed(machine)
    boxes = [(points[part].min(0), points[part].max(0)) for part in ([0, 1, 2], [3, 4], [5])]
    for (low, high), (other_low, other_high) in combinations(boxes, 2):
        assert (high < other_low).any() or (other_high < low).any()


def test_place_isolated_states_in_rows() -> None:
    points = placed(Semiautomaton(symbols=("a",), tables=[np.arange(40)]))
    assert len(np.unique(points, axis=0)) == 40
    assert 1 < np.ptp(points[:, 0]) / np.ptp(points[:, 1]) < 4


def test_clutter_rejects_a_bad_layout() -> None:
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    ring = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    assert crossings(square, ring) == 0
    assert crossings(square[[0, 2, 1, 3]], ring) == 1
    assert clutter(square[[0, 2, 1, 3]], ring) > clutter(square, ring)
    assert clutter(square * [1, 0.1], ring) > clutter(square, ring)

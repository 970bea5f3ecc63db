"""Robust capacity: at most one invariant set for affine maps and stacks of any kind, several for others."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.errors import InvalidConfig
from paper.theory.capacity import InvariantSets, affine, invariant_sets, monotone, stack_of_two


def rounding(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.round(low), np.round(high)


def samples_stay(held: InvariantSets, step, eta: float, seed: int = 0) -> bool:
    """Points of every held set, moved and perturbed at random, stay in it."""
    generator = np.random.default_rng(seed)
    for low, high in held.sets:
        at = generator.integers(0, len(low), 500)
        u = low[at] + generator.uniform(0, 1, low[at].shape) * (high - low)[at]
        h = step(u, u)[0] + generator.uniform(-eta, eta, u.shape)
        inside = ((low[None] <= h[:, None]) & (h[:, None] <= high[None])).all(-1).any(-1)
        if not inside.all():
            return False
    return True


@pytest.mark.parametrize(("rate", "count"), [(-0.9, 1), (0.0, 1), (0.5, 1), (0.9, 1), (1.0, 0), (-1.0, 0), (1.3, 0)])
def test_invariant_sets_of_an_affine_map_are_one_or_none(rate: float, count: int) -> None:
    held = invariant_sets(affine([[rate]], [0.2]), [-6], [6], eta=0.05, boxes=300)
    assert len(held) == count
    assert samples_stay(held, affine([[rate]], [0.2]), 0.05)


def test_invariant_sets_do_not_grow_with_width() -> None:
    generator = np.random.default_rng(1)
    for _ in range(6):
        A = generator.uniform(-1, 1, (2, 2))
        assert len(invariant_sets(affine(A, generator.uniform(-1, 1, 2)), [-8, -8], [8, 8], eta=0.3, boxes=24)) <= 1


def test_invariant_sets_contain_the_ball_around_the_fixed_point() -> None:
    ((low, high),) = invariant_sets(affine([[0.5]], [1.0]), [-6], [6], eta=0.25, boxes=600).sets
    assert low.min() <= 2 - 0.5
    assert high.max() >= 2 + 0.5
    assert high.max() - low.min() < 1.2, "the smallest such set, up to the grid"


@pytest.mark.parametrize(("gain", "count"), [(0.5, 1), (0.9, 1), (1.6, 2), (3.0, 2)])
def test_invariant_sets_of_a_steep_nonlinearity_are_two(gain: float, count: int) -> None:
    step = monotone(np.tanh, gain)
    held = invariant_sets(step, [-2], [2], eta=0.02, boxes=800)
    assert len(held) == count
    assert samples_stay(held, step, 0.02)


def test_invariant_sets_merge_under_large_perturbations() -> None:
    assert len(invariant_sets(monotone(np.tanh, 1.6), [-2], [2], eta=0.4, boxes=400)) == 1


@pytest.mark.parametrize("n", [1, 3, 7])
def test_invariant_sets_of_rounding_are_the_integers(n: int) -> None:
    """Exact restoration: cells of half width 1/2 around integers."""
    assert len(invariant_sets(rounding, [-0.5], [n - 0.5], eta=0.3, boxes=20 * n)) == n
    assert invariant_sets(rounding, [-0.5], [n - 0.5], eta=0.3, boxes=20 * n).bits == np.log2(n)
    assert len(invariant_sets(rounding, [-0.5], [n - 0.5], eta=0.6, boxes=20 * n)) == 0


def switching(edge: float, left: tuple[float, float], right: tuple[float, float]):
    """Coefficients of an upper layer that jump where the lower layer crosses an edge."""

    def above(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
        sides = [np.where(high < edge, left[i], np.where(low > edge, right[i], np.nan)) for i in (0, 1)]
        both = np.isnan(sides[0])
        picked = ((i, pick(left[i], right[i])) for i in (0, 1) for pick in (min, max))
        return tuple(np.where(both, end, sides[i]) for i, end in picked)

    return above


def test_invariant_sets_do_not_grow_with_depth() -> None:
    """Random stacks of two affine layers, the upper one switching between any two maps: never two sets."""
    generator = np.random.default_rng(2)
    counts = []
    for _ in range(15):
        below = (generator.uniform(-1.1, 1.1), generator.uniform(-1, 1))
        left, right = generator.uniform(-1, 1, (2, 2))
        step = stack_of_two(below, switching(generator.uniform(-1, 1), tuple(left), tuple(right)))
        counts.append(len(invariant_sets(step, [-6, -6], [6, 6], eta=0.3, boxes=24)))
    assert max(counts) == 1
    assert sum(counts) > 3, "some of them hold a set at all"


def test_invariant_sets_of_a_nonlinear_stack_are_found() -> None:
    """The same upper layer above a lower layer that is not affine holds two sets."""
    above = switching(0.0, (0.2, -3.0), (0.2, 3.0))

    def step(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a_low, a_high, b_low, b_high = above(low[:, 0], high[:, 0])
        upper = a_low * low[:, 1] + b_low, a_high * high[:, 1] + b_high
        ends = np.tanh(4 * low[:, 0]), np.tanh(4 * high[:, 0])
        return np.stack([ends[0], upper[0]], axis=1), np.stack([ends[1], upper[1]], axis=1)

    assert len(invariant_sets(step, [-6, -6], [6, 6], eta=0.2, boxes=48)) == 2


def test_invariant_sets_refuse_bad_input() -> None:
    with pytest.raises(InvalidConfig, match="must be below the upper"):
        invariant_sets(rounding, [1], [0], eta=0.1)

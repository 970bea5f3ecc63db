"""How many disjoint sets are invariant under a map with perturbations: its robust capacity, counted on a grid.

    eta  largest perturbation

A bounded set is invariant if one step and one perturbation of at most eta keep every point inside. Divide a region
into boxes, with an edge from a box to every box that its perturbed image can touch, and to "outside" where it can leave
the region. A union of boxes without outgoing edges is invariant, since images are enclosed and not sampled. The minimal
unions are the attracting components of this graph; they are disjoint, and every invariant union contains one. So their
number is the capacity at this resolution, and a lower bound of the true capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from exactstate.errors import InvalidConfig
from paper.theory.shapes import Floats

BoxMap = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Lower and upper corners (N d each) -> corners of boxes that enclose their images."""


@dataclass(frozen=True, eq=False)
class InvariantSets:
    """Disjoint invariant sets, as unions of boxes."""

    sets: tuple[tuple[Floats, Floats], ...]
    """For each, lower and upper corners of its boxes."""

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def bits(self) -> float:
        """The robust capacity; minus infinity if there is no invariant set."""
        return log2(len(self.sets)) if self.sets else float("-inf")


def invariant_sets(
    step: BoxMap, lower: Sequence[float], upper: Sequence[float], eta: float, *, boxes: int = 200
) -> InvariantSets:
    """The minimal invariant sets of a map in a region, on a grid with this many boxes along every coordinate.

    >>> len(invariant_sets(monotone(np.tanh, 3.0), [-2], [2], eta=0.1))
    2
    """
    import networkx as nx

    low, high = np.asarray(lower, float), np.asarray(upper, float)
    if low.shape != high.shape or low.ndim != 1 or (low >= high).any():
        raise InvalidConfig(
            f"the lower corner of a region must be below the upper; got {low.tolist()} and {high.tolist()}."
        )
    d, width = len(low), (high - low) / boxes
    places = np.stack(np.meshgrid(*[np.arange(boxes)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    begin, end = low + places * width, low + (places + 1) * width
    image_low, image_high = step(begin, end)
    first = np.floor((image_low - eta - low) / width).astype(int)
    last = np.ceil((image_high + eta - low) / width).astype(int) - 1
    edges = nx.DiGraph()
    edges.add_nodes_from(range(len(places)))
    outside = -1
    strides = boxes ** np.arange(d - 1, -1, -1)
    for box, (one, other) in enumerate(zip(first, last, strict=True)):
        if (one < 0).any() or (other >= boxes).any():
            edges.add_edge(box, outside)
            continue
        possible_indices = np.stack(np.meshgrid(*map(np.arange, one, other + 1), indexing="ij"), axis=-1).reshape(-1, d)
        edges.add_edges_from((box, int(place)) for place in possible_indices @ strides)
    components = [part for part in nx.attracting_components(edges) if outside not in part]
    return InvariantSets(tuple((begin[sorted(part)], end[sorted(part)]) for part in sorted(components, key=min)))


def monotone(function: Callable[[Floats], Floats], gain: float = 1.0) -> BoxMap:
    """A nondecreasing function of gain times every coordinate, such as tanh."""
    return lambda low, high: (function(gain * low), function(gain * high))


def affine(A: Floats, b: Floats) -> BoxMap:
    """h -> A h + b, with the smallest box around the image of a box."""
    A, b = np.atleast_2d(np.asarray(A, float)), np.atleast_1d(np.asarray(b, float))

    def step(low: Floats, high: Floats) -> tuple[Floats, Floats]:
        middle, radius = (low + high) / 2 @ A.T + b, (high - low) / 2 @ np.abs(A).T
        return middle - radius, middle + radius

    return step


def stack_of_two(
    below: tuple[float, float], above: Callable[[Floats, Floats], tuple[Floats, Floats, Floats, Floats]]
) -> BoxMap:  # fmt: skip
    """Two affine layers of one number each; the coefficients of the upper may be any function of the lower.

    `below` is (a, b). `above` takes lower and upper ends of the lower layer and returns lower and upper ends of the
    upper layer's a, and of its b.
    """
    a, b = below

    def step(low: Floats, high: Floats) -> tuple[Floats, Floats]:
        ends = np.stack([a * low[:, 0] + b, a * high[:, 0] + b])
        a_low, a_high, b_low, b_high = above(low[:, 0], high[:, 0])
        products = np.stack([a_low * low[:, 1], a_low * high[:, 1], a_high * low[:, 1], a_high * high[:, 1]])
        upper = products.min(0) + b_low, products.max(0) + b_high
        return np.stack([ends.min(0), upper[0]], axis=1), np.stack([ends.max(0), upper[1]], axis=1)

    return step

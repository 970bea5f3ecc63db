"""Exact regions where logits are affine in the input: each table of a head is constant on a convex cell.

    n  width of an input     d  indices of a head

Where a layer reads the input through affine maps alone, column k of a head goes to j where theta[j, k] is largest: on a
convex polyhedron. A table is one choice for every column, so its cell is an intersection of such polyhedra. The
distance from an input to the nearest other choice is the smallest distance to a hyperplane where theta[j, k] equals
theta[best, k], exactly: the nearest point outside a convex cell lies on one of the hyperplanes that bound it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from exactstate._types import Floats, Ints
from exactstate.errors import InvalidInput
from exactstate.extract.graph.nodes import Begin, Constant, Conv, Gather, Input, Scale, nodes_below
from exactstate.extract.regions.prove import traced
from exactstate.extract.result import Extracted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Polygon = Floats
"""Corners in order (corners x 2)."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of every head of the first layer of a machine."""

    weights: tuple[Floats, ...]
    """For every head d d n: of the logit of the move from index k (first axis) to index j (second)."""
    biases: tuple[Floats, ...]
    """For every head d d."""

    @classmethod
    def of(cls, machine: Extracted) -> Cells:
        """The cells of a machine whose first layer is affine in the input; raises for another."""
        network = traced(machine)
        root = network.graph.layers[0].argument
        for node in nodes_below(root):
            if not isinstance(node, Input | Conv | Scale | Gather | Constant | Begin):
                raise InvalidInput(
                    f"the logits of the first layer are not affine in the input: {node.name} stands before it. "
                    "For such models see `largest_radii` and `attack`."
                )
        if network.kernel_size > 1:
            raise InvalidInput("the first layer reads several steps at once; cells are for one.")
        assert network.region is not None
        n = network.region.centers.shape[1]
        block = network.blocks[0]
        dtype = block.weight.dtype
        with torch.no_grad():
            points = torch.cat([torch.zeros(1, n, dtype=dtype), torch.eye(n, dtype=dtype)])
            read = network.traced.evaluate(points[:, None].repeat(1, 2, 1), {}, 0)[:, 0]
            rows = read if block.mix_proj is None else block.mix_proj(read)
            flat = (rows @ block.weight.T + block.bias).double().numpy()
        weights, biases, at = [], [], 0
        for d in block.heads:
            part = flat[:, at : at + d * d].reshape(n + 1, d, d)
            biases.append(part[0])
            weights.append(np.moveaxis(part[1:] - part[0], 0, -1))
            at += d * d
        return cls(tuple(weights), tuple(biases))

    def table(self, head: int, x: Floats) -> Ints:
        """d: the table of a head at an input (n)."""
        return (self.weights[head] @ np.asarray(x, np.float64) + self.biases[head]).argmax(1)

    def distance(self, x: Floats, *, norm: str = "linf", head: int | None = None) -> float:
        """How far an input is from the nearest one with another table, of one head or of any."""
        x = np.asarray(x, np.float64)
        if x.shape != self.weights[0].shape[2:]:
            raise InvalidInput(f"an input has {self.weights[0].shape[2]} coordinates; got shape {x.shape}.")
        nearest = np.inf
        for at in range(len(self.weights)) if head is None else [head]:
            weight, theta = self.weights[at], self.weights[at] @ x + self.biases[at]
            best = theta.argmax(1)
            rows = np.arange(len(best))
            apart = weight[rows, best][:, None] - weight
            size = np.abs(apart).sum(-1) if norm == "linf" else np.sqrt((apart**2).sum(-1))
            lead = theta[rows, best][:, None] - theta
            with np.errstate(divide="ignore", invalid="ignore"):
                far = np.where(size > 0, lead / size, np.inf)
            far[rows, best] = np.inf
            nearest = min(nearest, float(far.min()))
        return nearest

    def tables(self, head: int, low: Sequence[float], high: Sequence[float]) -> dict[tuple[int, ...], Polygon]:
        """The tables of a head that occur in a box of two coordinates, each with its cell."""
        if self.weights[head].shape[2] != 2:
            raise InvalidInput(
                f"cells are listed and drawn in two dimensions; inputs have {self.weights[head].shape[2]}."
            )
        (x0, y0), (x1, y1) = low, high
        cells: dict[tuple[int, ...], Polygon] = {(): np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], float)}
        for weight, bias in zip(self.weights[head], self.biases[head], strict=True):
            split: dict[tuple[int, ...], Polygon] = {}
            for table, polygon in cells.items():
                for j in range(len(bias)):
                    part = polygon
                    for other in range(len(bias)):
                        if other != j and len(part):
                            part = clipped(part, weight[j] - weight[other], float(bias[j] - bias[other]))
                    if len(part) and area(part) > 0:
                        split[table + (j,)] = part  # noqa: RUF005
            cells = split
        return cells

    def draw(self, head: int, low: Sequence[float], high: Sequence[float], points: Floats | None = None) -> Figure:
        """The cells of a head in two dimensions, and some inputs."""
        from matplotlib.figure import Figure

        cells = self.tables(head, low, high)
        figure = Figure(figsize=(5, 5), layout="constrained")
        axes = figure.add_subplot()
        for number, (table, polygon) in enumerate(cells.items()):
            axes.fill(*polygon.T, color=f"C{number % 10}", alpha=0.35, lw=1)
            axes.text(
                float(polygon[:, 0].mean()),
                float(polygon[:, 1].mean()),
                " ".join(map(str, table)),
                ha="center",
                va="center",
                fontsize=8,
            )
        if points is not None:
            axes.plot(*np.asarray(points).T, "k.", ms=3)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=f"tables of head {head}")
        return figure


def clipped(polygon: Polygon, normal: Floats, offset: float) -> Polygon:
    """The part of a convex polygon where normal . x + offset >= 0 (Sutherland and Hodgman 1974)."""
    heights = polygon @ normal + offset
    corners: list[Floats] = []
    for at in range(len(polygon)):
        here, there = heights[at], heights[(at + 1) % len(polygon)]
        if here >= 0:
            corners.append(polygon[at])
        if (here > 0 > there) or (here < 0 < there):
            corners.append(polygon[at] + here / (here - there) * (polygon[(at + 1) % len(polygon)] - polygon[at]))
    return np.array(corners).reshape(-1, 2)


def area(polygon: Polygon) -> float:
    x, y = polygon.T
    return 0.5 * float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))

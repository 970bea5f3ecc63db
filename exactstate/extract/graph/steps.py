"""Steps of words as integers: symbols, indices, windows, what a read-out needs of earlier steps; and input regions.

A  symbols     r  heads of a layer     S  their indices     R  rows     T  steps     K  reach
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactstate._types import MISSING, Bools, Floats, Ints
from exactstate.extract.graph.nodes import Graph, State, sources
from exactstate.extract.network import GrowingArray


@dataclass(frozen=True, eq=False)
class Region:
    """What the inputs of each symbol may be: within `radius` of a center, in every coordinate or in Euclidean norm."""

    centers: Floats
    """A n."""
    radii: Floats
    """A."""
    norm: str = "linf"


@dataclass(frozen=True)
class Delay:
    """What a read-out needs of earlier steps: (lag, layer, head), the layer -1 for the symbol itself."""

    entries: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, graph: Graph) -> Delay:
        late = {(lag, node.layer if isinstance(node, State) else -1) for node, lag in sources(graph.output) if lag}
        # the symbol tells whether the word had begun
        late |= {(lag, -1) for lag, _ in late}
        return cls(tuple(
            (lag, layer, head)
            for lag, layer in sorted(late)
            for head in range(1 if layer < 0 else len(graph.layers[layer].module.heads))
        ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Steps:
    """Some steps of a few words: the symbol of each, and the indices every layer moved to; -1 before the word began."""

    symbols: Ints
    """R T."""
    indices: tuple[Ints, ...]
    """For every layer R T r."""
    possible: Bools | None = None
    """R S: at which indices heads of the last layer that are left out may be after the last step; any by default."""

    def rows(self, which: Ints) -> Steps:
        possible = None if self.possible is None else self.possible[which]
        return Steps(self.symbols[which], tuple(part[which] for part in self.indices), possible)


class InputBook:
    """The numbered inputs of every layer as symbols and indices."""

    def __init__(self, symbols: int, heads: Sequence[Sequence[int]]) -> None:
        self.counts = [len(sizes) for sizes in heads]
        self.rows = [GrowingArray(1 + sum(self.counts[:layer]), np.int32) for layer in range(len(heads))]
        self.rows[0].append(np.arange(symbols)[:, None])

    def add(self, layer: int, inputs: Ints) -> None:
        self.rows[layer].append(self.above(layer - 1, inputs))

    def above(self, layer: int, inputs: Ints) -> Ints:
        """Rows of (symbol, indices of the layers up to this one), of (input of the layer, its indices)."""
        return np.concatenate([self.rows[layer].rows[inputs[:, 0]], inputs[:, 1:]], axis=1)

    def steps(self, rows: Ints) -> Steps:
        """R T (1 + indices) -> the parts."""
        ends = 1 + np.cumsum([0, *self.counts])
        parts = [rows[..., begin:end] for begin, end in pairwise(ends) if end <= rows.shape[-1]]
        return Steps(rows[..., 0], tuple(parts))

    def window(self, layer: int, windows: Ints) -> Steps:
        """R K numbers of inputs -> what they stand for."""
        rows = self.rows[layer].rows[np.maximum(windows, 0)]
        return self.steps(np.where(windows[..., None] >= 0, rows, MISSING))

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in self.rows)


def filled(symbols: Ints, indices: tuple[Ints, ...]) -> tuple[Ints, ...]:
    """Unknown indices of steps that have begun become 0: nothing depends on them."""
    begun = (symbols >= 0)[..., None]
    return tuple(np.where(begun & (part < 0), 0, part) for part in indices)

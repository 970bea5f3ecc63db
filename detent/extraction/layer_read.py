"""One layer of a model as it was read: its inputs, its windows, and what every head does at each of them.

A  symbols     R  windows     k  reach     d  indices of a head     S  the sum of the ds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detent.automata.running import Bools, Ints
from detent.extraction.choices import Floats
from detent.extraction.network import offsets


@dataclass(frozen=True)
class Column:
    """A column of a head's logits: where an index goes when a symbol is read, where it would go next, by how much."""

    layer: int
    head: int
    symbol: str
    index: int
    goes_to: int
    next_to: int
    margin: float

    def __str__(self) -> str:
        return (
            f"layer {self.layer}, head {self.head}: {self.symbol!r} sends index {self.index} to {self.goes_to}, "
            f"ahead of {self.next_to} by {self.margin:.3g}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerRead:
    """One layer: what it was seen to read, and what its heads do there."""

    heads: tuple[int, ...]
    """Indices of every head."""
    start: tuple[int, ...]
    inputs: Ints
    """Every input: its symbol (first layer), or the input of the layer below and the indices that layer moved to."""
    windows: Ints
    """R k: the last inputs, the newest last, -1 before the word began."""
    symbols: Ints
    """R: the symbol that is being read."""
    tables: Ints
    """R S: where every index of every head goes."""
    margins: Floats
    """R S: by how much."""
    seconds: Ints
    """R S: and where it would go next."""
    used: Bools
    """R S: whether a configuration uses that column."""

    def columns(self, head: int) -> slice:
        """Where the indices of a head stand among the S."""
        begin = offsets(self.heads)[head]
        return slice(begin, begin + self.heads[head])

    def smallest(self, symbols: int) -> tuple[Floats, ...]:
        """For every head A d: the smallest margin among the columns in use; infinite where none is."""
        margins = np.where(self.used, self.margins, np.inf)
        least = np.full((symbols, margins.shape[1]), np.inf)
        np.minimum.at(least, self.symbols, margins)
        return tuple(least[:, self.columns(head)] for head in range(len(self.heads)))

    def weakest(self, number: int, symbols: Sequence[str]) -> Column:
        """The column in use with the smallest margin; `number` is that of the layer."""
        margins = np.where(self.used, self.margins, np.inf)
        row, column = divmod(int(margins.argmin()), margins.shape[1])
        head = int(np.searchsorted(offsets(self.heads), column, side="right")) - 1
        return Column(
            layer=number, head=head, symbol=symbols[self.symbols[row]], index=column - offsets(self.heads)[head],
            goes_to=int(self.tables[row, column]), next_to=int(self.seconds[row, column]),
            margin=float(margins[row, column]),
        )  # fmt: skip

"""What was read out of a model: the tables of its heads, the configurations that words lead to, what it says there.

    A  symbols     n  configurations     F  read-outs     R  windows     S  indices of all heads of a layer

For one layer without a convolution a configuration is a joint index, a window is a symbol, and there is one table for
every head and symbol. Arrays are read-only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from detent.automata import Mealy, Moore, minimize
from detent.automata.running import Ints
from detent.errors import InvalidInput
from detent.extraction.choices import Floats
from detent.extraction.layer_read import Column, LayerRead
from detent.extraction.naming import REFUSED, by_label

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from detent.runtime import Machine, Stream
    from detent.runtime.alphabet import Word
    from detent.runtime.batches import Words


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Extracted:
    """A machine read out of a model."""

    symbols: tuple[str, ...]
    outputs: tuple[str, ...]
    """Names of the labels."""
    replies: tuple[str, ...]
    """Names of the answers, where the model gives any."""
    reach: int
    """Of the convolutions; 1 where there are none."""
    layers: tuple[LayerRead, ...]
    configurations: Ints
    """n rows: the indices of all heads of all layers, then the last reach - 1 inputs of the top layer."""
    places: Ints
    """n: the state of the grammar."""
    tables: Ints
    """A n: where each symbol leads, -1 where it may not follow."""
    finals: Ints
    """A n: which read-out is made there, -1 where the symbol may not follow."""
    read_outs: Ints
    """F rows: what each depends on, an input of the top layer and the indices it has moved to."""
    labels: Ints
    """F: the label that is said."""
    label_margins: Floats
    answers: Ints | None
    """F: the answer that is given."""
    answer_margins: Floats | None
    grammar: Moore | None
    """Which words were followed; None for all."""
    weights: str
    """SHA-256 of the weights."""
    format: str
    """The arithmetic in which logits were evaluated."""

    @property
    def heads(self) -> tuple[tuple[int, ...], ...]:
        """Indices of every head of every layer."""
        return tuple(layer.heads for layer in self.layers)

    @property
    def start(self) -> tuple[int, ...]:
        """The index of every head of every layer before the first symbol."""
        return tuple(k for layer in self.layers for k in layer.start)

    @property
    def joint_indices(self) -> int:
        """How many tuples of indices there are."""
        return prod(d for layer in self.layers for d in layer.heads)

    @cached_property
    def reached(self) -> Ints:
        """The different tuples of indices that words lead to."""
        return np.unique(self.configurations[:, : len(self.start)], axis=0)

    @property
    def head_tables(self) -> tuple[Ints, ...]:
        """For every head A d: where each symbol sends each index. For one layer without a convolution."""
        if len(self.layers) > 1 or self.reach > 1:
            raise InvalidInput(
                f"the tables of {len(self.layers)} layers with a reach of {self.reach} depend on more than the symbol; "
                "look at `layers`, where they stand window by window."
            )
        (layer,) = self.layers
        if len(layer.windows) < len(self.symbols):
            raise InvalidInput("some symbols may never be read here, so nothing is known of their tables.")
        order = np.argsort(layer.symbols)
        return tuple(layer.tables[order, layer.columns(head)] for head in range(len(layer.heads)))

    @cached_property
    def readout(self) -> Ints:
        """A n: the label said when a symbol is read in a configuration, -1 where it may not follow."""
        return np.where(self.finals >= 0, self.labels[self.finals], -1)

    @cached_property
    def machine(self) -> Mealy:
        """The whole as one machine, whose states are configurations.

        Where a symbol may not follow, it says and goes to 'refused'.
        """
        names = [f"({', '.join(map(str, row))})" for row in self.configurations.tolist()]
        if self.grammar is None:
            return Mealy(symbols=self.symbols, tables=self.tables, states=tuple(names), outputs=self.outputs,
                         readout=self.readout)  # fmt: skip
        places = (self.grammar.states[place] for place in self.places.tolist())
        states = (*(f"{name} {place}" for name, place in zip(names, places, strict=True)), REFUSED)
        refused = ((0, 0), (0, 1))
        return Mealy(
            symbols=self.symbols, states=states, outputs=(*self.outputs, REFUSED),
            tables=np.pad(np.where(self.tables < 0, len(names), self.tables), refused, constant_values=len(names)),
            readout=np.pad(
                np.where(self.readout < 0, len(self.outputs), self.readout), refused, constant_values=len(self.outputs)
            ),
        )  # fmt: skip

    @cached_property
    def minimised(self) -> Mealy:
        """The smallest machine that says the same, canonically numbered."""
        return minimize(self.machine)

    @cached_property
    def named(self) -> Moore | None:
        """The machine whose states are the labels; None when the last label does not tell what follows.

        Where no permitted word says what a symbol does to a label, it leads to 'refused'.
        """
        return by_label(self)

    @cached_property
    def margins(self) -> tuple[tuple[Floats, ...], ...]:
        """For every layer and head A d: the smallest margin of the columns in use."""
        return tuple(layer.smallest(len(self.symbols)) for layer in self.layers)

    @cached_property
    def weakest(self) -> Column:
        """The column in use with the smallest margin: where the model is closest to another machine."""
        columns = (layer.weakest(number, self.symbols) for number, layer in enumerate(self.layers))
        return min(columns, key=lambda column: column.margin)

    @cached_property
    def standalone(self) -> Machine:
        """The machine without the network, see `detent.runtime.Machine`."""
        from detent.extraction.standalone import standalone

        return standalone(self)

    def run(self, words: Words) -> Any:
        """The state of the standalone machine at the end of a word, or of every word (B)."""
        return self.standalone.run(words)

    def speak(self, word: Word) -> list[str]:
        """What is said at every symbol of a word, by name."""
        return self.standalone.speak(word)

    def stream(self) -> Stream:
        """A run that is fed piece by piece."""
        return self.standalone.stream()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the standalone machine: .json for people, .detent for programs, .dot without heads."""
        self.standalone.save(path)

    def describe(self, registers: Mapping[str, Sequence[int] | Ints] | None = None) -> str:
        """What was found, in words; `registers` are values that a person knows of every label, by name."""
        from detent.extraction.invariants import sentences

        return "\n".join(sentences(self, registers or {}))

    def __repr__(self) -> str:
        sizes = " | ".join(" ".join(map(str, heads)) for heads in self.heads)
        return f"Extracted({sizes}; {len(self.symbols)} symbols, {len(self.configurations)} configurations)"

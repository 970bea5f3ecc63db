"""A model that answers as a machine that answers: silent but where something is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from detent._types import Bools, Floats, Ints
from detent.automata import Mealy, Moore, minimize
from detent.automata.minimize import reachable
from detent.errors import InvalidInput
from detent.extract.network import offsets

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from detent.runtime import Machine, Stream
    from detent.runtime.alphabet import Word
    from detent.runtime.batches import Words

# -- Name configurations by what was said on arrival: the labels as the states of a machine.

START, REFUSED = "start", "refused"


class Labelled(Protocol):
    """What naming needs to know."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def tables(self) -> Ints: ...
    @property
    def readout(self) -> Ints: ...


def arrivals(found: Labelled) -> Ints | None:
    """The label said on arrival at every configuration, -1 where none is; None when one has several."""
    steps = found.tables >= 0
    labels = np.full(found.tables.shape[1], -1)
    labels[found.tables[steps]] = found.readout[steps]
    return labels if np.array_equal(labels[found.tables[steps]], found.readout[steps]) else None


def by_label(found: Labelled) -> Moore | None:
    """The machine whose states are the labels that are said, in the order in which they are met; None if there is none.

    A start that is never returned to is the label whose moves include its own, or a state called 'start'.
    """
    labels = arrivals(found)
    if labels is None:
        return None
    nameless, refused = len(found.outputs), len(found.outputs) + 1
    kinds = np.where(labels < 0, nameless, labels)
    symbols, before = np.nonzero(found.tables >= 0)
    moves = np.full((len(found.symbols), refused + 1), refused)
    moves[symbols, kinds[before]] = kinds[found.tables[symbols, before]]
    if not np.array_equal(moves[symbols, kinds[before]], kinds[found.tables[symbols, before]]):
        return None
    start = int(kinds[0])
    if start == nameless:
        known = moves[:, nameless, None] != refused
        same = np.where(known, moves[:, :nameless] == moves[:, nameless, None], True).all(axis=0)
        start = int(same.argmax()) if same.any() else nameless
    order = reachable(moves, start)
    number = np.zeros(refused + 1, np.int64)
    number[order] = np.arange(len(order))
    names = (*found.outputs, _unlike(START, found.outputs), _unlike(REFUSED, found.outputs))
    states = tuple(names[kind] for kind in order)
    return Moore(
        symbols=found.symbols, tables=number[moves[:, order]], states=states, outputs=states,
        readout=np.arange(len(order)),
    )  # fmt: skip


def _unlike(name: str, names: tuple[str, ...]) -> str:
    return name if name not in names else _unlike(f"{name}'", names)


# -- One layer of a model as it was read: its inputs, its windows, and what every head does at each of them.


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


# -- What was read out of a model: the tables of its heads, the configurations that words lead to, what it says there.


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
        from detent.extract.extract import standalone

        return standalone(self)

    def run(self, words: Words) -> Any:
        """The state of the standalone machine at the end of a word, or of every word (B)."""
        return self.standalone.run(words)

    def speak(self, word: Word) -> list[str]:
        """What is said at every symbol of a word, by name."""
        return self.standalone.outputs(word)

    def stream(self) -> Stream:
        """A run that is fed piece by piece."""
        return self.standalone.stream()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the standalone machine: .json for people, .detent for programs, .dot without heads."""
        self.standalone.save(path)

    def describe(self, registers: Mapping[str, Sequence[int] | Ints] | None = None) -> str:
        """What was found, in words; `registers` are values that a person knows of every label, by name."""
        from detent.extract.interpret import sentences

        return "\n".join(sentences(self, registers or {}))

    def __repr__(self) -> str:
        sizes = " | ".join(" ".join(map(str, heads)) for heads in self.heads)
        return f"Extracted({sizes}; {len(self.symbols)} symbols, {len(self.configurations)} configurations)"


SILENT = ""
NOT_UNDERSTOOD = "(not understood)"


def answering(found: Extracted, at: Sequence[str]) -> Mealy:
    """The smallest machine that gives the model's answers at these symbols and says nothing at others.

    Where the grammar lets a symbol not follow it says so, once, and falls silent for good.
    """
    if found.answers is None:
        raise InvalidInput("this model gives no answers: it has no second read-out.")
    n, outputs = found.tables.shape[1], (SILENT, *found.replies, NOT_UNDERSTOOD)
    asked = np.isin(np.array(found.symbols), list(at))[:, None]
    refused = found.tables < 0
    said = np.where(asked, 1 + found.answers[found.finals], 0)
    lost = ((0, 0), (0, 1))
    machine = Mealy(
        symbols=found.symbols, outputs=outputs,
        tables=np.pad(np.where(refused, n, found.tables), lost, constant_values=n),
        readout=np.pad(np.where(refused, len(outputs) - 1, said), lost, constant_values=0),
    )  # fmt: skip
    return minimize(machine)

"""The result of an extraction: the tables of every head, the configurations that words reach, and the read-outs there.

    A  symbols     n  configurations     R  windows     S  indices of all heads of a layer     d  indices of a head
    F  read-outs

Plain arrays, without torch: whatever is done with an extracted machine afterwards (certification, export, description)
needs this file and not the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from exactstate._types import MISSING, Bools, Floats, Ints
from exactstate.automata import Mealy, Moore, minimize
from exactstate.automata.minimize import reachable
from exactstate.errors import InvalidInput

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from exactstate.runtime import Machine, Stream
    from exactstate.runtime.alphabet import Word
    from exactstate.runtime.interpreter import Words

START, REFUSED = "start", "refused"


def head_offsets(heads: Sequence[int]) -> list[int]:
    """The position of each head's first index among the indices of all heads."""
    return [sum(heads[:h]) for h in range(len(heads))]


@dataclass(frozen=True)
class Column:
    """A column of a head's logits: the successor of an index under a symbol, the runner-up, and the margin."""

    layer: int
    head: int
    symbol: str
    index: int
    successor: int
    runner_up: int
    margin: float

    def __str__(self) -> str:
        return (
            f"layer {self.layer}, head {self.head}: {self.symbol!r} sends index {self.index} to {self.successor}, "
            f"ahead of {self.runner_up} by {self.margin:.3g}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTables:
    """One layer: its inputs, its windows, and the transition table of every head at every window."""

    heads: tuple[int, ...]
    """The number of indices of every head."""
    start: tuple[int, ...]
    """The initial index of every head."""
    inputs: Ints
    """Every input: a symbol (first layer), or an input of the layer below and the indices that layer moved to."""
    windows: Ints
    """R x kernel size: the last inputs, the newest last; -1 before the word began."""
    symbols: Ints
    """R: the symbol that is read."""
    tables: Ints
    """R S: the successor of every index of every head."""
    margins: Floats
    """R S: the margin of that choice."""
    runner_up: Ints
    """R S: the second choice."""
    used: Bools
    """R S: whether a reached configuration uses that column."""

    def columns(self, head: int) -> slice:
        """The positions of a head's indices among the S."""
        begin = head_offsets(self.heads)[head]
        return slice(begin, begin + self.heads[head])

    def smallest_margins(self, symbols: int) -> tuple[Floats, ...]:
        """For every head A d: the smallest margin among the columns in use; infinite where none is."""
        margins = np.where(self.used, self.margins, np.inf)
        least = np.full((symbols, margins.shape[1]), np.inf)
        np.minimum.at(least, self.symbols, margins)
        return tuple(least[:, self.columns(head)] for head in range(len(self.heads)))

    def weakest(self, layer: int, symbols: Sequence[str]) -> Column:
        """The column in use with the smallest margin; `layer` is the number of this layer."""
        margins = np.where(self.used, self.margins, np.inf)
        row, column = divmod(int(margins.argmin()), margins.shape[1])
        offsets = head_offsets(self.heads)
        head = int(np.searchsorted(offsets, column, side="right")) - 1
        return Column(
            layer=layer, head=head, symbol=symbols[self.symbols[row]], index=column - offsets[head],
            successor=int(self.tables[row, column]), runner_up=int(self.runner_up[row, column]),
            margin=float(margins[row, column]),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class InputRegions:
    """The inputs that stand for each symbol: a prototype and all inputs near it."""

    symbols: tuple[str, ...]
    centers: Floats
    """A n: the prototypes."""
    radii: Floats
    """A."""
    norm: str
    """'linf': every coordinate is off by at most the radius; 'l2': the Euclidean distance is."""
    format: str
    """The format in which the regions were proved; of the extraction where every radius is zero."""

    def sentence(self) -> str:
        """What is proved of the machine over the regions."""
        smallest, largest = float(self.radii.min()), float(self.radii.max())
        radius = f"{_down(smallest)}" if smallest == largest else f"{_down(smallest)} to {_down(largest)}, by symbol,"
        how = "in every coordinate" if self.norm == "linf" else "in Euclidean distance"
        return (
            f"the same on every sequence of any length whose inputs differ from the prototypes by at most {radius} "
            f"{how}; proved in {self.format}"
        )

    def cover(self, other: InputRegions) -> bool:
        """Whether these hold every input of the others."""
        same = self.symbols == other.symbols and self.norm == other.norm and np.array_equal(self.centers, other.centers)
        return same and bool((self.radii >= other.radii).all())


def _down(radius: float) -> str:
    """A radius with three digits, rounded down."""
    return f"{float(Context(prec=3, rounding=ROUND_FLOOR).create_decimal_from_float(radius)):g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundingErrors:
    """How far logits computed in a format may be from those that the margins of an extraction belong to.

    Where a margin is more than twice the error, every machine that satisfies the assumptions makes the same choice.
    Infinite where no bound is known, or where the extraction chose otherwise than the network in real numbers.
    """

    format: str
    columns: tuple[Floats, ...]
    """For every layer R S."""
    labels: Floats
    """F; where single logits do not decide, of the differences between them (see `rounding.tracing.at_risk`)."""
    answers: Floats | None
    """F, likewise."""
    assumes: tuple[str, ...]
    """What is assumed of the machine, in sentences."""
    regions: InputRegions | None = None
    """Where symbols are regions of inputs, those that the errors hold for."""

    def decide(self, extracted: Extracted) -> bool:
        """Whether every column in use, label and answer is proved."""
        pairs = [(layer.margins[layer.used], errors[layer.used]) for layer, errors in
                 zip(extracted.layers, self.columns, strict=True)]  # fmt: skip
        pairs.append((extracted.label_margins, self.labels))
        if self.answers is not None and extracted.answer_margins is not None:
            pairs.append((extracted.answer_margins, self.answers))
        return all(bool((margins > 2.0 * errors).all()) for margins, errors in pairs)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Extracted:
    """A machine read out of a model. Configuration 0 is the initial one."""

    symbols: tuple[str, ...]
    label_names: tuple[str, ...]
    answer_names: tuple[str, ...]
    """Empty if the model has no answer head."""
    kernel_size: int
    """Of the convolutions; 1 without."""
    layers: tuple[LayerTables, ...]
    configurations: Ints
    """n rows: the indices of all heads of all layers, then the last kernel_size - 1 inputs of the top layer."""
    grammar_states: Ints
    """n: the state of the grammar."""
    tables: Ints
    """A n: the successor of each configuration under each symbol; -1 where the grammar forbids it."""
    readout_ids: Ints
    """A n: the read-out made at that step; -1 where the grammar forbids it."""
    readout_inputs: Ints
    """F rows: what a read-out depends on, an input of the top layer and the indices its heads moved to."""
    label_ids: Ints
    """F: the label of every read-out."""
    label_margins: Floats
    answer_ids: Ints | None
    """F: the answer of every read-out."""
    answer_margins: Floats | None
    grammar: Moore | None
    """The grammar whose words were explored; None for all words."""
    weights: str
    """SHA-256 of the weights."""
    format: str
    """The format in which logits were evaluated."""
    source: Any = None
    """What the machine was read out of, for models written elsewhere: rounding bounds, regions and `watch` need it."""

    regions: InputRegions | None = None
    """Where symbols are input vectors, these and the inputs around them over which the tables are proved."""
    dropped: tuple[str, ...] = ()
    """Sentences: heads that were left out because they are proved to influence no output."""

    @property
    def heads(self) -> tuple[tuple[int, ...], ...]:
        """The number of indices of every head of every layer."""
        return tuple(layer.heads for layer in self.layers)

    @property
    def start(self) -> tuple[int, ...]:
        """The initial index of every head of every layer."""
        return tuple(k for layer in self.layers for k in layer.start)

    @property
    def joint_indices(self) -> int:
        """The number of tuples of indices, reached or not."""
        return prod(d for layer in self.layers for d in layer.heads)

    @cached_property
    def reached(self) -> Ints:
        """The distinct tuples of indices that words reach."""
        return np.unique(self.configurations[:, : len(self.start)], axis=0)

    @property
    def head_tables(self) -> tuple[Ints, ...]:
        """For every head A d: the successor of each index under each symbol. For one layer without a convolution."""
        if len(self.layers) > 1 or self.kernel_size > 1:
            raise InvalidInput(
                f"the tables of {len(self.layers)} layers with a kernel size of {self.kernel_size} depend on more than "
                "the symbol; see `layers`, which lists them for every window."
            )
        (layer,) = self.layers
        if len(layer.windows) < len(self.symbols):
            raise InvalidInput("the grammar permits some symbols nowhere, so their tables are not known.")
        order = np.argsort(layer.symbols)
        return tuple(layer.tables[order, layer.columns(head)] for head in range(len(layer.heads)))

    @cached_property
    def readout(self) -> Ints:
        """A n: the label when a symbol is read in a configuration; -1 where the grammar forbids it."""
        return self._by_step(self.label_ids)

    @cached_property
    def answers(self) -> Ints:
        """A n: the answer when a symbol is read in a configuration; -1 where the grammar forbids it."""
        if self.answer_ids is None:
            raise InvalidInput("this model has no answer head.")
        return self._by_step(self.answer_ids)

    def _by_step(self, ids: Ints) -> Ints:
        return np.where(self.readout_ids >= 0, ids[self.readout_ids], MISSING)

    @cached_property
    def machine(self) -> Mealy:
        """The Mealy machine whose states are the configurations.

        Symbols that the grammar forbids lead to the state 'refused' with that output.
        """
        names = [f"({', '.join(map(str, row))})" for row in self.configurations.tolist()]
        if self.grammar is None:
            return Mealy(symbols=self.symbols, tables=self.tables, states=tuple(names), outputs=self.label_names,
                         readout=self.readout)  # fmt: skip
        places = (self.grammar.states[place] for place in self.grammar_states.tolist())
        names = [f"{name} {place}" for name, place in zip(names, places, strict=True)]
        return self._with_sink(self.readout, (*self.label_names, REFUSED), states=(*names, REFUSED))

    def _with_sink(self, readout: Ints, outputs: tuple[str, ...], *, at_sink: int = -1, **fields: Any) -> Mealy:
        """Forbidden steps have the last output and lead to one more state, which is never left."""
        n, pad = self.tables.shape[1], ((0, 0), (0, 1))
        return Mealy(
            symbols=self.symbols, outputs=outputs, **fields,
            tables=np.pad(np.where(self.tables < 0, n, self.tables), pad, constant_values=n),
            readout=np.pad(np.where(self.tables < 0, len(outputs) - 1, readout), pad,
                           constant_values=at_sink % len(outputs)),
        )  # fmt: skip

    @cached_property
    def minimized(self) -> Mealy:
        """The smallest machine with the same outputs, canonically numbered."""
        return minimize(self.machine)

    @cached_property
    def named(self) -> Moore | None:
        """The machine whose states are the labels; None if the last label does not determine what follows.

        A symbol that no permitted word reads after a label leads to 'refused'.
        """
        return machine_of_labels(self)

    def answer_machine(self, at: Sequence[str], *, elsewhere: str = "", forbidden: str = REFUSED) -> Mealy:
        """The smallest machine that outputs the model's answer at the symbols `at`, and `elsewhere` at all others.

        A symbol that the grammar forbids gives `forbidden` once, and `elsewhere` for ever after.
        """
        at_symbol = np.isin(np.array(self.symbols), list(at))[:, None]
        outputs = (elsewhere, *self.answer_names, forbidden)
        return minimize(self._with_sink(np.where(at_symbol, 1 + self.answers, 0), outputs, at_sink=0))

    @cached_property
    def margins(self) -> tuple[tuple[Floats, ...], ...]:
        """For every layer and head A d: the smallest margin of the columns in use."""
        return tuple(layer.smallest_margins(len(self.symbols)) for layer in self.layers)

    @cached_property
    def weakest(self) -> Column:
        """The column in use with the smallest margin: where the model is closest to another machine."""
        columns = (layer.weakest(number, self.symbols) for number, layer in enumerate(self.layers))
        return min(columns, key=lambda column: column.margin)

    def to_machine(self, about: Mapping[str, Any] | None = None) -> Machine:
        """The smallest machine with the same outputs, to be run, saved and exported without the network.

        Its states are named by the labels where these determine what follows. One layer without a convolution brings
        its heads along, to be run instead where that is cheaper. `about` is saved with the machine.
        """
        from exactstate.runtime import Heads, Machine

        automaton = self.minimized if self.grammar is not None or self.named is None else self.named
        heads = None
        if len(self.layers) == 1 and self.kernel_size == 1 and self.grammar is None:
            heads = Heads(self.head_tables, self.start)
        return Machine.of(automaton, heads=heads, about={"weights": self.weights, **(about or {})})

    @cached_property
    def standalone(self) -> Machine:
        """The machine without the network, see `to_machine`."""
        return self.to_machine()

    def run(self, words: Words) -> Any:
        """The state of the standalone machine at the end of a word, or of every word (B)."""
        return self.standalone.run(words)

    def outputs(self, word: Word) -> list[str]:
        """The name of the output at every symbol of a word."""
        return self.standalone.outputs(word)

    def stream(self) -> Stream:
        """A run of the standalone machine that is fed piece by piece."""
        return self.standalone.stream()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the standalone machine: .json for people, .exactstate for programs, .dot without heads."""
        self.standalone.save(path)

    def watch(self, x: Any, state: Any = None) -> Any:
        """Run the network on real inputs (L n): a `Watched`, with labels, margins and inputs outside all regions."""
        if not hasattr(self.source, "watch"):
            raise InvalidInput(
                "watch is for machines of traced models whose symbols are input vectors: extract with inputs={...}."
            )
        return self.source.watch(self, x, state)

    def describe(self, registers: Mapping[str, Sequence[Any] | Ints] | None = None) -> str:
        """A description in sentences; `registers` maps the name of a known quantity to its value at every label."""
        from exactstate.extract.interpret import sentences

        lines = [*sentences(self, registers or {}), *self.dropped]
        if self.regions is not None and self.regions.radii.any():
            lines.append(self.regions.sentence())
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = " | ".join(" ".join(map(str, heads)) for heads in self.heads)
        return f"Extracted({sizes}; {len(self.symbols)} symbols, {len(self.configurations)} configurations)"


def labels_on_arrival(extracted: Extracted) -> Ints | None:
    """n: the label of the steps that lead to every configuration, -1 if none does; None if one has several."""
    steps = extracted.tables >= 0
    labels = np.full(extracted.tables.shape[1], MISSING)
    labels[extracted.tables[steps]] = extracted.readout[steps]
    return labels if np.array_equal(labels[extracted.tables[steps]], extracted.readout[steps]) else None


def machine_of_labels(extracted: Extracted) -> Moore | None:
    """The machine whose states are the labels, in the order in which words reach them; None if there is none.

    An initial configuration that is never returned to is the label whose transitions include its own, or a state called
    'start'.
    """
    labels = labels_on_arrival(extracted)
    if labels is None:
        return None
    names = extracted.label_names
    unlabeled, refused = len(names), len(names) + 1
    states = np.where(labels < 0, unlabeled, labels)
    symbols, before = np.nonzero(extracted.tables >= 0)
    after = states[extracted.tables[symbols, before]]
    tables = np.full((len(extracted.symbols), refused + 1), refused)
    tables[symbols, states[before]] = after
    if not np.array_equal(tables[symbols, states[before]], after):
        return None
    start = int(states[0])
    if start == unlabeled:
        known = tables[:, unlabeled, None] != refused
        same = np.where(known, tables[:, :unlabeled] == tables[:, unlabeled, None], True).all(axis=0)
        start = int(same.argmax()) if same.any() else unlabeled
    order = reachable(tables, start)
    number = np.zeros(refused + 1, np.int64)
    number[order] = np.arange(len(order))
    all_names = (*names, _unused(START, names), _unused(REFUSED, names))
    reached = tuple(all_names[state] for state in order)
    return Moore(
        symbols=extracted.symbols, tables=number[tables[:, order]], states=reached, outputs=reached,
        readout=np.arange(len(order)),
    )  # fmt: skip


def _unused(name: str, names: tuple[str, ...]) -> str:
    return name if name not in names else _unused(f"{name}'", names)

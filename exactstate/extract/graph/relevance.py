"""Heads that cannot influence any output: proved, and dropped before the machine is explored.

A head may be at any of its indices. If, wherever the other heads lead, the tables of every layer above and the label
are the same for all of them, the head influences nothing that is put out, and the machine without it computes the same.

The proof explores the machine of the heads that are kept, with the contribution of the others enclosed (for linear
forms, the smallest over their indices, head by head). Every choice that is met must be ahead for all of them, in real
numbers. By induction on the steps, the kept heads move as in the whole network and the labels are its labels. Which
heads to try is a guess, by the size of their contributions; what is dropped is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from exactstate._types import Ints
from exactstate.errors import BudgetExceeded, InvalidInput
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.explore import Budget, explore
from exactstate.extract.graph.arithmetic import EXACT
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.graph.leads import LeadBounds
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.steps import Steps

Heads = tuple[tuple[int, ...], ...]
"""For every layer the numbers of some heads."""


class NotProved(Exception):
    """A choice that the dropped heads might change."""


class ReducedNetwork(TracedNetwork):
    """A traced network without some heads: those stay at index 0, and every choice is proved for all their indices."""

    def __init__(self, whole: TracedNetwork, dropped: Heads) -> None:
        self.__dict__.update(whole.__dict__)
        self.whole, self.dropped = whole, dropped
        self.kept = tuple(
            tuple(head for head in range(len(block.heads)) if head not in out)
            for block, out in zip(whole.blocks, dropped, strict=True)
        )
        self.heads = tuple(
            tuple(sizes[head] for head in kept) for sizes, kept in zip(whole.heads, self.kept, strict=False)
        )
        self.start = tuple(
            tuple(start[head] for head in kept) for start, kept in zip(whole.start, self.kept, strict=False)
        )
        self.book = type(whole.book)(whole.symbols, whole.heads)
        self.bounds = LeadBounds(self, EXACT, whole.region, dropped)
        self.proving = True

    def _full(self, layer: int, indices: Ints) -> Ints:
        """Indices of all heads of a layer, 0 for those that are dropped."""
        full = np.zeros((len(indices), len(self.blocks[layer].heads)), np.int64)
        full[:, list(self.kept[layer])] = indices
        return full

    def _columns(self, layer: int) -> Ints:
        """The columns of the kept heads among those of all heads."""
        offsets = np.cumsum([0, *self.blocks[layer].heads])
        return np.concatenate([np.arange(offsets[head], offsets[head + 1]) for head in self.kept[layer]]).astype(int)

    def _inputs(self, layer: int, inputs: Ints) -> Ints:
        return np.concatenate([inputs[:, :1], self._full(layer, inputs[:, 1:])], axis=1)

    def add_inputs(self, layer: int, inputs: Ints) -> None:
        self.book.add(layer, self._inputs(layer - 1, inputs))

    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        tables = super().tables(layer, windows)
        columns = self._columns(layer)
        best = tables.best[:, columns]
        leads = self.bounds.layer(layer, windows, best, "linear")
        if not (leads > 0).all():
            raise NotProved
        margins = np.where(np.isinf(tables.margins[:, columns]), np.inf, np.minimum(leads, tables.margins[:, columns]))
        return ArgmaxMargins(best, margins, tables.runner_up[:, columns])

    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        begin = 0
        for labels, answers in super().read_out(self._inputs(len(self.blocks) - 1, inputs)):
            some = inputs[begin : begin + len(labels.best)]
            begin += len(labels.best)
            leads = self.bounds.labels(some, labels.best, "linear")
            if not (leads > 0).all():
                raise NotProved
            yield ArgmaxMargins(labels.best, np.minimum(leads, labels.margins), labels.runner_up), answers

    def read_steps(self, inputs: Ints) -> Steps:
        full = inputs
        if inputs.shape[1] == 1 + len(self.kept[-1]) and len(self.kept[-1]) < len(self.blocks[-1].heads):
            full = self._inputs(len(self.blocks) - 1, inputs)
        return super().read_steps(full)


TRIAL = Budget(configurations=20_000, seconds=20.0)
"""Of one attempt: more configurations than that are not worth an attempt."""
FEW = 6
"""With at most so many heads, nothing is gained by dropping some."""


def drop_irrelevant(network: TracedNetwork) -> tuple[TracedNetwork, tuple[str, ...]]:
    """(the network without the heads that are proved to influence nothing, sentences about them)."""
    order = ranked(network)
    if network.delay.entries or network.graph.opaque() is not None or len(order) <= FEW:
        return network, ()
    low, high = 0, len(order) - 1
    found: ReducedNetwork | None = None
    while low < high:  # the largest number of the least influential heads that can be dropped
        count = (low + high + 1) // 2
        reduced = _tried(network, order[:count])
        if reduced is not None:
            low, found = count, reduced
        else:
            high = count - 1
    if found is None:
        return network, ()
    return found, tuple(
        f"layer {layer}: {len(out)} of {len(block.heads)} heads are left out ({', '.join(map(str, out))}); whatever "
        "their indices, no table in use and no label changes (proved in real numbers, by linear relaxation)"
        for layer, (block, out) in enumerate(zip(network.blocks, found.dropped, strict=True)) if out
    )  # fmt: skip


def ranked(network: TracedNetwork) -> list[tuple[int, int]]:
    """(layer, head), from the smallest spread of contributions to the largest."""
    bounds = IntervalBounds(network.graph, EXACT, Steps(np.zeros((0, 1), int), ()))
    spread = {}
    for layer, block in enumerate(network.blocks):
        for head in range(len(block.heads)):
            added = bounds.contributions(layer, head)
            spread[layer, head] = float(np.linalg.norm(added - added.mean(0), axis=1).max())
    return sorted(spread, key=spread.__getitem__)


def _tried(network: TracedNetwork, heads: Sequence[tuple[int, int]]) -> ReducedNetwork | None:
    """The network without these heads, if a proof succeeds."""
    dropped = tuple(tuple(sorted(head for at, head in heads if at == layer)) for layer in range(len(network.blocks)))
    if any(len(out) == len(block.heads) for out, block in zip(dropped, network.blocks, strict=True)):
        return None
    reduced = ReducedNetwork(network, dropped)
    symbols = network.symbols
    loop = np.zeros((symbols, 1), np.int64)
    try:
        explore(reduced, loop, loop == 0, 0, TRIAL)
    except (NotProved, BudgetExceeded, InvalidInput):
        return None
    return ReducedNetwork(network, dropped)

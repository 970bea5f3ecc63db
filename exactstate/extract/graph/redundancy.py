"""Heads that say nothing beyond what other heads say: proved, and left out before the machine is explored.

    A  symbols     n  configurations of the kept heads     S  indices of all heads     r  heads

A wide layer that was trained holds the same facts several times, and heads that follow the word in ways that no label
depends on. All tuples of indices are far too many to explore. A few heads are kept instead. Beside every configuration
of theirs stands, for each other head, the set of indices it may be at: a fixed point, since a step moves sets of
indices like indices. A copy of what the kept heads hold has one index there, a head that goes its own way many. Then
the label is proved to lead for every tuple of possible indices (linear relaxation, with branch and bound over the
indices). Tuples that never occur are included: the proof may fail where the machine is right, and never the other way.

Which heads to keep is a guess from random words; what is left out is proved. For models of one NFSM layer over tokens:
there no table depends on a head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from exactstate._types import Bools, Ints
from exactstate.errors import BudgetExceeded, InvalidInput
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.explore import Explored, explore
from exactstate.extract.graph.arithmetic import EXACT, Arithmetic
from exactstate.extract.graph.branch import Parted
from exactstate.extract.graph.leads import LeadBounds
from exactstate.extract.graph.network import TracedNetwork, layer_output
from exactstate.extract.graph.relevance import FEW, TRIAL, ReducedNetwork

WORDS, LENGTH = 64, 96
"""Random words by which the heads to keep are guessed."""
ATTEMPTS, TRIAL_PARTS = 3, 4_000
"""After a proof that failed, more heads are kept in the next attempt."""
NEARLY = 2.5
"""Heads with at most so many possible indices on average hold the state, but for a few configurations."""
SHARE = 0.002
"""Of the margin that the proof must leave, so that rounding has room."""


class DeterminedNetwork(ReducedNetwork):
    """A traced network of a few heads, with the indices that the others may be at beside every configuration."""

    def __init__(self, whole: TracedNetwork, kept: tuple[int, ...]) -> None:
        every = range(len(whole.blocks[0].heads))
        super().__init__(whole, (tuple(head for head in every if head not in kept),))
        self.explored: Explored | None = None
        self._sets: dict[str, dict[bytes, Bools]] = {}
        self._labels: dict[bytes, tuple[int, float, int]] = {}

    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        tables, columns = TracedNetwork.tables(self, layer, windows), self._columns(layer)
        return ArgmaxMargins(tables.best[:, columns], tables.margins[:, columns], tables.runner_up[:, columns])

    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        """Labels that are proved, once they are; before, those of one tuple of indices."""
        if not self._labels:
            yield from TracedNetwork.read_out(self, self._inputs(0, inputs))
            return
        held = [self._labels[_key(row)] for row in inputs]
        best, margins, runner_up = (np.array(part) for part in zip(*held, strict=True))
        yield ArgmaxMargins(best.astype(np.int32), margins, runner_up.astype(np.int32)), None

    def possible(self, arithmetic: Arithmetic, inputs: Ints) -> Bools | None:
        """R S: the indices that a machine of this arithmetic may be at when these read-outs are made."""
        sets = self._sets.get(repr(arithmetic))
        if sets is None:
            sets = self._sets[repr(arithmetic)] = self._fixed_point(arithmetic)
        return np.stack([sets[_key(row)] for row in inputs]) if len(inputs) else np.zeros((0, self._total), bool)

    @property
    def _total(self) -> int:
        return sum(self.blocks[0].heads)

    def _fixed_point(self, arithmetic: Arithmetic) -> dict[bytes, Bools]:
        """For every read-out (symbol, indices of the kept heads) the possible indices of all heads."""
        assert self.explored is not None
        moves = self._moves(arithmetic)
        explored, heads = self.explored, self.blocks[0].heads
        n, offsets = len(explored.configurations), np.cumsum([0, *heads])
        rows = self._windows()
        beside = np.zeros((n, self._total), bool)
        beside[0, offsets[:-1] + np.array(self.blocks[0].config.initial_state)] = True
        read = np.zeros((len(explored.readout_inputs), self._total), bool)
        changed: Bools = np.zeros(n, bool)
        changed[0] = True
        while changed.any():
            before = beside.copy()
            for symbol in range(self.symbols):
                sources = np.flatnonzero(changed)
                # a set moves to the union of where its indices may move
                after = np.einsum("qk,qkj->qj", beside[sources], moves[rows[sources, symbol]]) > 0
                np.logical_or.at(beside, explored.tables[symbol, sources], after)
                np.logical_or.at(read, explored.readout_ids[symbol, sources], after)
            changed = (beside != before).any(1)
        return {_key(row): mask for row, mask in zip(explored.readout_inputs, read, strict=True)}

    def _windows(self) -> Ints:
        """n A: the window of every step, by its number among `self._seen`."""
        assert self.explored is not None
        memory = self.explored.configurations[:, len(self.kept[0]) :]
        n, A = len(memory), self.symbols
        windows = np.concatenate([np.repeat(memory, A, axis=0), np.tile(np.arange(A), n)[:, None]], axis=1)
        self._seen, numbers = np.unique(windows, axis=0, return_inverse=True)
        return numbers.reshape(n, A)

    def _moves(self, arithmetic: Arithmetic) -> Bools:
        """windows S S: where an index may move; anywhere in its head where the lead is not proved."""
        self._windows()
        heads, offsets = self.blocks[0].heads, np.cumsum([0, *self.blocks[0].heads])
        best = TracedNetwork.tables(self, 0, self._seen).best
        leads = LeadBounds(self.whole, arithmetic, self.region).layer(0, self._seen, best, "linear")
        moves = np.zeros((len(best), self._total, self._total), bool)
        for head, d in enumerate(heads):
            columns = np.arange(offsets[head], offsets[head] + d)
            moves[np.arange(len(best))[:, None], columns, offsets[head] + best[:, columns]] = True
            if head not in self.kept[0]:  # the kept heads are proved by themselves
                window, column = np.nonzero(~(leads[:, columns] > 0))
                moves[window, offsets[head] + column, offsets[head] : offsets[head] + d] = True
        return moves

    def prove(self) -> Parted:
        """By how much every label leads for all possible indices, in real numbers."""
        loop = np.zeros((self.symbols, 1), np.int64)
        self.explored = explore(self, loop, loop == 0, 0, TRIAL)
        inputs = self.explored.readout_inputs
        possible = self.possible(EXACT, inputs)
        assert possible is not None
        labels = self._at_one_tuple(inputs, possible)
        parted = LeadBounds(self, EXACT, self.region, self.dropped).parted(
            replace(self.read_steps(inputs), possible=possible), labels.best, SHARE * labels.margins, TRIAL_PARTS
        )
        if parted.blamed < 0:
            margins = np.minimum(parted.leads, labels.margins)
            self._labels = {_key(row): (int(best), float(margin), int(second)) for row, best, margin, second in
                            zip(inputs, labels.best, margins, labels.runner_up, strict=True)}  # fmt: skip
        return parted

    def more(self, blamed: int) -> tuple[int, ...]:
        """Heads to keep after a proof that failed: those that are nearly determined, since keeping them adds few
        configurations, or the one that is to blame."""
        possible = self.possible(EXACT, self.explored.readout_inputs) if self.explored is not None else None
        assert possible is not None
        offsets = np.cumsum([0, *self.blocks[0].heads])
        counts = np.add.reduceat(possible, offsets[:-1], axis=1, dtype=np.int64).mean(0)
        nearly = [head for head in self.dropped[0] if 1 < counts[head] <= NEARLY]
        return tuple(sorted((*self.kept[0], *(nearly or [blamed]))))

    def _at_one_tuple(self, inputs: Ints, possible: Bools) -> ArgmaxMargins:
        """Labels where every head that is left out is at the first of its possible indices."""
        rows, offsets = self._inputs(0, inputs), np.cumsum([0, *self.blocks[0].heads])
        for head in self.dropped[0]:
            rows[:, 1 + head] = possible[:, offsets[head] : offsets[head + 1]].argmax(1)
        return ArgmaxMargins.joined([labels for labels, _ in TracedNetwork.read_out(self, rows)], axis=0)

    def sentence(self) -> str:
        out = self.dropped[0]
        return (
            f"layer 0: {len(out)} of {len(self.blocks[0].heads)} heads are left out ({', '.join(map(str, out))}); "
            "wherever they can be beside a configuration of the others, no label changes (proved in real numbers, by "
            "linear relaxation and branch and bound)"
        )


def _key(row: Ints) -> bytes:
    return np.ascontiguousarray(row, np.int64).tobytes()


def drop_redundant(network: TracedNetwork) -> tuple[TracedNetwork, tuple[str, ...]]:
    """(the network of a few heads that are proved to determine every label, a sentence about the others)."""
    if len(network.blocks) != 1 or network.delay.entries or network.vectors is not None:
        return network, ()
    if len(network.blocks[0].heads) <= FEW or network.graph.opaque() is not None:
        return network, ()
    kept = guessed(network)
    for _ in range(ATTEMPTS if kept else 0):
        determined = DeterminedNetwork(network, kept)
        try:
            blamed = determined.prove().blamed
        except (BudgetExceeded, InvalidInput):
            break
        if blamed < 0:
            return determined, (determined.sentence(),)
        kept = determined.more(blamed)
    return network, ()


def guessed(network: TracedNetwork) -> tuple[int, ...]:
    """Heads to keep: few, with few tuples of indices, that determine the label on random words; () where none do."""
    rows, labels = _on_random_words(network)
    r = rows.shape[1] - 1

    def judged(kept: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return (*_undetermined(rows[:, [0, *(1 + head for head in kept)]], labels), kept)

    best = sorted(judged(kept) for count in range(1, min(3, r - 1) + 1) for kept in combinations(range(r), count))
    wrong, _, kept = best[0]
    while wrong and len(kept) < r // 2:
        wrong, _, kept = min(judged(tuple(sorted((*kept, head)))) for head in range(r) if head not in kept)
    return () if wrong else kept


def _on_random_words(network: TracedNetwork) -> tuple[Ints, Ints]:
    """(the last symbol and the indices, the label) after every prefix of random words."""
    words = torch.from_numpy(np.random.default_rng(0).integers(0, network.symbols, (WORDS, LENGTH)))
    block = network.blocks[0]
    with torch.no_grad():
        states = block.states(network.traced.evaluate(words, {}, 0))
        logits = network.traced.evaluate(words, {0: layer_output(block, states)}, 1)
    rows = torch.cat([words[:, :, None], states], -1).flatten(0, 1)
    return rows.numpy().astype(np.int64), logits.argmax(-1).flatten().numpy()


def _undetermined(rows: Ints, labels: Ints) -> tuple[int, int]:
    """(prefixes whose label is not the most frequent one of their row, different rows)."""
    codes = np.zeros(len(rows), np.int64)
    for column in rows.T:
        codes = np.unique(codes * (column.max() + 1) + column, return_inverse=True)[1]
    pairs, counts = np.unique(codes * (labels.max() + 1) + labels, return_counts=True)
    _, first = np.unique(pairs // (labels.max() + 1), return_index=True)
    return int(len(labels) - np.maximum.reduceat(counts, first).sum()), len(first)

"""State merging: a small machine that agrees with a prefix tree, by merging nodes that no output distinguishes.

    A  symbols     n  states     k  outputs

Blue-fringe state merging (Lang, Pearlmutter and Price 1998, https://doi.org/10.1007/BFb0054059) for machines with
outputs on states (Moore, DFA) or on transitions (Mealy). Some nodes are states; a child of a state that is not one
itself is merged into the state with which it agrees best, or becomes a state where it contradicts them all.

- Score: the sum over agreeing outputs of minus the logarithm of their share: rare outputs say more than common ones.
  Where states score the same, the child is merged into the one that most transitions lead to.
- Order: the child that most traces visit first ("visits"); the first by length, then by symbols ("shortlex", as in
  RPNI); the merge with the most evidence among all children ("evidence", as in EDSM); that which is furthest ahead of
  the second best for its child ("margin").
- Noise: with a share of wrong outputs nothing contradicts anything. A merge is scored by the logarithm of its Bayes
  factor: how much likelier the outputs are if the two nodes are one state. Output o is drawn with prior p(o) at this
  symbol and is seen right with probability 1 - noise; scores are integers, in units of 2^-20.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from exactstate import native
from exactstate._types import MISSING, Ints
from exactstate.errors import InvalidConfig
from exactstate.learning.prefix_tree import PrefixTree, TreeArrays
from exactstate.native import address

Kind = Literal["mealy", "moore", "dfa"]
Order = Literal["visits", "evidence", "margin", "shortlex"]
ORDERS: tuple[Order, ...] = get_args(Order)
UNIT = 1 << 20
"""Of the scores with noise."""
PAIRS_PER_CALL = 1 << 22
"""Node pairs that are folded in one call; between two calls Control-C is heard."""


@dataclass(frozen=True, eq=False)
class MergedStates:
    """A machine that may be partial; state 0 is the start."""

    tables: Ints
    """A n: the state after each symbol at each state, MISSING where that was never seen."""
    readout: Ints
    """A n (Mealy) or n: the output, MISSING where none was seen."""
    visits: Ints
    """A n: how often each transition was seen."""
    disagreeing: int
    """Observed outputs that differ from those of the machine; 0 without noise."""

    @property
    def n_states(self) -> int:
        return int(self.tables.shape[1])

    def count_wrong(self, inputs: Ints, outputs: Ints) -> int:
        """The number of words (B L) with an output that is wrong or not known."""
        n, mealy = self.n_states, self.readout.ndim == 2
        tables = np.pad(np.where(self.tables == MISSING, n, self.tables), ((0, 0), (0, 1)), constant_values=n)
        readout = np.pad(self.readout, ((0, 0), (0, 1)) if mealy else (0, 1), constant_values=MISSING)
        state, bad = np.zeros(len(inputs), np.int64), np.zeros(len(inputs), bool)
        for symbol, wanted in zip(inputs.T, outputs.T, strict=True):
            after = tables[symbol, state]
            bad |= (readout[symbol, state] if mealy else readout[after]) != wanted
            state = after
        return int(bad.sum())


def merge_states(
    tree: PrefixTree, *, symbols: int, outputs: int, kind: Kind = "mealy", noise: float = 0.0,
    order: Order | None = None, max_states: int | None = None, max_comparisons: int | None = None,
    refused: int | None = None,
) -> MergedStates | None:  # fmt: skip
    """A machine that agrees with the whole tree; None where it takes more states or comparisons.

    - `symbols`, `outputs`: how many there are.
    - `noise`: the share of wrong outputs; 0 for a tree without contradictions.
    - `order`: by default "evidence" for a DFA, "visits" otherwise.
    - `refused`: the number of a merge, from 0, that is taken for a contradiction; for "evidence" and "margin" without
      noise.
    """
    if not 0 <= noise < 0.5:
        raise InvalidConfig(f"the share of wrong outputs is at least 0 and less than a half; got {noise}.")
    arrays, mealy = tree.arrays, kind == "mealy"
    if noise == 0 and len(arrays.contradictions):
        raise InvalidConfig("the tree has contradictory outputs; give the share of wrong ones as noise=.")
    number = ORDERS.index(order or ("evidence" if kind == "dfa" else "visits"))
    rank = arrays.ranks
    prior, right, wrong = _weights(arrays, symbols, outputs, mealy, noise)
    merger = _Merger(
        arrays, mealy=mealy, noisy=noise > 0, order=number, rank=rank, prior=prior, right=right, wrong=wrong,
        refused=MISSING if refused is None else refused,
    )  # fmt: skip
    most = len(arrays.parent) if max_states is None else max_states
    left = max_comparisons
    while (status := merger.run(most, PAIRS_PER_CALL if left is None else min(left, PAIRS_PER_CALL))) == 0:
        left = None if max_comparisons is None else max_comparisons - merger.work
        if left is not None and left <= 0:
            return None
    return machine_of(arrays, merger.state_of(), symbols, outputs, mealy) if status == 1 else None


def machine_of(tree: TreeArrays, state_of: Ints, symbols: int, outputs: int, mealy: bool) -> MergedStates:
    """The machine of a partition of the tree's nodes; where outputs differ, the most frequent one counts."""
    n, state_of = int(state_of.max()) + 1, np.ascontiguousarray(state_of, np.int32)
    tables, visits = np.empty((2, symbols, n), np.int64)
    readout = np.empty((symbols, n) if mealy else n, np.int64)
    wrong = native.library().exactstate_partition_machine(
        *(address(a) for a in (tree.parent, tree.symbol, tree.visits)), len(tree.parent),
        *(address(a) for a in (tree.node, tree.output, tree.count)), len(tree.node), address(state_of), n,
        symbols, outputs, int(mealy), *(address(a) for a in (tables, readout, visits)),
    )  # fmt: skip
    return MergedStates(tables, readout, visits, int(wrong))


def _sums(place: Ints, count: Ints, size: int) -> Ints:
    """Sums of the counts at every place; exact below 2^53."""
    return np.bincount(place, count, size).astype(np.int64)


def _weights(tree: TreeArrays, symbols: int, outputs: int, mealy: bool, noise: float) -> tuple[Ints, int, int]:
    """(log priors, log weights of a right and of a wrong output), in units."""
    rows = symbols if mealy else 1
    row, output, count = tree.of_transitions if mealy else (0, tree.output, tree.count)
    seen = 0.5 + _sums(row * outputs + output, count, rows * outputs).reshape(rows, outputs)
    prior = np.round(UNIT * np.log(seen / seen.sum(axis=1, keepdims=True))).astype(np.int64)
    if noise == 0:
        return prior, 0, 0
    wrong = math.log(noise / max(outputs - 1, 1))
    return prior, round(UNIT * math.log(1 - noise)), round(UNIT * wrong)


class _Merger:
    """The compiled merger."""

    def __init__(
        self, tree: TreeArrays, *, mealy: bool, noisy: bool, order: int, rank: Ints, prior: Ints, right: int,
        wrong: int, refused: int,
    ) -> None:  # fmt: skip
        self.library, self.nodes = native.library(), len(tree.parent)
        prior = np.ascontiguousarray(prior, np.int64)
        symbols, outputs = int(tree.symbol.max()) + 1, prior.shape[1]
        self.handle = self.library.exactstate_merger_new(
            *(address(a) for a in (tree.parent, tree.symbol, tree.visits)), self.nodes,
            *(address(a) for a in (tree.node, tree.output, tree.count)), len(tree.node), int(mealy), int(noisy),
            order, address(rank), symbols, outputs, address(prior), right, wrong, refused,
        )  # fmt: skip
        weakref.finalize(self, self.library.exactstate_merger_free, self.handle)

    @property
    def work(self) -> int:
        return int(self.library.exactstate_merger_work(self.handle))

    def run(self, most_states: int, work: int) -> int:
        return int(self.library.exactstate_merger_run(self.handle, most_states, work))

    def state_of(self) -> Ints:
        states = np.empty(self.nodes, np.int32)
        self.library.exactstate_merger_export(self.handle, address(states))
        return states

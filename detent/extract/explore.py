"""Every configuration that a stack of layers can reach, breadth-first, by evaluating the network only where it is new.

    A  symbols     n  configurations     s  layers     r  heads of a layer     k  reach of the convolutions

After any prefix the model is in one of finitely many configurations: the indices of every layer, and what the
convolutions remember. Layer l remembers its last k - 1 inputs; an input of layer l is the token and the indices of the
layers below, so the inputs that the top layer remembers tell what all layers do. A configuration is written

    indices of all heads of all layers | the last k - 1 inputs of the top layer, -1 before the word began | place

where the place is the state of a grammar, whose refused words are not followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from detent._types import Bools, Ints
from detent.errors import BudgetExceeded, InvalidConfig
from detent.extract.network import Choices, Growing, Network, Numbering, offsets

# -- How much an exploration may cost, and the sentence for one that costs more.

GIGABYTE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of an exploration; each is looked at after every few thousand configurations."""

    configurations: int = 4_000_000
    seconds: float = 3600.0
    memory: int = 4 * GIGABYTE
    """Bytes, about: what the exploration itself holds."""
    begun: float = field(default_factory=time.monotonic, init=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.configurations, self.seconds, self.memory) <= 0:
            raise InvalidConfig(f"the limits of an exploration are positive; got {self}.")

    def afresh(self) -> Budget:
        """The same limits, the clock set to zero."""
        return Budget(configurations=self.configurations, seconds=self.seconds, memory=self.memory)

    def refuse(self, reached: int, waiting: int, nbytes: int) -> None:
        """Raise the error for what was found so far, if that is too much."""
        seconds = time.monotonic() - self.begun
        for name, spent, limit, unit in (
            ("configurations", reached, self.configurations, "configurations"),
            ("seconds", seconds, self.seconds, "seconds"),
            ("memory", nbytes, self.memory, "bytes"),
        ):
            if spent > limit:
                raise BudgetExceeded(
                    f"this model reached {reached:,} configurations ({waiting:,} of them not yet followed) "
                    f"in {seconds:.0f} s and {nbytes / GIGABYTE:.1f} GB, and it was allowed {limit:,} {unit}; "
                    f"give a larger Budget({name}=...), or a grammar, so that only its words are explored."
                )


AT_ONCE = 1 << 16
"""Steps that are followed at a time."""
Progress = Callable[[int, int], None]
"""Told how many configurations were reached and how many of them are waiting."""


class Level:
    """What is known of one layer: its inputs, its windows, and the table of every head at every window."""

    def __init__(self, network: Network, layer: int) -> None:
        self.network, self.layer = network, layer
        heads = network.heads[layer]
        self.inputs = Numbering(1 + (len(network.heads[layer - 1]) if layer else 0))
        self.windows = Numbering(network.reach)
        self.columns = np.array(offsets(heads))
        self.best, self.seconds = Growing(sum(heads), np.int32), Growing(sum(heads), np.int32)
        self.margins, self.used = Growing(sum(heads), np.float64), Growing(sum(heads), np.bool_)
        if not layer:
            self.inputs.of(np.arange(network.symbols)[:, None])

    def enter(self, below: Ints, indices: Ints) -> Ints:
        """The numbers of inputs, given those of the layer below and the indices it has moved to."""
        known = len(self.inputs)
        numbers = self.inputs.of(np.concatenate([below[:, None], indices], axis=1))
        if len(self.inputs) > known:
            self.network.enter(self.layer, self.inputs.rows[known:])
        return numbers

    def below(self, inputs: Ints) -> Ints:
        """The inputs of the layer below that belong to these, -1 where the word had not begun."""
        found = np.full_like(inputs, -1)
        found[inputs >= 0] = self.inputs.rows[inputs[inputs >= 0], 0]
        return found

    def step(self, windows: Ints, indices: Ints) -> Ints:
        """The indices after a step that reads these windows."""
        known = len(self.windows)
        rows = self.windows.of(windows)
        if len(self.windows) > known:
            found = self.network.tables(self.layer, self.windows.rows[known:])
            self.best.append(found.best)
            self.seconds.append(found.seconds)
            self.margins.append(found.margins)
            self.used.append(np.zeros_like(found.best, bool))
        at = rows[:, None], self.columns + indices
        self.used.rows[at] = True
        return self.best.rows[at]

    @property
    def nbytes(self) -> int:
        parts = (self.inputs, self.windows, self.best, self.seconds, self.margins, self.used)
        return sum(part.nbytes for part in parts)


@dataclass(frozen=True, eq=False)
class Explored:
    """What an exploration found; configuration 0 is the start."""

    levels: list[Level]
    configurations: Ints
    """n rows of integers, as above, without the place."""
    places: Ints
    """n: the state of the grammar."""
    tables: Ints
    """A n: where each symbol leads, -1 where it may not follow."""
    finals: Ints
    """A n: the number of the read-out that is made there, -1 where the symbol may not follow."""
    read_outs: Ints
    """What every read-out depends on: the input of the top layer, and the indices it has moved to."""
    labels: Choices
    """What is said at every read-out."""
    answers: Choices | None


def explore(
    network: Network, rules: Ints, permitted: Bools, place: int, budget: Budget, progress: Progress | None = None
) -> Explored:
    """Follow every permitted word: `rules` and `permitted` (A g) are the moves of a grammar that begins at `place`."""
    budget = budget.afresh()
    levels = [Level(network, layer) for layer in range(len(network.heads))]
    found, finals = _begin(network, place), Numbering(1 + len(network.heads[-1]))
    to, said = Growing(network.symbols, np.int32), Growing(network.symbols, np.int32)
    at_once = max(1, AT_ONCE // network.symbols)
    while len(to) < len(found):
        rows = found.rows[len(to) : len(to) + at_once]
        which, symbols = np.nonzero(permitted[:, rows[:, -1]].T)
        after, reads = _step(levels, network, rows[which], symbols)
        after = np.concatenate([after, rules[symbols, rows[which, -1]][:, None]], axis=1)
        for kept, numbers in ((to, found.of(after)), (said, finals.of(reads))):
            moves = np.full((len(rows), network.symbols), -1, np.int32)
            moves[which, symbols] = numbers
            kept.append(moves)
        nbytes = found.nbytes + finals.nbytes + to.nbytes + said.nbytes + sum(level.nbytes for level in levels)
        budget.refuse(len(found), len(found) - len(to), nbytes + network.nbytes)
        if progress is not None:
            progress(len(found), len(found) - len(to))
    labels, answers = _read_out(network, finals.rows, lambda: budget.refuse(len(found), 0, 0))
    rows = found.rows
    return Explored(levels, rows[:, :-1], rows[:, -1], to.rows.T, said.rows.T, finals.rows, labels, answers)


def _begin(network: Network, place: int) -> Numbering:
    home = [k for layer in network.home for k in layer]
    start = np.array([[*home, *[-1] * (network.reach - 1), place]])
    found = Numbering(start.shape[1])
    found.of(start)
    return found


def _step(levels: list[Level], network: Network, rows: Ints, symbols: Ints) -> tuple[Ints, Ints]:
    """(configurations after the symbols, without the place; what is read out there), layer by layer from below."""
    counts = [len(heads) for heads in network.heads]
    ends = np.cumsum(counts)
    remembered = rows[:, ends[-1] : -1]
    last = [remembered]
    for level in levels[:0:-1]:
        last.append(level.below(last[-1]))
    newest: Ints = symbols
    moved: list[Ints] = []
    for level, begin, end, before in zip(levels, ends - counts, ends, last[::-1], strict=True):
        if level.layer:
            newest = level.enter(newest, moved[-1])
        moved.append(level.step(np.concatenate([before, newest[:, None]], axis=1), rows[:, begin:end]))
    history = np.concatenate([remembered, newest[:, None]], axis=1)[:, 1:]
    return np.concatenate([*moved, history], axis=1), np.concatenate([newest[:, None], moved[-1]], axis=1)


def _read_out(network: Network, rows: Ints, check: Callable[[], None]) -> tuple[Choices, Choices | None]:
    labels, answers = [], []
    for said, answered in network.read_out(rows):
        labels.append(said)
        if answered is not None:
            answers.append(answered)
        check()
    return Choices.joined(labels, axis=0), Choices.joined(answers, axis=0) if answers else None

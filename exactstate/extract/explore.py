"""Breadth-first exploration of every configuration of a stack of layers, evaluating the network only where it is new.

    A  symbols     n  configurations     k  kernel size of the convolutions

After any prefix the model is in one of finitely many configurations: the indices of every layer, and what the
convolutions remember. A layer remembers its last k - 1 inputs; an input of a layer is the symbol and the indices of the
layers below, so the inputs that the top layer remembers determine those of all layers. A configuration is written

    indices of all heads | the last k - 1 inputs of the top layer, -1 before the word began | state of the grammar

and words that the grammar refuses are not followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.errors import BudgetExceeded, InvalidConfig
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.network import GrowingArray, Network
from exactstate.extract.result import head_offsets

GIGABYTE = 1 << 30
STEPS_AT_ONCE = 1 << 16
BYTES_PER_KEY = 200
"""What a dictionary needs for a key and its number, about, beside the key itself."""

Progress = Callable[[int, int], None]
"""Called with the number of configurations reached, and of those not yet expanded."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of an exploration, checked after every few thousand configurations."""

    configurations: int = 4_000_000
    seconds: float = 3600.0
    memory: int = 4 * GIGABYTE
    """Bytes that the exploration itself holds, about."""
    started: float = field(default_factory=time.monotonic, init=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.configurations, self.seconds, self.memory) <= 0:
            raise InvalidConfig(f"the limits of an exploration must be positive; got {self}.")

    def restarted(self) -> Budget:
        """The same limits, with the clock at zero."""
        return Budget(configurations=self.configurations, seconds=self.seconds, memory=self.memory)

    def check(self, reached: int, waiting: int, nbytes: int) -> None:
        """Raise `BudgetExceeded` if a limit is exceeded."""
        seconds = time.monotonic() - self.started
        for name, spent, limit, unit in (
            ("configurations", reached, self.configurations, "configurations"),
            ("seconds", seconds, self.seconds, "seconds"),
            ("memory", nbytes, self.memory, "bytes"),
        ):
            if spent > limit:
                raise BudgetExceeded(
                    f"this model reached {reached:,} configurations ({waiting:,} of them not yet expanded) "
                    f"in {seconds:.0f} s and {nbytes / GIGABYTE:.1f} GB; the limit is {limit:,} {unit}. "
                    f"Pass a larger Budget({name}=...), or a grammar, so that only its words are explored."
                )


class RowNumbering:
    """Distinct rows of integers, numbered in order of first occurrence.

    >>> seen = RowNumbering(2)
    >>> seen.of(np.array([[5, 1], [0, 2], [5, 1]])).tolist(), len(seen)
    ([0, 1, 0], 2)
    """

    def __init__(self, width: int) -> None:
        self._number: dict[bytes, int] = {}
        self._rows = GrowingArray(width, np.int32)

    def __len__(self) -> int:
        return len(self._number)

    @property
    def rows(self) -> Ints:
        """The rows in the order of their numbers."""
        return self._rows.rows

    def of(self, rows: Ints) -> Ints:
        """The number of every row; a row that was not seen before gets the next one."""
        known, number = len(self), self._number
        raw = np.ascontiguousarray(rows, np.int32).tobytes()
        width = 4 * rows.shape[1]
        numbers = np.array([number.setdefault(raw[i : i + width], len(number)) for i in range(0, len(raw), width)], int)
        fresh = np.flatnonzero(numbers >= known)
        _, first = np.unique(numbers[fresh], return_index=True)
        self._rows.append(rows[fresh[first]])
        return numbers

    @property
    def nbytes(self) -> int:
        """Approximate memory use."""
        return self._rows.nbytes + len(self) * (BYTES_PER_KEY + 4 * self.rows.shape[1])


class ExploredLayer:
    """What is known of one layer: its inputs, its windows, and the table of every head at every window."""

    def __init__(self, network: Network, layer: int) -> None:
        self.network, self.layer = network, layer
        heads = network.heads[layer]
        self.inputs = RowNumbering(1 + (len(network.heads[layer - 1]) if layer else 0))
        self.windows = RowNumbering(network.kernel_size)
        self.offsets = np.array(head_offsets(heads))
        self.best, self.runner_up = GrowingArray(sum(heads), np.int32), GrowingArray(sum(heads), np.int32)
        self.margins, self.used = GrowingArray(sum(heads), np.float64), GrowingArray(sum(heads), np.bool_)
        if not layer:
            self.inputs.of(np.arange(network.symbols)[:, None])

    def number_inputs(self, below: Ints, indices: Ints) -> Ints:
        """The numbers of inputs, from those of the layer below and the indices it has moved to."""
        known = len(self.inputs)
        numbers = self.inputs.of(np.concatenate([below[:, None], indices], axis=1))
        if len(self.inputs) > known:
            self.network.add_inputs(self.layer, self.inputs.rows[known:])
        return numbers

    def inputs_below(self, inputs: Ints) -> Ints:
        """The inputs of the layer below that belong to these; -1 where the word had not begun."""
        below = np.full_like(inputs, MISSING)
        below[inputs >= 0] = self.inputs.rows[inputs[inputs >= 0], 0]
        return below

    def step(self, windows: Ints, indices: Ints) -> Ints:
        """The indices after a step that reads these windows."""
        known = len(self.windows)
        rows = self.windows.of(windows)
        if len(self.windows) > known:
            tables = self.network.tables(self.layer, self.windows.rows[known:])
            self.best.append(tables.best)
            self.runner_up.append(tables.runner_up)
            self.margins.append(tables.margins)
            self.used.append(np.zeros_like(tables.best, bool))
        at = rows[:, None], self.offsets + indices
        self.used.rows[at] = True
        return self.best.rows[at]

    @property
    def nbytes(self) -> int:
        parts = (self.inputs, self.windows, self.best, self.runner_up, self.margins, self.used)
        return sum(part.nbytes for part in parts)


@dataclass(frozen=True, eq=False)
class Explored:
    """The result of an exploration; configuration 0 is the initial one. See `result.Extracted` for the arrays."""

    layers: list[ExploredLayer]
    configurations: Ints
    grammar_states: Ints
    tables: Ints
    readout_ids: Ints
    readout_inputs: Ints
    labels: ArgmaxMargins
    answers: ArgmaxMargins | None


def explore(
    network: Network, grammar_tables: Ints, permitted: Bools, grammar_start: int, budget: Budget,
    progress: Progress | None = None,
) -> Explored:  # fmt: skip
    """Follow every permitted word; `permitted` (A g) marks the permitted transitions of the grammar's tables (A g)."""
    budget = budget.restarted()
    layers = [ExploredLayer(network, layer) for layer in range(len(network.heads))]
    configurations, readouts = _initial(network, grammar_start), RowNumbering(1 + len(network.heads[-1]))
    tables, readout_ids = GrowingArray(network.symbols, np.int32), GrowingArray(network.symbols, np.int32)
    at_once = max(1, STEPS_AT_ONCE // network.symbols)
    while len(tables) < len(configurations):
        rows = configurations.rows[len(tables) : len(tables) + at_once]
        which, symbols = np.nonzero(permitted[:, rows[:, -1]].T)
        after, readout_inputs = _step(layers, network, rows[which], symbols)
        after = np.concatenate([after, grammar_tables[symbols, rows[which, -1]][:, None]], axis=1)
        for array, numbers in ((tables, configurations.of(after)), (readout_ids, readouts.of(readout_inputs))):
            by_symbol = np.full((len(rows), network.symbols), MISSING, np.int32)
            by_symbol[which, symbols] = numbers
            array.append(by_symbol)
        nbytes = configurations.nbytes + readouts.nbytes + tables.nbytes + readout_ids.nbytes + network.nbytes
        nbytes += sum(layer.nbytes for layer in layers)
        budget.check(len(configurations), len(configurations) - len(tables), nbytes)
        if progress is not None:
            progress(len(configurations), len(configurations) - len(tables))
    labels, answers = _read_out(network, readouts.rows, lambda: budget.check(len(configurations), 0, 0))
    rows = configurations.rows
    return Explored(
        layers, rows[:, :-1], rows[:, -1], tables.rows.T, readout_ids.rows.T, readouts.rows, labels, answers
    )


def _initial(network: Network, grammar_start: int) -> RowNumbering:
    indices = [k for layer in network.start for k in layer]
    row = np.array([[*indices, *[MISSING] * (network.kernel_size - 1), grammar_start]])
    numbering = RowNumbering(row.shape[1])
    numbering.of(row)
    return numbering


def _step(layers: list[ExploredLayer], network: Network, rows: Ints, symbols: Ints) -> tuple[Ints, Ints]:
    """(configurations after the symbols, without the grammar state; what is read out there), from below."""
    counts = [len(heads) for heads in network.heads]
    ends = np.cumsum(counts)
    memory = rows[:, ends[-1] : -1]
    memories = [memory]
    for layer in layers[:0:-1]:
        memories.append(layer.inputs_below(memories[-1]))
    newest: Ints = symbols
    moved: list[Ints] = []
    for layer, begin, end, before in zip(layers, ends - counts, ends, memories[::-1], strict=True):
        if layer.layer:
            newest = layer.number_inputs(newest, moved[-1])
        moved.append(layer.step(np.concatenate([before, newest[:, None]], axis=1), rows[:, begin:end]))
    memory = np.concatenate([memory, newest[:, None]], axis=1)[:, 1:]
    return np.concatenate([*moved, memory], axis=1), np.concatenate([newest[:, None], moved[-1]], axis=1)


def _read_out(network: Network, rows: Ints, check: Callable[[], None]) -> tuple[ArgmaxMargins, ArgmaxMargins | None]:
    all_labels, all_answers = [], []
    for labels, answers in network.read_out(rows):
        all_labels.append(labels)
        if answers is not None:
            all_answers.append(answers)
        check()
    return ArgmaxMargins.joined(all_labels, axis=0), ArgmaxMargins.joined(all_answers, axis=0) if all_answers else None

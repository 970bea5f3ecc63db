"""State codes: which index of every head stands for which state; what `Realize` puts into a network.

    n  labels     A  symbols     r  heads of all layers     d  indices of a head     R  rows

A head can follow a partition of the states that every symbol respects (a congruence); a family of partitions that
distinguishes all states carries them. Codes come from labeled transitions that were counted (`count_transitions`,
`codes_of_counts`), from a machine that is given (`codes_of_machine`), from tables that were learned
(`codes_of_tables`), or from registers in two layers (`registers.py`). However they are found, what a network needs to
know of them is a list of distinct rows: a symbol, the indices of all heads before and after it, and the label there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata import Semiautomaton, factor
from exactstate.automata.factor.factor import factor_into
from exactstate.automata.minimize import reachable
from exactstate.errors import InvalidInput
from exactstate.nn.heads import run_tables
from exactstate.tasks import Batch, Task

Heads = tuple[tuple[int, ...], ...]
"""A number for every head of every layer."""


@dataclass(frozen=True, eq=False)
class StateCodes:
    """The heads of one or more layers, and what they are to do."""

    heads: Heads
    """Indices of every head; a head may have more than it uses."""
    starts: Heads
    """The index before the first symbol. It need not be an index of the label there."""
    rows: Ints
    """R (4 + 2 r): the symbol before (MISSING at the beginning of a word, and where no layer reads it), the symbol, the
    indices of all heads before it, those after it, the label and the answer (MISSING where there is none)."""
    tables: tuple[Ints, ...] | None = None
    """Of the heads of a single layer, A d: the index after each symbol at each index, MISSING where it is not known;
    without them the rows say it."""


def pack_rows(
    symbols: Ints, before: Ints, after: Ints, labels: Ints, answers: Ints | None = None, last: Ints | None = None
) -> Ints:
    """The distinct rows of `StateCodes.rows`; symbols, labels, answers and last symbols R, indices R r."""
    none = np.full(len(symbols), MISSING)
    columns = [none if last is None else last, symbols, before, after, labels, none if answers is None else answers]
    return unique_rows(np.column_stack(columns).astype(np.int32))


def unique_rows(rows: Ints) -> Ints:
    """The distinct rows, in the order of their bytes."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return np.unique(packed).view(rows.dtype).reshape(-1, rows.shape[1])


def collect_rows(batches: Iterator[Ints], *, patience: int = 8) -> Ints:
    """The distinct rows of batches until nothing new came for long: `patience` batches, or half as many as it took."""
    seen = next(batches)
    count = last_new = 1
    while count - last_new < max(patience, last_new // 2):
        met = unique_rows(np.concatenate([seen, next(batches)]))
        count += 1
        last_new = count if len(met) > len(seen) else last_new
        seen = met
    return seen


@dataclass(frozen=True)
class Conflict:
    """A label and a symbol that led to two labels: the labels are not states."""

    label: int
    symbol: int
    successors: tuple[int, int]

    def sentence(self) -> str:
        one, other = self.successors
        return f"label {self.label} and symbol {self.symbol} led to label {one} and to label {other}"


class TransitionCounts:
    """The transitions seen in words with labels."""

    def __init__(self, symbols: int, labels: int) -> None:
        self.tables: Ints = np.full((symbols, labels), MISSING, np.int64)
        """A n: the label after each symbol at each label, MISSING where that was not seen."""
        self.start: int | None = None
        self.conflict: Conflict | None = None

    def add(self, batch: Batch) -> None:
        """Add every step of a batch of words."""
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1).astype(np.int64)
        symbol, label = batch.inputs.astype(np.int64), batch.states.astype(np.int64)
        if batch.position == 0:
            self._begin(batch.before)
        known = self.tables[symbol, before]
        self.tables[symbol, before] = label
        # within the batch the last one is kept; reading back shows whether they all agree
        wrong = (self.tables[symbol, before] != label) | ((known != MISSING) & (known != label))
        if self.conflict is None and wrong.any():
            b, t = np.argwhere(wrong)[0]
            kept = known[b, t] if known[b, t] not in (MISSING, label[b, t]) else self.tables[symbol[b, t], before[b, t]]
            led = (int(kept), int(label[b, t]))
            self.conflict = Conflict(int(before[b, t]), int(symbol[b, t]), led)

    def _begin(self, before: Ints) -> None:
        starts = np.unique(before)
        if len(starts) > 1 or (self.start is not None and len(starts) and int(starts[0]) != self.start):
            raise InvalidInput("words begin in different states; a machine has one start.")
        if len(starts):
            self.start = int(starts[0])

    @property
    def count(self) -> int:
        """How many different transitions were seen."""
        return int((self.tables != MISSING).sum())

    @property
    def seen(self) -> Ints:
        """Labels that occurred."""
        after = self.tables[self.tables != MISSING]
        return np.unique(np.concatenate([after, [] if self.start is None else [self.start]]).astype(np.int64))

    @property
    def coverage(self) -> float:
        """The share of (symbol, label) pairs that were seen, of those with a label that occurred."""
        seen = self.seen
        return float((self.tables[:, seen] != MISSING).mean()) if len(seen) else 0.0


def count_transitions(
    task: Task, generator: np.random.Generator, *, batch: int = 256, length: int = 64, patience: int = 8
) -> TransitionCounts:
    """Sample words until every transition between seen labels was seen, or nothing new came for long.

    Long is `patience` batches, or as many as it took to see the last new one.
    """
    transitions = TransitionCounts(task.machine.n_symbols, task.machine.n_states)
    batches = last_new = 0
    while batches - last_new < max(patience, last_new):
        before = transitions.count
        transitions.add(task.sample(batch, length, generator))
        batches += 1
        last_new = batches if transitions.count > before else last_new
        if transitions.coverage == 1.0 or transitions.conflict is not None:
            break
    return transitions


def codes_of_counts(
    counts: TransitionCounts, heads: Sequence[int] | None = None, *, seed: int, label_of: Ints | None = None
) -> StateCodes | None:
    """Codes of the states that were seen, on the transitions that were seen; see `codes_of_machine`."""
    if counts.conflict is not None:
        raise InvalidInput(
            f"the labels are not states: {counts.conflict.sentence()}. "
            "State codes need labels that determine what follows."
        )
    assert counts.start is not None
    seen = counts.seen
    place = np.full(counts.tables.shape[1], MISSING)
    place[seen] = np.arange(len(seen))
    known = counts.tables[:, seen]
    occurs = known != MISSING
    tables = np.where(occurs, place[known], np.arange(len(seen)))
    machine = Semiautomaton(symbols=tuple(str(a) for a in range(len(tables))), tables=tables)
    labels = seen if label_of is None else label_of[seen]
    return codes_of_machine(machine, int(place[counts.start]), heads, seed=seed, label_of=labels, occurs=occurs)


def codes_of_machine(
    machine: Semiautomaton, start: int, heads: Sequence[int] | None = None, *, seed: int,
    label_of: Ints | None = None, occurs: Bools | None = None,
) -> StateCodes | None:  # fmt: skip
    """Codes of the states of a machine, for heads of these sizes or for the cheapest sizes; None where none are found.

    - `label_of`: n, the label of every state; the state itself by default.
    - `occurs`: A n, whether a symbol is ever read in a state; always by default.
    """
    given = {"occurs": occurs, "seed": seed}
    factors = factor(machine, **given) if heads is None else factor_into(machine, heads, **given)  # type: ignore[arg-type]
    if factors is None:
        return None
    sizes = factors.sizes if heads is None else tuple(heads)
    code = np.stack(factors.partitions, axis=1).astype(np.int64)
    read = np.ones(machine.tables.shape, bool) if occurs is None else occurs
    symbol, before = np.nonzero(read)
    after = machine.tables[symbol, before].astype(np.int64)
    tables = []
    for h, d in enumerate(sizes):
        table = np.full((machine.n_symbols, d), MISSING)
        table[symbol, code[before, h]] = code[after, h]
        tables.append(table)
    reached = np.isin(before, reachable(np.where(read, machine.tables, np.arange(machine.n_states)), start))
    symbol, before, after = symbol[reached], before[reached], after[reached]
    labels = after if label_of is None else label_of[after]
    rows = pack_rows(symbol, code[before], code[after], labels)
    return StateCodes((sizes,), (tuple(code[start].tolist()),), rows, tuple(tables))


def codes_of_tables(
    tables: Sequence[Ints], start: Sequence[int], task: Task, generator: np.random.Generator, *, batch: int = 256,
    length: int = 64,
) -> StateCodes:  # fmt: skip
    """Codes of one layer with these tables (A d for every head); which label is where is read from words."""

    def read() -> Ints:
        words = task.sample(batch, length, generator)
        inputs = words.inputs.astype(np.int64)
        paths = np.stack([run_tables(table, inputs, k) for table, k in zip(tables, start, strict=True)], axis=2)
        before, after = (part.reshape(-1, len(tables)) for part in (paths[:, :-1], paths[:, 1:]))
        return pack_rows(inputs.ravel(), before, after, words.states.ravel().astype(np.int64))

    sizes = tuple(table.shape[1] for table in tables)
    return StateCodes((sizes,), (tuple(start),), collect_rows(endless(read)), tuple(tables))


def is_function_of(keys: Ints, values: Ints) -> bool:
    """Whether the values are a function of the rows of keys: equal rows always have equal values."""
    pairs = np.unique(np.column_stack([keys, values]), axis=0)
    return len(np.unique(pairs[:, :-1], axis=0)) == len(pairs)


def complete(table: Ints, seen: Bools) -> Ints:
    """Tables (R d) with entries that were not seen: a constant where all seen entries are one, else the identity."""
    d = table.shape[1]
    to = np.where(seen, table, d).min(axis=1, keepdims=True)
    resets = (np.where(seen, table, to) == to).all(axis=1, keepdims=True) & (to < d)
    resets &= ~(seen & (table == np.arange(d))).any(axis=1, keepdims=True)
    return np.where(seen, table, np.where(resets, to, np.arange(d)))


def endless(read: Callable[[], Ints]) -> Iterator[Ints]:
    """What a function returns, again and again."""
    while True:
        yield read()

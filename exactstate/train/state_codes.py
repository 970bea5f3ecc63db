"""State codes: for every head, which of its indices stands for which label; searched in counted transitions.

    n  labels     A  symbols     r  heads     d  indices of a head

A head can follow a partition of the labels that every symbol respects (a congruence); a family of partitions that
distinguishes all labels carries the state. `count_transitions` samples words with labels, `find_codes` factors what was
seen, and `StateCodes.holds_on` tests the codes on fresh words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import Semiautomaton, factor
from exactstate.automata.factor.factor import factor_into
from exactstate.automata.run import trajectories
from exactstate.errors import InvalidInput
from exactstate.tasks import Batch, Task


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
        self.positions = 0

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
        self.positions += symbol.size

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
    task: Task, generator: np.random.Generator, *, batch: int, length: int, patience: int = 8
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


@dataclass(frozen=True, eq=False)
class StateCodes:
    """One partition of the labels per head, and how symbols map its blocks."""

    heads: tuple[int, ...]
    """Indices of each head; a head may have more than it uses."""
    of_label: Ints
    """n r: the index of every head for every label; MISSING for labels that never occurred."""
    tables: tuple[Ints, ...]
    """For each head A d: the index after each symbol at each index, MISSING where it is not known."""
    start: tuple[int, ...]
    """The index of every head before the first symbol."""

    def trajectories(self, inputs: Ints) -> Ints:
        """B L -> B (L + 1) r: the index of every head before, between and after the symbols."""
        B, L = inputs.shape
        paths = np.empty((B, L + 1, len(self.heads)), np.int64)
        for h, (table, start) in enumerate(zip(self.tables, self.start, strict=True)):
            whole = np.where(table == MISSING, np.arange(table.shape[1]), table).astype(np.uint32)
            paths[:, 0, h] = start
            path, _ = trajectories(whole, inputs, np.full(B, start))
            assert path is not None
            paths[:, 1:, h] = path
        return paths

    def learn_labels(self, batch: Batch) -> Ints:
        """The codes along a batch; labels seen for the first time are given theirs."""
        paths = self.trajectories(batch.inputs)
        self.of_label[batch.states.reshape(-1).astype(np.int64)] = paths[:, 1:].reshape(-1, len(self.heads))
        return paths

    def holds_on(self, batch: Batch) -> bool:
        """Whether on fresh words the joint index and the label determine each other."""
        paths = self.trajectories(batch.inputs)[:, 1:].reshape(-1, len(self.heads))
        joint = np.ravel_multi_index(tuple(paths.T), self.heads) if len(paths) else np.zeros(0, np.int64)
        pairs = np.unique(np.stack([batch.states.reshape(-1).astype(np.int64), joint], axis=1), axis=0)
        return all(len(np.unique(column)) == len(pairs) for column in pairs.T)


def find_codes(counts: TransitionCounts, heads: Sequence[int] | None, *, seed: int) -> StateCodes | None:
    """Codes for heads of these sizes, or for the cheapest sizes that the search finds; None where it finds none."""
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
    machine = Semiautomaton(symbols=[str(a) for a in range(len(tables))], tables=tables)  # type: ignore[arg-type]
    factors = (
        factor(machine, occurs=occurs, seed=seed)
        if heads is None
        else factor_into(machine, heads, occurs=occurs, seed=seed)
    )
    if factors is None:
        return None
    sizes = tuple(factors.sizes) if heads is None else tuple(heads)
    of_label = np.full((counts.tables.shape[1], len(sizes)), MISSING)
    moves = []
    for h, chi in enumerate(factors.partitions):
        of_label[seen, h] = chi
        table = np.full((len(tables), sizes[h]), MISSING)
        a, q = np.nonzero(occurs)
        table[a, chi[q]] = chi[tables[a, q]]
        moves.append(table)
    start = tuple(int(index) for index in of_label[counts.start])
    return StateCodes(sizes, of_label, tuple(moves), start)

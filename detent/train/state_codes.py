"""Codes: for every head, which of its indices stands for which label; found in the transitions that were observed.

    n  labels     A  symbols     r  heads     d  indices of a head

A head can follow a partition of the labels that every symbol respects (a congruence); a family of them that tells all
labels apart carries the state. They are searched in the counted transitions, and judged on words that were not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detent._types import MISSING, Ints
from detent.automata import Semiautomaton, factor
from detent.automata.factor.factor import factor_into
from detent.automata.run import trajectories
from detent.errors import InvalidInput
from detent.tasks import Batch, Task

# -- What the training stream shows of the transitions: from which label, by which symbol, to which label.


@dataclass(frozen=True)
class Conflict:
    """One label and one symbol that led to two labels."""

    label: int
    symbol: int
    led_to: tuple[int, int]

    def sentence(self) -> str:
        one, other = self.led_to
        return f"label {self.label} and symbol {self.symbol} led to label {one} and to label {other}"


class Transitions:
    """Transitions counted along a stream of words."""

    def __init__(self, symbols: int, labels: int) -> None:
        self.tables: Ints = np.full((symbols, labels), MISSING, np.int64)
        """A n: where each symbol was seen to lead from each label, or MISSING."""
        self.start: int | None = None
        self.conflict: Conflict | None = None
        self.positions = 0

    def add(self, batch: Batch) -> None:
        """Take in every step of a batch of words."""
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1).astype(np.int64)
        symbol, label = batch.inputs.astype(np.int64), batch.states.astype(np.int64)
        if batch.position == 0:
            self._begin(batch.before)
        known = self.tables[symbol, before]
        self.tables[symbol, before] = label
        # within the batch the last one wins; reading back shows whether they all agreed
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


def observe(task: Task, generator: np.random.Generator, *, batch: int, length: int, patience: int = 8) -> Transitions:
    """Watch words until every transition between seen labels was met, or nothing new came for long.

    Long is `patience` batches, or as many as it took to meet the last new one.
    """
    transitions = Transitions(task.machine.n_symbols, task.machine.n_states)
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
class Codes:
    """One partition of the labels per head, and how symbols move its blocks."""

    heads: tuple[int, ...]
    """Indices of each head; a head may have more than it uses."""
    of_label: Ints
    """n r: the index of every head for every label; MISSING for labels that never occurred."""
    tables: tuple[Ints, ...]
    """For each head A d: where each symbol sends each index, MISSING where nothing is known."""
    start: tuple[int, ...]
    """The index of every head before the first symbol."""

    def follow(self, inputs: Ints) -> Ints:
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
        """The codes along a batch; labels met for the first time are given theirs."""
        paths = self.follow(batch.inputs)
        self.of_label[batch.states.reshape(-1).astype(np.int64)] = paths[:, 1:].reshape(-1, len(self.heads))
        return paths

    def holds_on(self, batch: Batch) -> bool:
        """Whether on fresh words the joint index and the label determine each other."""
        paths = self.follow(batch.inputs)[:, 1:].reshape(-1, len(self.heads))
        joint = np.ravel_multi_index(tuple(paths.T), self.heads) if len(paths) else np.zeros(0, np.int64)
        pairs = np.unique(np.stack([batch.states.reshape(-1).astype(np.int64), joint], axis=1), axis=0)
        return all(len(np.unique(column)) == len(pairs) for column in pairs.T)


def find_codes(observed: Transitions, heads: Sequence[int] | None, *, seed: int) -> Codes | None:
    """Codes for heads of these sizes, or for the cheapest sizes that are found; None when the search finds none."""
    if observed.conflict is not None:
        raise InvalidInput(
            f"the labels are not states: {observed.conflict.sentence()}. Codes need labels that determine what follows."
        )
    assert observed.start is not None
    seen = observed.seen
    place = np.full(observed.tables.shape[1], MISSING)
    place[seen] = np.arange(len(seen))
    known = observed.tables[:, seen]
    occurs = known != MISSING
    tables = np.where(occurs, place[known], np.arange(len(seen)))
    machine = Semiautomaton(symbols=[str(a) for a in range(len(tables))], tables=tables)  # type: ignore[arg-type]
    found = (
        factor(machine, occurs=occurs, seed=seed)
        if heads is None
        else factor_into(machine, heads, occurs=occurs, seed=seed)
    )
    if found is None:
        return None
    sizes = tuple(found.sizes) if heads is None else tuple(heads)
    of_label = np.full((observed.tables.shape[1], len(sizes)), MISSING)
    moves = []
    for h, chi in enumerate(found.partitions):
        of_label[seen, h] = chi
        table = np.full((len(tables), sizes[h]), MISSING)
        a, q = np.nonzero(occurs)
        table[a, chi[q]] = chi[tables[a, q]]
        moves.append(table)
    start = tuple(int(index) for index in of_label[observed.start])
    return Codes(sizes, of_label, tuple(moves), start)

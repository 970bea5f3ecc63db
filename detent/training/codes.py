"""Codes: for every head, which of its indices stands for which label; found in the transitions that were observed.

    n  labels     A  symbols     r  heads     d  indices of a head

A head can follow a partition of the labels that every symbol respects (a congruence); a family of them that tells all
labels apart carries the state. They are searched in the counted transitions, and judged on words that were not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detent.automata import Semiautomaton, factor
from detent.automata.factoring.sizes import factor_into
from detent.automata.running import Ints, trajectories
from detent.errors import InvalidInput
from detent.tasks import Batch
from detent.training.observation import UNSEEN, Transitions


@dataclass(frozen=True, eq=False)
class Codes:
    """One partition of the labels per head, and how symbols move its blocks."""

    heads: tuple[int, ...]
    """Indices of each head; a head may have more than it uses."""
    of_label: Ints
    """n r: the index of every head for every label; UNSEEN for labels that never occurred."""
    tables: tuple[Ints, ...]
    """For each head A d: where each symbol sends each index, UNSEEN where nothing is known."""
    start: tuple[int, ...]
    """The index of every head before the first symbol."""

    def follow(self, inputs: Ints) -> Ints:
        """B L -> B (L + 1) r: the index of every head before, between and after the symbols."""
        B, L = inputs.shape
        paths = np.empty((B, L + 1, len(self.heads)), np.int64)
        for h, (table, start) in enumerate(zip(self.tables, self.start, strict=True)):
            whole = np.where(table == UNSEEN, np.arange(table.shape[1]), table).astype(np.uint32)
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
    place = np.full(observed.tables.shape[1], UNSEEN)
    place[seen] = np.arange(len(seen))
    known = observed.tables[:, seen]
    occurs = known != UNSEEN
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
    of_label = np.full((observed.tables.shape[1], len(sizes)), UNSEEN)
    moves = []
    for h, chi in enumerate(found.partitions):
        of_label[seen, h] = chi
        table = np.full((len(tables), sizes[h]), UNSEEN)
        a, q = np.nonzero(occurs)
        table[a, chi[q]] = chi[tables[a, q]]
        moves.append(table)
    start = tuple(int(index) for index in of_label[observed.start])
    return Codes(sizes, of_label, tuple(moves), start)

"""What the training stream shows of the transitions: from which label, by which symbol, to which label.

    A  symbols     n  labels     B  words     L  their length

Only sampled symbols and labels are seen, never the machine. Where labels are states, a label and a symbol determine the
next label; where they do not, the labels are outputs of something finer, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata.running import Ints
from detent.errors import InvalidInput
from detent.tasks import Batch, Task

UNSEEN = -1


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
        self.tables: Ints = np.full((symbols, labels), UNSEEN, np.int64)
        """A n: where each symbol was seen to lead from each label, or UNSEEN."""
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
        wrong = (self.tables[symbol, before] != label) | ((known != UNSEEN) & (known != label))
        if self.conflict is None and wrong.any():
            b, t = np.argwhere(wrong)[0]
            kept = known[b, t] if known[b, t] not in (UNSEEN, label[b, t]) else self.tables[symbol[b, t], before[b, t]]
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
        return int((self.tables != UNSEEN).sum())

    @property
    def seen(self) -> Ints:
        """Labels that occurred."""
        after = self.tables[self.tables != UNSEEN]
        return np.unique(np.concatenate([after, [] if self.start is None else [self.start]]).astype(np.int64))

    @property
    def coverage(self) -> float:
        """The share of (symbol, label) pairs that were seen, of those with a label that occurred."""
        seen = self.seen
        return float((self.tables[:, seen] != UNSEEN).mean()) if len(seen) else 0.0


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

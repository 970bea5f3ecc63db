"""Put a run down now and then, and take it up where it was put down, with the same bits as if it had never stopped.

What comes before the steps (words watched, codes found, weights drawn) is done again from the seed; a checkpoint holds
the rest: weights, moments and generators of the phase it was taken in, and how long the phases before it had lasted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from detent.train import checkpoint
from detent.train.phases import Phase

EVERY = 5.0
"""Seconds between two checkpoints."""


class Lasting(Phase, Protocol):
    """A phase that can be put down: all that its next step depends on is its module, optimiser, words and numbers."""

    generator: np.random.Generator


class Interrupted(KeyboardInterrupt):
    """A run that was asked to stop, and did so between two steps; says where."""


@dataclass
class Keeper:
    """Where a run is put down; nowhere without a path."""

    path: Path | None = None
    every: float = EVERY
    attempt: int = 0
    """How often the run has begun again."""
    steps: int = 0
    """Of the attempts before this one."""
    rows: int = 0
    """Of the history."""
    before: float = 0.0
    """Seconds that earlier sittings took."""
    _passed: dict[str, int] = field(default_factory=dict)
    """Steps of the phases of this attempt that are over."""
    _held: str | None = None
    """The phase that a checkpoint waits for."""

    def __post_init__(self) -> None:
        self._begun = self._last = time.perf_counter()
        if self.path is None or not self.path.exists():
            return
        held = checkpoint.peek(self.path)
        self.attempt, self.steps, self.rows, self.before = (held[k] for k in ("attempt", "steps", "rows", "seconds"))
        self._passed, self._held = held["passed"], held["phase"]

    @property
    def seconds(self) -> float:
        """How long the run has taken so far, in all sittings."""
        return self.before + time.perf_counter() - self._begun

    @property
    def taken(self) -> int:
        """Steps of all attempts, but for a phase that is still going on."""
        return self.steps + sum(self._passed.values())

    def take_up(self, phase: Lasting) -> bool:
        """Bring the phase to where it was put down; whether it was over by then."""
        if phase.name in self._passed:
            phase.steps = self._passed[phase.name]
            return True
        if self._held == phase.name and self.path is not None:
            held = checkpoint.load(self.path, phase.module, phase.optimizer, phase.generator)
            for name, value in held["counters"].items():
                setattr(phase, name, value)
            self._held = None
        return False

    def put_down(self, phase: Lasting, *, now: bool = False) -> None:
        """Write a checkpoint, unless the last one is fresh."""
        if self.path is None or (not now and time.perf_counter() - self._last < self.every):
            return
        held: dict[str, Any] = {
            "attempt": self.attempt, "steps": self.steps, "rows": self.rows, "seconds": self.seconds,
            "passed": self._passed, "phase": phase.name, "counters": _numbers(phase),
        }  # fmt: skip
        checkpoint.save(self.path, phase.module, phase.optimizer, phase.generator, held)
        self._last = time.perf_counter()

    def leave(self, phase: Lasting) -> None:
        """The phase is over."""
        self._passed[phase.name] = phase.steps

    def begin_again(self) -> None:
        """The attempt is over, and another follows."""
        self.attempt, self.steps = self.attempt + 1, self.taken
        self._passed = {}


def _numbers(phase: Lasting) -> dict[str, Any]:
    """Everything of a phase that is a number: how far it has come, and what it last saw."""
    return {name: value for name, value in vars(phase).items() if isinstance(value, int | float)}

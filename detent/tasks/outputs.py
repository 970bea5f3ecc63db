"""A task of which only the outputs are heard: its labels are what the machine puts out, its states stay hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from detent.errors import InvalidConfig
from detent.tasks.sampling import Batch, Says, Task


@dataclass(frozen=True, kw_only=True)
class OutputsOnly(Task):
    """The same words, with outputs in the place of states.

    >>> from detent.automata import tomita
    >>> OutputsOnly.of_task(Task.of(tomita(4), name="no three 0s")).labels
    ('reject', 'accept')
    """

    @classmethod
    def of_task(cls, task: Task) -> OutputsOnly:
        """What is heard of a task."""
        if task.layers is not None or task.question is not None:
            raise InvalidConfig(
                f"{task.name} is told by its states and answers; outputs alone are heard of tasks for one layer."
            )
        return cls(name=task.name, machine=task.machine, law=task.law, sweep_law=task.sweep_law, about=task.about)

    @property
    def says(self) -> Says:
        return "outputs"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.machine.outputs

    def sample(self, batch: int, length: int, generator: np.random.Generator) -> Batch:
        """Words of one length, with outputs as `states`."""
        drawn = super().sample(batch, length, generator)
        return replace(drawn, states=self.outputs(drawn))

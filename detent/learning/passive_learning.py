"""Learn a machine from its outputs alone: hear words, merge states, check on fresh words, hear more where that fails.

The states that come of it are names of our own; nothing but outputs was seen of the task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from detent._types import MISSING
from detent.automata import Moore
from detent.errors import NotLearned
from detent.learning.prefix_tree import PrefixTree
from detent.learning.state_merging import Merged, merge_states
from detent.tasks import OutputTask, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Hearing:
    """How much is heard before it is given up."""

    words: int = 64
    """At first; doubled as long as fresh words are mistaken."""
    length: int = 64
    most_words: int = 4096
    most_states: int = 512
    fresh: int = 1024
    """Words that a machine must get right in every output before it is believed."""
    effort: int = 30_000_000
    """Outputs that may be compared in one go at merging states."""


class Heard(NamedTuple):
    """A task with states of its own that says what was heard, and in how many words that was."""

    task: Task
    words: int


def hear(task: OutputTask, generator: np.random.Generator, settings: Hearing = Hearing()) -> Heard:  # noqa: B008
    """A machine that says what the task does, on words that it was not found in; refused where there is none."""
    tree, found = PrefixTree(task.machine.n_symbols), "nothing"
    while True:
        batch = task.sample(max(settings.words, tree.words), settings.length, generator)
        tree.add(batch.inputs, batch.states)
        merged = merge_states(tree, most=settings.most_states, effort=settings.effort)
        fresh = task.sample(settings.fresh, settings.length, generator)
        if merged is None:
            found = f"more than {settings.most_states} states, or more than could be compared"
        else:
            wrong = merged.wrong(fresh.inputs, fresh.states)
            if not wrong:
                return Heard(replace(Task.of(_machine(task, merged), name=task.name), sampler=task.sampler), tree.words)
            found = f"{merged.tables.shape[1]} states that are wrong on {wrong} of {settings.fresh} fresh words"
        if 2 * tree.words > settings.most_words:
            raise NotLearned(
                f"not learned: after {tree.words} words of {settings.length} symbols, merging states gave {found}. "
                "Teach it states instead of outputs, or let more words be heard."
            )


def _machine(task: Task, merged: Merged) -> Moore:
    """With moves that were never heard going nowhere."""
    stay = np.arange(merged.tables.shape[1])
    return Moore(
        symbols=task.machine.symbols, tables=np.where(merged.tables == MISSING, stay, merged.tables),
        outputs=task.machine.outputs, readout=np.maximum(merged.output, 0),
    )  # fmt: skip

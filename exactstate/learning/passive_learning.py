"""Passive learning: infer a machine from sampled words and their outputs, without a network.

State merging gives a machine that agrees with all words so far. It is tested on fresh words; where it is wrong, as many
words again are sampled. Its states are numbered, since nothing but outputs was seen of the task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from exactstate._types import MISSING
from exactstate.automata import Mealy, Moore
from exactstate.errors import NotLearned
from exactstate.learning.prefix_tree import PrefixTree
from exactstate.learning.state_merging import MergedStates, merge_states
from exactstate.tasks import OutputTask, Task


@dataclass(frozen=True, kw_only=True, slots=True)
class PassiveLearningConfig:
    """How much data is sampled before the search is given up."""

    words: int = 64
    """In the first sample; doubled as long as the machine is wrong on fresh words."""
    length: int = 64
    max_words: int = 4096
    max_states: int = 512
    test_words: int = 1024
    """Fresh words on which every output of the machine must be right."""
    max_comparisons: int = 30_000_000
    """Outputs that one run of state merging may compare."""


class InferredMachine(NamedTuple):
    """A machine, and how many words it took."""

    task: Task
    """The inferred machine with the words of the task; its states are named by number."""
    words: int

    @property
    def machine(self) -> Moore:
        assert isinstance(self.task.machine, Moore)
        return self.task.machine


def infer_machine(
    task: OutputTask,
    generator: np.random.Generator,
    config: PassiveLearningConfig = PassiveLearningConfig(),  # noqa: B008
) -> InferredMachine:
    """A machine with the outputs of the task: merge states, test on fresh words, sample more where the test fails.

    Raises `NotLearned` where `config.max_words` are not enough.
    """
    tree = PrefixTree()
    symbols, outputs = task.machine.n_symbols, len(task.machine.outputs)
    while True:
        batch = task.sample(max(config.words, tree.words), config.length, generator)
        tree.add(batch.inputs, batch.states)
        merged = merge_states(
            tree, symbols=symbols, outputs=outputs, kind="mealy" if isinstance(task.machine, Mealy) else "moore",
            max_states=config.max_states, max_comparisons=config.max_comparisons,
        )  # fmt: skip
        fresh = task.sample(config.test_words, config.length, generator)
        if merged is None:
            result = f"more than {config.max_states} states, or more than could be compared"
        else:
            wrong = merged.count_wrong(fresh.inputs, fresh.states)
            if not wrong:
                return InferredMachine(
                    replace(Task.of(_machine(task, merged), name=task.name), sampler=task.sampler), tree.words
                )
            result = f"{merged.n_states} states that are wrong on {wrong} of {config.test_words} fresh words"
        if 2 * tree.words > config.max_words:
            raise NotLearned(
                f"not learned: after {tree.words} words of {config.length} symbols, merging states gave {result}. "
                "Train on states instead of outputs, or allow more words."
            )


def _machine(task: Task, merged: MergedStates) -> Moore:
    """The merged states as a Moore machine; a transition that was never seen is a loop."""
    stay = np.arange(merged.n_states)
    build: type[Moore | Mealy] = Mealy if merged.readout.ndim == 2 else Moore
    machine = build(
        symbols=task.machine.symbols, tables=np.where(merged.tables == MISSING, stay, merged.tables),
        outputs=task.machine.outputs, readout=np.maximum(merged.readout, 0),
    )  # fmt: skip
    return machine.to_moore() if isinstance(machine, Mealy) else machine

"""Learn a machine from noisy traces by gradient: one large head learns the outputs, and what it says is merged.

    B  traces     L  their length

The head is that of `large_head.py`, trained on the traces; a small share of wrong outputs does not mislead its
likelihood.
The outputs of its machine on the traces of the log are a function of the inputs, without contradictions; state merging
finds the machine that they show. What is counted as disagreeing is counted against the log itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy
from exactstate.errors import InvalidInput
from exactstate.learning.learn import LearnedMachine, Missing, estimate_noise, learn
from exactstate.learning.logs import Trace, as_traces
from exactstate.learning.trace_tree import TraceTree
from exactstate.records import Row
from exactstate.tasks import OutputTask, Task
from exactstate.train.config import SearchConfig
from exactstate.train.large_head import BATCH, COVERING_FROM, LR, SIZE, LargeHeadSearch
from exactstate.train.phases import Rate
from exactstate.train.trainer import one_thread

MAX_LENGTH = 64
"""Symbols of a trace that are trained on."""
GROW = 10
"""Symbols by which training goes further into the traces at a check, where most outputs are right."""
LEFT_NOISE = 2e-3
"""The share of outputs of the head that may be wrong."""


def learn_by_gradient(
    traces: Iterable[Any], *, noise: float | Literal["auto"] | str = "auto", missing: Missing | str = "sink",
    steps: int = 600, seed: int = 42,
) -> LearnedMachine:  # fmt: skip
    """The machine of a noisy log, by training a head on it.

    - `noise`: the share of wrong outputs, for early stopping; "auto" estimates it from contradictions.
    - `steps`: the most steps of the optimizer.
    """
    kept = [trace if isinstance(trace, Trace) else next(as_traces([trace])) for trace in traces]
    kept = [trace for trace in kept if trace.inputs]
    if not kept or any(output is None for trace in kept for output in trace.outputs):
        raise InvalidInput("learning by gradient needs an output at every input of every trace; merge states instead.")
    log = TraceTree.of(kept)
    share = estimate_noise(log) if noise == "auto" else float(noise)
    symbols, outputs = list(log.symbols), list(log.outputs)
    inputs, labels = _pad(kept, log)
    blank = Mealy(
        symbols=tuple(symbols), tables=np.zeros((len(symbols), 1), int), outputs=tuple(outputs),
        readout=np.zeros((len(symbols), 1), int),
    )  # fmt: skip
    task = OutputTask.of_task(Task.of(blank, name="log"))
    phase = LogSearch(task, inputs, labels, share, steps, seed)
    with one_thread():
        while not phase.done:
            phase.step()
            if phase.steps % phase.check_every == 0:
                phase.check()
    answers = phase.head.exact(inputs)
    relabeled = [
        Trace(trace.inputs[:MAX_LENGTH], [outputs[o] for o in row[: len(trace.inputs)]], None, trace.line)
        for trace, row in zip(kept, answers.tolist(), strict=True)
    ]
    learned = learn(relabeled, kind="mealy", missing=missing, noise=LEFT_NOISE)  # type: ignore[arg-type]
    wrong = _disagreeing(learned, kept)
    return replace(
        learned, noise=share, disagreeing=wrong, observed=log.observed, traces=log.tree.words, length=log.length,
        order="gradient",
    )  # fmt: skip


def _pad(traces: list[Trace], log: TraceTree) -> tuple[Ints, Ints]:
    """B L: symbols and outputs; MISSING outputs where a trace has ended."""
    length = min(MAX_LENGTH, max(len(trace.inputs) for trace in traces))
    inputs, labels = np.zeros((len(traces), length), np.int64), np.full((len(traces), length), MISSING)
    for row, trace in enumerate(traces):
        count = min(length, len(trace.inputs))
        inputs[row, :count] = [log.symbols[name] for name in trace.inputs[:count]]
        labels[row, :count] = [log.outputs[str(name)] for name in trace.outputs[:count]]
    return inputs, labels


class LogSearch(LargeHeadSearch):
    """Traces and the outputs in a log; done at the last step."""

    def __init__(self, task: Task, inputs: Ints, labels: Ints, noise: float, steps: int, seed: int) -> None:
        """`inputs`, `labels`: B L, MISSING labels where a trace has ended; `noise`: the share of wrong ones."""
        weights = torch.Generator().manual_seed(seed)
        super().__init__(task, SearchConfig(), SIZE, np.random.default_rng(seed), weights)
        self.inputs, self.labels, self.noise, self.most = inputs, labels, noise, steps
        self.length, self.rate = min(12, inputs.shape[1]), Rate(LR, LR / 10, max(1, steps))
        self.head.balance = 0.0  # rare outputs are often the wrong ones

    @property
    def done(self) -> bool:
        return self.steps >= self.most

    def step(self) -> None:
        self.rate.set(self.optimizer, self.steps)
        some = self.generator.integers(0, len(self.inputs), BATCH)
        self.train_on(*(torch.from_numpy(part[some, : self.length]) for part in (self.inputs, self.labels)))

    def check(self) -> Row:
        """The share of outputs that agree with the log, but for the noise; prefixes grow where most do."""
        inputs, labels = self.inputs[:, : self.length], self.labels[:, : self.length]
        self.accuracy = float((self.head.exact(inputs) == labels)[labels != MISSING].mean()) + self.noise
        if self.accuracy > COVERING_FROM:
            self.length = min(self.length + GROW, self.inputs.shape[1])
        return {"loss": self.loss, "accuracy": self.accuracy, "length": self.length}


def _disagreeing(learned: LearnedMachine, traces: list[Trace]) -> int:
    """Outputs of the log that the machine does not give."""
    machine = learned.runtime
    return sum(
        sum(one != other for one, other in zip(machine.outputs(list(trace.inputs)), trace.outputs, strict=True))
        for trace in traces
    )

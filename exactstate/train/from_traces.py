"""Learn a machine from noisy traces by gradient: an NFSM learns the outputs, and its answers are merged into a machine.

    B  traces     L  their length

A network with many heads is trained on the traces with plain cross-entropy, which a small share of wrong outputs does
not mislead. Its outputs on the traces of the log are a function of the inputs, without contradictions; state merging
finds the machine that they show. What is counted as disagreeing is counted against the log itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy
from exactstate.errors import InvalidInput
from exactstate.learning.learn import LearnedMachine, Missing, estimate_noise, learn
from exactstate.learning.logs import Trace, as_traces
from exactstate.learning.trace_tree import TraceTree
from exactstate.nn import Backbone
from exactstate.tasks import OutputTask, Task
from exactstate.train.build import build_model
from exactstate.train.config import WIDE, GradientConfig
from exactstate.train.optimizer import AdamW
from exactstate.train.phases import Curriculum, Rate
from exactstate.train.recipes import configure
from exactstate.train.trainer import one_thread
from exactstate.train.wide import label_logits, prepare

MAX_LENGTH = 64
"""Symbols of a trace that are trained on."""
LEFT_NOISE = 2e-3
"""The share of outputs of the network that may be wrong."""


def learn_by_gradient(
    traces: Iterable[Any], *, noise: float | Literal["auto"] | str = "auto", missing: Missing | str = "sink",
    steps: int = 600, seed: int = 42,
) -> LearnedMachine:  # fmt: skip
    """The machine of a noisy log, by training a network on it.

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
    with one_thread():
        model = _train(task, inputs, labels, share, steps, seed)
        answers = _answers(model, inputs)
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


def _train(task: Task, inputs: Ints, labels: Ints, noise: float, steps: int, seed: int) -> Backbone:
    settings = GradientConfig(heads=WIDE, temperature=1.0)
    config = configure("log", task=task, seed=seed, temperature=settings.temperature)
    generator, words = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    model = build_model(config, task, heads=(settings.heads,), generator=generator)
    prepare(model, settings)
    optimizer = AdamW(model.parameters(), settings.lr, weight_decay=0.0, fused=True)
    rate, words_of = Rate(settings.lr, settings.lr / 10, steps), Curriculum(12, inputs.shape[1])
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    agreeing = 0.0
    for step in range(steps):
        model.eval()  # the arg max in the forward pass; there is no dropout
        some = torch.from_numpy(words.integers(0, len(x), settings.batch))
        rate.set(optimizer, step)
        logits = label_logits(model, x[some, : words_of.length])
        wanted = y[some, : words_of.length]
        loss = cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=MISSING)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        seen = wanted != MISSING
        agreeing = 0.95 * agreeing + 0.05 * float((logits.argmax(-1) == wanted)[seen].float().mean())
        if agreeing > 0.9 - noise and step % 10 == 0:
            words_of.grow(words_of.length + 2)
    return model.eval()


@torch.no_grad()
def _answers(model: Backbone, inputs: Ints) -> Ints:
    """B L: the outputs of the network."""
    parts: list[Tensor] = [label_logits(model, some).argmax(-1) for some in torch.from_numpy(inputs).split(256)]
    return torch.cat(parts).numpy()


def _disagreeing(learned: LearnedMachine, traces: list[Trace]) -> int:
    """Outputs of the log that the machine does not give."""
    machine = learned.runtime
    return sum(
        sum(one != other for one, other in zip(machine.outputs(list(trace.inputs)), trace.outputs, strict=True))
        for trace in traces
    )

"""Learn a task: find or take codes, teach them, release the network, read its machine out and compare it.

    run = train(Plan(task="S4", seed=42))
    run.certified, run.seconds, run.heads

The judge is extraction: the machine is read out of the weights, without a look at the target, and then compared with
it on all words. Nothing else decides whether a run has learned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from detent.automata import Mealy, Moore, factor
from detent.automata.factoring.sizes import factor_into
from detent.automata.running import Ints
from detent.certification import Certificate, Verdict, certify
from detent.errors import InvalidConfig
from detent.extraction import Extracted, extract
from detent.layers import NFSM
from detent.models import Backbone
from detent.recipes.certifying import certificate_of
from detent.recipes.plan import Plan
from detent.tasks import Task, task
from detent.training import Anchor, Anchored, Codes, Tracking, find_codes, observe
from detent.training.phases import Phase

Row = dict[str, Any]
Watcher = Callable[[Row], None]


@dataclass
class Run:
    """What came of a plan."""

    plan: Plan
    task: Task
    model: Backbone
    extracted: Extracted
    """The machine read out of it."""
    verdict: Verdict
    """Whether that is the target; if not, a shortest word on which it goes wrong."""
    steps: int
    restarts: int
    seconds: float
    history: list[Row] = field(repr=False)

    @property
    def certified(self) -> bool:
        return bool(self.verdict)

    def certificate(self) -> Certificate:
        """What is proved of this network, with the rounding of every format down to the first that is too coarse."""
        return certificate_of(self.model, self.extracted, self.verdict, title=self.plan.title(self.task.name))

    @property
    def heads(self) -> tuple[int, ...]:
        return self.extracted.heads[0]


def train(plan: Plan, watch: Watcher | None = None) -> Run:
    """Follow the plan, beginning again with another seed while it ends without a certificate and restarts are left."""
    speaker, begun, attempt = task(plan.task), time.perf_counter(), 0
    history: list[Row] = []
    if speaker.layers is not None:
        raise InvalidConfig(
            f"{speaker.name} takes a stack of {len(speaker.layers)} layers; single layers are trained here."
        )

    def note(row: Row) -> None:
        history.append({"attempt": attempt, **row})
        if watch is not None:
            watch(history[-1])

    steps = 0
    for attempt in range(plan.restarts + 1):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.again(attempt).seed)
            model, taken = _attempt(plan.again(attempt), speaker, note)
        steps += taken
        read, verdict = judged(model, speaker)
        if verdict:
            break
    return Run(plan, speaker, model, read, verdict, steps, attempt, time.perf_counter() - begun, history)


def judged(model: Backbone, speaker: Task) -> tuple[Extracted, Verdict]:
    """The machine read out of a model, and whether it is the task's."""
    read = extract(model.eval(), symbols=speaker.machine.symbols, labels=speaker.machine.states)
    return read, certify(read, speaker.machine)


def _attempt(plan: Plan, speaker: Task, note: Watcher) -> tuple[Backbone, int]:
    """(trained model, steps taken)."""
    words = np.random.default_rng(plan.seed)
    weights = torch.Generator().manual_seed(plan.seed)
    if plan.arm == "paper":
        heads = plan.heads or factor(speaker.machine, seed=plan.seed).sizes
        model = _model(plan, speaker, heads, None, weights)
        phase = Tracking(model, speaker, plan.tracking, words)
        _take(phase, note, _judge(plan, speaker, model))
        return model, phase.steps
    codes = _codes(plan, speaker, words)
    model = _model(plan, speaker, codes.heads, codes.start, weights)
    anchor = Anchor(model, codes, plan.anchoring, weights)
    taught = Anchored(anchor, speaker, words, plan.tracking.batch, plan.tracking.length)
    _take(taught, note)
    anchor.release()
    released = Tracking(model, speaker, plan.release, words, name="released")
    _take(released, note)
    return model, taught.steps + released.steps


def _codes(plan: Plan, speaker: Task, words: np.random.Generator) -> Codes:
    """Which index of which head stands for which label."""
    if plan.arm == "anchored":
        return _codes_of(speaker.machine, plan)
    length = max(plan.tracking.length, 1)
    codes = find_codes(observe(speaker, words, batch=plan.tracking.batch, length=length), plan.heads, seed=plan.seed)
    if codes is None:
        raise InvalidConfig(
            f"no quotients of {speaker.name} that tell its states apart fit into heads {plan.heads}; "
            "leave the heads out and they are chosen."
        )
    return codes


def _codes_of(machine: Moore | Mealy, plan: Plan) -> Codes:
    found = factor(machine, seed=plan.seed) if plan.heads is None else factor_into(machine, plan.heads, seed=plan.seed)
    if found is None:
        raise InvalidConfig(f"no quotients that tell all states apart fit into heads {plan.heads}.")
    heads = plan.heads or found.sizes
    of_label: Ints = np.stack(found.partitions, axis=1).astype(np.int64)
    tables = []
    for d, table in zip(heads, found.tables, strict=True):
        tables.append(np.pad(table.astype(np.int64), ((0, 0), (0, d - table.shape[1])), constant_values=-1))
    return Codes(tuple(heads), of_label, tuple(tables), tuple(int(k) for k in of_label[machine.start]))


def _model(
    plan: Plan, speaker: Task, heads: tuple[int, ...], start: tuple[int, ...] | None, weights: torch.Generator
) -> Backbone:
    block = NFSM(plan.width, heads, start=start, temperature=plan.temperature, generator=weights)
    machine = speaker.machine
    return Backbone(
        machine.n_symbols, machine.n_states, [block], width=plan.width, dropout=plan.dropout, generator=weights
    )


def _judge(plan: Plan, speaker: Task, model: Backbone) -> Callable[[Row], bool] | None:
    """Whether to stop after a check: the machine is read out and right."""
    if plan.stop == "checks":
        return None

    def certified(row: Row) -> bool:
        return row["accuracy"] == 1.0 and bool(judged(model, speaker)[1])

    return certified


def _take(phase: Phase, note: Watcher, enough: Callable[[Row], bool] | None = None) -> None:
    """Take the steps of a phase, checking now and then, until it is done or it is enough."""
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0 or phase.done:
            row = phase.check()
            note({"phase": phase.name, "step": phase.steps, **row})
            if enough is not None and enough(row):
                return

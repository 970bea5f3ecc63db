"""Learn from outputs alone: find a machine that says what is heard, teach the network its states, certify behaviour.

The states are found by merging, from words and outputs; the network is taught codes for them and to say the outputs,
and then released on the task's own outputs. What is certified is that it puts out what the target does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from detent._types import Ints
from detent.automata import Mealy, Moore, factor
from detent.automata.factor.factor import factor_into
from detent.certify import Certificate, Verdict
from detent.errors import InvalidConfig
from detent.extract import Extracted
from detent.learning.passive_learning import hear
from detent.nn import Backbone
from detent.tasks import OutputTask, Task
from detent.tasks import task as get_task
from detent.train.build import Heads, judged, network
from detent.train.certifying import certificate_of, clears
from detent.train.checkpointer import Keeper
from detent.train.config import Plan
from detent.train.loop import Best, Row, Watcher, one_thread, take
from detent.train.phases import Anchored, Tracking
from detent.train.pretraining import Anchor, OutputAnchor
from detent.train.run_dir import BEST
from detent.train.stack_pretraining import fitted, teach
from detent.train.state_codes import Codes, find_codes, observe

# -- Learn a task: find or take codes, teach them, release the network, read its machine out and compare it.


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
    _certificate: Certificate | None = field(default=None, repr=False)

    @property
    def certified(self) -> bool:
        return bool(self.verdict)

    def certificate(self) -> Certificate:
        """What is proved of this network, with the rounding of every format down to the first that is too coarse."""
        if self._certificate is None:
            title = self.plan.title(self.task.name)
            self._certificate = certificate_of(self.model, self.extracted, self.verdict, title=title)
        return self._certificate

    @property
    def heads(self) -> tuple[int, ...]:
        """Indices of every head, of all layers."""
        return tuple(d for layer in self.extracted.heads for d in layer)


def learn(
    plan: Plan, watch: Watcher | None = None, *, task: Task | None = None, keeper: Keeper | None = None,
    history: Sequence[Row] = (),
) -> Run:  # fmt: skip
    """Follow the plan, beginning again with another seed while restarts are left and it is not right or not by enough.

    It is over when the machine that is read out is the target and its margins exceed what float32 may round.

    - `task`: the task, where the plan's name is not enough to find it.
    - `keeper`, `history`: where the run is put down, and what it has said so far.
    """
    task, keeper, history = plan.heard(task or get_task(plan.task)), keeper or Keeper(), list(history)
    plan = fitted(plan, task)

    def note(row: Row) -> None:
        history.append({"attempt": keeper.attempt, **row})
        keeper.rows += 1
        if watch is not None:
            watch(history[-1])

    while True:
        now = plan.again(keeper.attempt)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(now.seed)
            model = _attempt(now, task, note, keeper)
        read, verdict = judged(model, task)
        if (verdict and clears(model, read)) or keeper.attempt >= plan.restarts:
            break
        keeper.begin_again()
    return Run(plan, task, model, read, verdict, keeper.taken, keeper.attempt, keeper.seconds, history)


def _attempt(plan: Plan, task: Task, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained model."""
    words = np.random.default_rng(plan.seed)
    weights = torch.Generator().manual_seed(plan.seed)
    if plan.arm == "paper":
        layers = task.layers or (plan.heads or factor(task.machine, seed=plan.seed).sizes,)
        model = _model(plan, task, layers, None, weights)
        _track(plan, task, model, words, note, keeper)
        return model
    if task.layers is not None:
        return teach(plan, task, note, keeper)
    if isinstance(task, OutputTask):
        return listen(plan, task, note, keeper)
    codes = _codes(plan, task, words)
    model = _model(plan, task, (codes.heads,), (codes.start,), weights)
    anchor = Anchor(model, codes, plan.anchoring, weights)
    taught = Anchored(anchor, task, words, plan.tracking.batch, plan.tracking.length)
    take(taught, note, keeper)
    anchor.release()
    take(Tracking(model, task, plan.release, words, name="released"), note, keeper)
    return model


def _track(plan: Plan, task: Task, model: Backbone, words: np.random.Generator, note: Watcher, keeper: Keeper) -> None:
    """End to end, until the machine is read out and right, by more than rounding; or the best that came of it."""
    best = Best(model, None if keeper.path is None else keeper.path.with_name(BEST), keeper.attempt)

    def certified(row: Row) -> bool:
        best.look(row)
        if plan.stop != "certified" or row["accuracy"] < 1.0:
            return False
        read, verdict = judged(model, task)
        return bool(verdict) and clears(model, read)

    if not take(Tracking(model, task, plan.tracking, words), note, keeper, certified):
        best.restore()


def _codes(plan: Plan, task: Task, words: np.random.Generator) -> Codes:
    """Which index of which head stands for which label."""
    if plan.arm == "anchored":
        return _codes_of(task.machine, plan)
    length = max(plan.tracking.length, 1)
    codes = find_codes(observe(task, words, batch=plan.tracking.batch, length=length), plan.heads, seed=plan.seed)
    if codes is None:
        raise InvalidConfig(
            f"no quotients of {task.name} that tell its states apart fit into heads {plan.heads}; "
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


def _model(plan: Plan, task: Task, heads: Heads, starts: Heads | None, weights: torch.Generator) -> Backbone:
    return network(
        task, heads, starts, width=plan.width, dropout=plan.dropout, temperature=plan.temperature, generator=weights
    )


def listen(plan: Plan, task: OutputTask, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained model."""
    words, weights = np.random.default_rng(plan.seed), torch.Generator().manual_seed(plan.seed)
    found = hear(task, words).task
    batch, length = plan.tracking.batch, plan.tracking.length
    codes = find_codes(observe(found, words, batch=batch, length=length), plan.heads, seed=plan.seed)
    if codes is None:
        raise InvalidConfig(
            f"no quotients that tell the {found.machine.n_states} states apart, which were found in the outputs of "
            f"{task.name}, fit into heads {plan.heads}; leave the heads out and they are chosen."
        )
    model = network(
        task, (codes.heads,), (codes.start,), width=plan.width, dropout=plan.dropout,
        temperature=plan.temperature, generator=weights,
    )  # fmt: skip
    anchor = OutputAnchor(model, codes, plan.anchoring, weights, output_of=found.machine.readout)
    take(Anchored(anchor, found, words, batch, length), note, keeper)
    anchor.release()
    take(Tracking(model, task, plan.release, words, name="released"), note, keeper)
    return model

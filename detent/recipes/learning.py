"""Learn a task: find or take codes, teach them, release the network, read its machine out and compare it.

    run = learn(Plan(task="S4", seed=42))
    run.certified, run.seconds, run.heads

The judge is extraction: the machine is read out of the weights, without a look at the target, and then compared with
it on all words. Nothing else decides whether a run has learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from detent.automata import Mealy, Moore, factor
from detent.automata.factoring.sizes import factor_into
from detent.automata.running import Ints
from detent.certification import Certificate, Verdict
from detent.errors import InvalidConfig
from detent.extraction import Extracted
from detent.models import Backbone
from detent.recipes.certifying import certificate_of, clears
from detent.recipes.keeping import Keeper
from detent.recipes.listening import listen
from detent.recipes.networks import Heads, judged, network
from detent.recipes.plan import Plan
from detent.recipes.stacks import fitted, teach
from detent.recipes.taking import Best, Row, Watcher, take
from detent.recipes.threads import one_thread
from detent.tasks import OutputsOnly, Task, task
from detent.training import Anchor, Anchored, Codes, Tracking, find_codes, observe

BEST = "best.safetensors"
"""Beside a checkpoint: the weights of the paper's arm that did best so far."""


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
    plan: Plan, watch: Watcher | None = None, *, speaker: Task | None = None, keeper: Keeper | None = None,
    history: Sequence[Row] = (),
) -> Run:  # fmt: skip
    """Follow the plan, beginning again with another seed while restarts are left and it is not right or not by enough.

    It is over when the machine that is read out is the target and its margins exceed what float32 may round.

    - `speaker`: the task, where the plan's name is not enough to find it.
    - `keeper`, `history`: where the run is put down, and what it has said so far.
    """
    speaker, keeper, history = plan.heard(speaker or task(plan.task)), keeper or Keeper(), list(history)
    plan = fitted(plan, speaker)

    def note(row: Row) -> None:
        history.append({"attempt": keeper.attempt, **row})
        keeper.rows += 1
        if watch is not None:
            watch(history[-1])

    while True:
        now = plan.again(keeper.attempt)
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(now.seed)
            model = _attempt(now, speaker, note, keeper)
        read, verdict = judged(model, speaker)
        if (verdict and clears(model, read)) or keeper.attempt >= plan.restarts:
            break
        keeper.begin_again()
    return Run(plan, speaker, model, read, verdict, keeper.taken, keeper.attempt, keeper.seconds, history)


def _attempt(plan: Plan, speaker: Task, note: Watcher, keeper: Keeper) -> Backbone:
    """A trained model."""
    words = np.random.default_rng(plan.seed)
    weights = torch.Generator().manual_seed(plan.seed)
    if plan.arm == "paper":
        layers = speaker.layers or (plan.heads or factor(speaker.machine, seed=plan.seed).sizes,)
        model = _model(plan, speaker, layers, None, weights)
        _track(plan, speaker, model, words, note, keeper)
        return model
    if speaker.layers is not None:
        return teach(plan, speaker, note, keeper)
    if isinstance(speaker, OutputsOnly):
        return listen(plan, speaker, note, keeper)
    codes = _codes(plan, speaker, words)
    model = _model(plan, speaker, (codes.heads,), (codes.start,), weights)
    anchor = Anchor(model, codes, plan.anchoring, weights)
    taught = Anchored(anchor, speaker, words, plan.tracking.batch, plan.tracking.length)
    take(taught, note, keeper)
    anchor.release()
    take(Tracking(model, speaker, plan.release, words, name="released"), note, keeper)
    return model


def _track(
    plan: Plan, speaker: Task, model: Backbone, words: np.random.Generator, note: Watcher, keeper: Keeper
) -> None:
    """End to end, until the machine is read out and right, by more than rounding; or the best that came of it."""
    best = Best(model, None if keeper.path is None else keeper.path.with_name(BEST), keeper.attempt)

    def certified(row: Row) -> bool:
        best.look(row)
        if plan.stop != "certified" or row["accuracy"] < 1.0:
            return False
        read, verdict = judged(model, speaker)
        return bool(verdict) and clears(model, read)

    if not take(Tracking(model, speaker, plan.tracking, words), note, keeper, certified):
        best.restore()


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


def _model(plan: Plan, speaker: Task, heads: Heads, starts: Heads | None, weights: torch.Generator) -> Backbone:
    return network(
        speaker, heads, starts, width=plan.width, dropout=plan.dropout, temperature=plan.temperature, generator=weights
    )

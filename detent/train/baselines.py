"""Train a baseline on a task: the paper's loss and rule for stopping, in a folder that a killed run goes on from.

    outcome = train(BaselinePlan.named("S3", "mamba", recipe="cpu", seed=42), Path("runs/S3-42-mamba-cpu"))
    outcome.learned, outcome.accuracy, outcome.steps

Every `check_every` steps the sequence accuracy on fresh words is taken. Training stops after `checks` consecutive ones
of at least GOOD, or after the last step; the weights kept are those of the best check. The task is learned if that one
was at least LEARNED: the bar of the failing length, which then lies beyond the length of training. An affine recurrence
has no tables to read out, so nothing here ends in a certificate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from detent import records
from detent.errors import BrokenFile, InvalidConfig
from detent.nn import Backbone
from detent.tasks import task as get_task
from detent.train import checkpoint
from detent.train.baseline_config import BaselinePlan as BaselinePlan
from detent.train.build import cell_network as network
from detent.train.loop import patience
from detent.train.phases import Tracking
from detent.train.run import told
from detent.train.run_dir import CHECKPOINT, CONFIG, HISTORY, WEIGHTS, RunDir
from detent.train.settings import Settings

GOOD, LEARNED = 0.99, 0.9
"""Sequence accuracy of a check that counts towards stopping, and of a run that has learned."""
EVERY = 60.0
"""Seconds after which a run is put down between two checks."""
SHORTEST = 8
"""Length of the first words where lengths grow."""

Watcher = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a plan."""

    plan: BaselinePlan
    accuracy: float
    """Sequence accuracy of the best check, whose weights were kept."""
    first_error: float
    """Mean first error of the last step's words."""
    steps: int
    seconds: float
    resumed_at: int = 0
    """The step at which this call took the run up."""

    @property
    def learned(self) -> bool:
        return self.accuracy >= LEARNED


def train(plan: BaselinePlan, folder: Path, watch: Watcher | None = None, *, until: int | None = None) -> Outcome:
    """Follow the plan, from the folder's checkpoint if it has one; `until` puts it down at that step."""
    task = get_task(plan.task)
    _claim(folder, plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        weights = torch.Generator().manual_seed(plan.seed)
        model = network(plan.cell, plan.size, task, weights)
        phase = Tracking(model, task, plan.settings, np.random.default_rng(plan.seed))
        kept = _Kept.resume(folder, phase)
        resumed_at = kept.steps
        with patience() as stop:
            while not (kept.done(plan) or stop()) and phase.steps < (until or plan.settings.steps):
                begun = time.perf_counter()
                phase.settings = _at_length(plan, phase.reached)
                phase.step()
                kept.seconds += time.perf_counter() - begun
                if phase.steps % plan.settings.check_every == 0 or phase.steps == plan.settings.steps:
                    row = kept.check(phase, plan, folder)
                    if watch is not None:
                        watch(row)
                elif time.monotonic() - kept.last > EVERY:
                    kept.put_down(phase, folder)
            if phase.steps > kept.steps:
                kept.put_down(phase, folder)
            if stop():
                raise KeyboardInterrupt
    return Outcome(
        plan=plan, accuracy=kept.best, first_error=phase.reached, steps=phase.steps, seconds=kept.seconds,
        resumed_at=resumed_at,
    )  # fmt: skip


def load(folder: Path) -> tuple[BaselinePlan, Backbone]:
    """(the plan, the kept model in evaluation mode)."""
    plan = BaselinePlan.load(folder / CONFIG)
    model = network(plan.cell, plan.size, get_task(plan.task))
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise BrokenFile(folder / WEIGHTS, f"these are not the weights of this run ({told(error)})") from None
    return plan, model.eval()


def best_accuracy(folder: Path) -> float:
    """Of all checks in the history of a run: that of the weights that were kept."""
    if not (folder / HISTORY).exists():
        return 0.0
    return max((float(row["accuracy"]) for row in records.read(folder / HISTORY)), default=0.0)


def is_over(folder: Path) -> bool:
    """Whether the run of a folder has taken its last step or made its last check."""
    plan = BaselinePlan.load(folder / CONFIG)
    rows = list(records.read(folder / HISTORY)) if (folder / HISTORY).exists() else []
    last = [row["accuracy"] >= GOOD for row in rows[-plan.checks :]]
    return bool(rows) and (rows[-1]["step"] >= plan.settings.steps or (len(last) == plan.checks and all(last)))


@dataclass
class _Kept:
    """What a run remembers beside its phase."""

    steps: int = 0
    reached: float = 0.0
    good: int = 0
    best: float = 0.0
    seconds: float = 0.0
    last: float = field(default_factory=time.monotonic)
    """When it was put down."""

    def done(self, plan: BaselinePlan) -> bool:
        return self.good >= plan.checks or self.steps >= plan.settings.steps

    def check(self, phase: Tracking, plan: BaselinePlan, folder: Path) -> dict[str, Any]:
        """Take the accuracy, keep the weights if there were none better, and put everything down."""
        begun, trained_at = time.perf_counter(), phase.settings.length
        phase.settings = plan.settings
        accuracy = phase.accuracy()
        if accuracy >= self.best:
            weights = {name: tensor.detach().contiguous() for name, tensor in phase.model.state_dict().items()}
            records.write_atomically(folder / WEIGHTS, to_bytes(weights))
        self.good = self.good + 1 if accuracy >= GOOD else 0
        self.best = max(self.best, accuracy)
        self.seconds += time.perf_counter() - begun
        row = {
            "phase": "tracking", "step": phase.steps, "loss": phase.loss, "first_error": phase.reached,
            "accuracy": accuracy, "length": trained_at, "seconds": round(self.seconds, 3),
        }  # fmt: skip
        records.append(folder / HISTORY, row)
        self.put_down(phase, folder)
        return row

    def put_down(self, phase: Tracking, folder: Path) -> None:
        """Write everything that the next step depends on."""
        self.steps, self.reached, self.last = phase.steps, phase.reached, time.monotonic()
        counters = {name: getattr(self, name) for name in ("steps", "reached", "good", "best", "seconds")}
        checkpoint.save(folder / CHECKPOINT, phase.model, phase.optimizer, phase.generator, counters)

    @classmethod
    def resume(cls, folder: Path, phase: Tracking) -> _Kept:
        """Where the folder's checkpoint was made; the beginning if there is none."""
        if not (folder / CHECKPOINT).exists():
            return cls()
        kept = cls(**checkpoint.load(folder / CHECKPOINT, phase.model, phase.optimizer, phase.generator))
        phase.steps, phase.reached = kept.steps, kept.reached
        if (folder / HISTORY).exists():
            RunDir(folder).truncate_history(sum(row["step"] <= kept.steps for row in records.read(folder / HISTORY)))
        return kept


def _claim(folder: Path, plan: BaselinePlan) -> None:
    """Make the folder and write the plan; one with another plan is refused."""
    if (folder / CONFIG).exists():
        if BaselinePlan.load(folder / CONFIG) != plan:
            raise InvalidConfig(f"{folder} holds a run with another plan; name another folder, or remove it.")
        return
    RunDir(folder).refuse_foreign()
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder / CONFIG)


def _at_length(plan: BaselinePlan, reached: float) -> Settings:
    """The settings of the next step: the smallest power of two that holds twice the mean first error."""
    length = SHORTEST if plan.growing else plan.settings.length
    while length < min(2 * reached, plan.settings.length):
        length *= 2
    return replace(plan.settings, length=min(length, plan.settings.length))


def row_of(outcome: Outcome, folder: Path) -> dict[str, Any]:
    """The result row of a run."""
    plan = outcome.plan
    return {
        "task": plan.task, "cell": plan.cell, "recipe": plan.recipe, "seed": plan.seed, "learned": outcome.learned,
        "accuracy": outcome.accuracy, "learned_at": LEARNED, "stopped_at": GOOD,
        "first_error": round(outcome.first_error, 2),
        "steps": outcome.steps, "over": is_over(folder), "resumed_at": outcome.resumed_at,
        "seconds": round(outcome.seconds, 1), "threads": torch.get_num_threads(),
        "size": asdict(plan.size), "settings": asdict(plan.settings), "checks": plan.checks, "growing": plan.growing,
        "folder": folder.name, **records.stamp(),
    }  # fmt: skip

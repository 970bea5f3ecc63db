"""Train a baseline on a task: the paper's loss and rule for stopping, in a folder that a killed run goes on from.

    outcome = train(BaselinePlan.named("S3", "mamba", recipe="cpu", seed=42), Path("runs/S3-42-mamba-cpu"))
    outcome.learned, outcome.accuracy, outcome.steps

Every `check_every` steps the sequence accuracy on fresh words is taken. Training stops after `checks` consecutive ones
of at least GOOD, or after the last step; the weights kept are those of the best check. The task is learned if that one
was at least LEARNED: the bar of the failing length, which then lies beyond the length of training. An affine recurrence
has no tables to read out, so nothing here ends in a certificate.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from detent import records
from detent.errors import BrokenFile, InvalidConfig, unknown
from detent.models import Backbone
from detent.recipes.cells import BASELINES, Size, network
from detent.recipes.folder import CHECKPOINT, CONFIG, HISTORY, WEIGHTS, history_of
from detent.tasks import task
from detent.training import Settings, Tracking, checkpoint

GOOD, LEARNED = 0.99, 0.9
"""Sequence accuracy of a check that counts towards stopping, and of a run that has learned."""
SHORTEST = 8
"""Length of the first words where lengths grow."""

Watcher = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class BaselinePlan:
    """How a baseline is trained on a task."""

    task: str
    cell: str
    seed: int
    recipe: str
    """The name that stood for the numbers below."""
    size: Size
    settings: Settings
    checks: int
    """Consecutive good checks after which training stops."""
    growing: bool = False
    """Whether words are only as long as twice the mean first error asks for: what follows is muted anyway."""

    def __post_init__(self) -> None:
        if self.cell not in BASELINES:
            raise unknown("baseline", self.cell, BASELINES)
        if self.checks < 1:
            raise InvalidConfig(f"checks must be at least 1; got {self.checks}.")

    @classmethod
    def named(cls, task: str, cell: str, *, recipe: str = "cpu", seed: int = 42) -> BaselinePlan:
        """The plan that a recipe's name stands for."""
        if recipe not in RECIPES:
            raise unknown("recipe of a baseline", recipe, RECIPES)
        return RECIPES[recipe](task, cell, seed)

    def save(self, path: Path) -> None:
        records.write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> BaselinePlan:
        """What `save` wrote."""
        try:
            read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{**read, "size": Size(**read["size"]), "settings": Settings(**read["settings"])})
        except OSError as error:
            raise BrokenFile(path, f"cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, KeyError, LookupError) as error:
            raise BrokenFile(path, f"this is not the plan of a baseline's run ({error})") from None


def _cpu(name: str, cell: str, seed: int) -> BaselinePlan:
    """Two layers of width 32, no dropout, 1000 steps at most: about a minute of one core."""
    return BaselinePlan(
        task=name, cell=cell, seed=seed, recipe="cpu",
        size=Size(layers=2, width=32, channels=32, states=8, dropout=0.0),
        settings=Settings(batch=32, length=64, rate=5e-3, last_rate=5e-4, steps=1_000, check_words=128), checks=3,
        growing=task(name).question is None,
    )  # fmt: skip


def _paper(name: str, cell: str, seed: int) -> BaselinePlan:
    """The paper's: four layers of 256 channels in a backbone of width 128."""
    asks = task(name).question is not None
    return BaselinePlan(
        task=name, cell=cell, seed=seed, recipe="paper", size=Size(layers=4, width=128, channels=256, states=16),
        settings=Settings(
            batch=64 if asks else 256, length=256 if asks else 64, check_words=128 if name == "M11" else 512
        ), checks=40,
    )  # fmt: skip


RECIPES: dict[str, Callable[[str, str, int], BaselinePlan]] = {"cpu": _cpu, "paper": _paper}


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

    @property
    def learned(self) -> bool:
        return self.accuracy >= LEARNED


def train(plan: BaselinePlan, folder: Path, watch: Watcher | None = None, *, until: int | None = None) -> Outcome:
    """Follow the plan, from the folder's checkpoint if it has one; `until` puts it down at that step."""
    speaker = task(plan.task)
    _claim(folder, plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        weights = torch.Generator().manual_seed(plan.seed)
        model = network(plan.cell, plan.size, speaker, weights)
        phase = Tracking(model, speaker, plan.settings, np.random.default_rng(plan.seed))
        kept = _Kept.resume(folder, phase)
        while not kept.done(plan) and phase.steps < (until or plan.settings.steps):
            begun = time.perf_counter()
            phase.settings = _at_length(plan, phase.reached)
            phase.step()
            kept.seconds += time.perf_counter() - begun
            if phase.steps % plan.settings.check_every == 0 or phase.steps == plan.settings.steps:
                row = kept.check(phase, plan, folder)
                if watch is not None:
                    watch(row)
    return Outcome(
        plan=plan, accuracy=kept.best, first_error=phase.reached, steps=phase.steps, seconds=kept.seconds
    )  # fmt: skip


def load(folder: Path) -> tuple[BaselinePlan, Backbone]:
    """(the plan, the kept model in evaluation mode)."""
    plan = BaselinePlan.load(folder / CONFIG)
    model = network(plan.cell, plan.size, task(plan.task))
    try:
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise BrokenFile(
            folder / WEIGHTS, f"these are not the weights of this run ({str(error).splitlines()[0]})"
        ) from None
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
        self.best, self.steps, self.reached = max(self.best, accuracy), phase.steps, phase.reached
        self.seconds += time.perf_counter() - begun
        row = {
            "phase": "tracking", "step": phase.steps, "loss": phase.loss, "first_error": phase.reached,
            "accuracy": accuracy, "length": trained_at, "seconds": round(self.seconds, 3),
        }  # fmt: skip
        records.append(folder / HISTORY, row)
        checkpoint.save(folder / CHECKPOINT, phase.model, phase.optimizer, phase.generator, asdict(self))
        return row

    @classmethod
    def resume(cls, folder: Path, phase: Tracking) -> _Kept:
        """Where the folder's checkpoint was made; the beginning if there is none."""
        if not (folder / CHECKPOINT).exists():
            return cls()
        kept = cls(**checkpoint.load(folder / CHECKPOINT, phase.model, phase.optimizer, phase.generator))
        phase.steps, phase.reached = kept.steps, kept.reached
        history_of(folder, sum(row["step"] <= kept.steps for row in records.read(folder / HISTORY)))
        return kept


def _claim(folder: Path, plan: BaselinePlan) -> None:
    """Make the folder and write the plan; one with another plan is refused."""
    if (folder / CONFIG).exists():
        if BaselinePlan.load(folder / CONFIG) != plan:
            raise InvalidConfig(f"{folder} holds a run with another plan; name another folder, or remove it.")
        return
    if folder.is_file() or (folder / WEIGHTS).exists():
        raise InvalidConfig(f"{folder} holds a run already; name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder / CONFIG)


def _at_length(plan: BaselinePlan, reached: float) -> Settings:
    """The settings of the next step: the smallest power of two that holds twice the mean first error."""
    length = SHORTEST if plan.growing else plan.settings.length
    while length < min(2 * reached, plan.settings.length):
        length *= 2
    return replace(plan.settings, length=min(length, plan.settings.length))

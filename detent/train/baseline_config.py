"""How a baseline is trained on a task, written down; and the ways that have a name: cpu, cpu-long, cpu-short, paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from detent import records
from detent.errors import BrokenFile, InvalidConfig, unknown
from detent.tasks import task
from detent.train.build import BASELINES, Size
from detent.train.settings import Settings


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
        if not 0 <= self.seed < 1 << 62:
            raise InvalidConfig(f"a seed is a number from 0 to 2^62 - 1; got {self.seed}.")
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


def _cpu_long(name: str, cell: str, seed: int) -> BaselinePlan:
    """The same with four times the steps, for the tasks that `cpu` leaves unlearned."""
    plan = _cpu(name, cell, seed)
    return replace(plan, recipe="cpu-long", settings=replace(plan.settings, steps=4_000))


def _cpu_short(name: str, cell: str, seed: int) -> BaselinePlan:
    """The paper's four layers, of width 64, on words of 16: for S4, which none of them learns at 64 in minutes."""
    plan = _cpu(name, cell, seed)
    return replace(
        plan, recipe="cpu-short", size=replace(plan.size, layers=4, width=64),
        settings=replace(plan.settings, length=16, rate=3e-3, last_rate=3e-4, steps=2_000),
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


RECIPES: dict[str, Callable[[str, str, int], BaselinePlan]] = {
    "cpu": _cpu, "cpu-long": _cpu_long, "cpu-short": _cpu_short, "paper": _paper,
}  # fmt: skip

"""A run, written down: everything that decides how it goes. Saved beside its results, so that it can be done again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from detent.errors import BrokenFile, InvalidConfig, unknown
from detent.records import write_atomically
from detent.tasks import OutputTask, Task
from detent.train.pretraining import Anchoring
from detent.train.settings import Settings

ARMS = {
    "default": "codes found in the transitions that the training stream shows, taught, then released",
    "anchored": "codes computed from the target machine, or registers that the task names, taught, then released",
    "paper": "the paper's recipe; on the quick path tokens share dropout masks",
}
RELEASE = Settings(
    batch=64, length=32, rate=3e-4, last_rate=3e-4, eps=1e-3, exploration=0.0, last_exploration=0.0, noise=False,
    steps=20, check_every=20, check_words=64, perfect_checks=1_000,
)  # fmt: skip
"""The task's own loss, without codes and without noise: sampled tables would undo rare transitions again."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a task is learned."""

    task: str
    """A task's name, or the path of a machine file."""
    seed: int = 42
    cell: str = "nfsm"
    """Always this one: the plans of other cells are in `baselines`."""
    arm: str = "default"
    """Which way of learning; see ARMS."""
    supervise: str = "states"
    """What is told at every symbol: the `states` of the machine, or its `outputs`."""
    heads: tuple[int, ...] | None = None
    """Indices of each head; found by the library when not given."""
    width: int = 128
    dropout: float = 0.1
    temperature: float = 0.5
    restarts: int = 4
    """How often it may begin again with another seed when it ends with a machine that is wrong or too close to it."""
    anchoring: Anchoring = field(default_factory=Anchoring)
    tracking: Settings = field(default_factory=Settings)
    """Of the paper's arm."""
    release: Settings = RELEASE
    stop: str = "certified"
    """When the paper's arm ends: `certified`, or `checks` for the paper's own rule."""

    def __post_init__(self) -> None:
        if self.cell != "nfsm":
            raise InvalidConfig(f"this is a plan for 'nfsm'; {self.cell!r} takes a BaselinePlan.")
        if self.arm not in ARMS:
            raise unknown("arm", self.arm, ARMS)
        if self.supervise not in ("states", "outputs"):
            raise unknown("supervision", self.supervise, ("states", "outputs"))
        if self.supervise == "outputs" and self.arm == "anchored":
            raise InvalidConfig("the arm 'anchored' is given states; outputs alone go with 'default' and 'paper'.")
        if self.stop not in ("certified", "checks"):
            raise unknown("stopping rule", self.stop, ("certified", "checks"))
        if self.restarts < 0:
            raise InvalidConfig(f"restarts are 0 or more; got {self.restarts}.")
        if not 0 <= self.seed < 1 << 62:
            raise InvalidConfig(f"a seed is a number from 0 to 2^62 - 1; got {self.seed}.")
        if not isinstance(self.width, int) or self.width < 1:
            raise InvalidConfig(f"the width is a number from 1 on; got {self.width!r}.")

    def heard(self, task: Task) -> Task:
        """The task with what this plan tells of it as labels."""
        return OutputTask.of_task(task) if self.supervise == "outputs" else task

    @property
    def longest(self) -> dict[str, int]:
        """Steps that every phase takes at most."""
        return {
            "anchored": self.anchoring.longest, "released": self.release.steps, "tracking": self.tracking.steps,
        }  # fmt: skip

    def title(self, name: str) -> str:
        """What a network that followed it is called; `name` is that of the task."""
        told = "" if self.supervise == "states" else f" from {self.supervise}"
        return f"{name}{told}, {self.arm}, seed {self.seed}"

    def save(self, path: Path) -> None:
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Plan:
        """What `save` wrote."""
        try:
            read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if (cell := read.get("cell", "nfsm")) != "nfsm":
                raise BrokenFile(path, f"this is a run of {cell!r}, which has no tables to read out; sweep it.")
            heads = read.pop("heads")
            return cls(
                **{**read, "anchoring": Anchoring(**read["anchoring"]), "tracking": Settings(**read["tracking"]),
                   "release": Settings(**read["release"])},
                heads=None if heads is None else tuple(heads),
            )  # fmt: skip
        except BrokenFile:
            raise
        except OSError as error:
            raise BrokenFile(path, f"cannot be read ({error.strerror})") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BrokenFile(path, f"this is not the plan of a run ({error})") from None

    def again(self, attempt: int) -> Plan:
        """The same with the seed of a later attempt."""
        return self if attempt == 0 else replace(self, seed=self.seed + 1_000 * attempt)

"""Checkpoints: everything that the next step depends on, in one file. JSON and safetensors, no pickle.

A run that was killed resumes from its last checkpoint and ends with the same bits as one that was not. What precedes
the first step (words counted, heads chosen, weights drawn) is computed again from the seed; the file holds the rest:
weights, moments, schedules, generators and counters of the current phase, and the steps of the phases before it.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from exactstate.errors import BrokenFile
from exactstate.records import write_atomically

if TYPE_CHECKING:
    from exactstate.train.phases import Phase

VERSION = 2
SAVE_EVERY = 5.0
"""Seconds between two checkpoints."""


@dataclass
class Checkpointer:
    """Saves the state of a run, and restores it; without a path it does neither."""

    path: Path | None = None
    every: float = SAVE_EVERY
    """Seconds between two checkpoints."""
    attempt: int = 0
    """How often the run has started anew."""
    steps: int = 0
    """Of the attempts before this one."""
    rows: int = 0
    """Of the history."""
    resumed_at: int = 0
    """The step at which this process resumed the run."""
    _seconds: float = 0.0
    """Of earlier processes."""
    _finished: dict[str, int] = field(default_factory=dict)
    """Steps of the finished phases of this attempt."""
    _current: str | None = None
    """The phase that the file holds, until it is restored."""

    def __post_init__(self) -> None:
        self._started = self._saved = time.perf_counter()
        if self.path is None or not self.path.exists():
            return
        held = read_counters(self.path)
        self.attempt, self.steps, self.rows, self._seconds = (
            held[name] for name in ("attempt", "steps", "rows", "seconds")
        )
        self._finished, self._current = held["finished"], held["phase"]
        self.resumed_at = self.total_steps + int(held["state"]["steps"])

    @property
    def seconds(self) -> float:
        """How long the run has taken so far, in all processes."""
        return self._seconds + time.perf_counter() - self._started

    @property
    def total_steps(self) -> int:
        """Steps of all attempts and phases, except for a phase that is still running."""
        return self.steps + sum(self._finished.values())

    def restore(self, phase: Phase) -> bool:
        """Bring the phase to where the checkpoint holds it; whether it was finished by then."""
        if self._current == phase.name and self.path is not None:
            phase.load_state(load(self.path, phase.module, phase.optimizer, phase.generator)["state"])
            self._current = None
        if phase.name in self._finished:
            phase.steps = self._finished[phase.name]
            return True
        return False

    def maybe_save(self, phase: Phase, *, now: bool = False) -> None:
        """Write a checkpoint, unless the last one is recent."""
        if self.path is None or (not now and time.perf_counter() - self._saved < self.every):
            return
        counters = {
            "attempt": self.attempt, "steps": self.steps, "rows": self.rows, "seconds": self.seconds,
            "finished": self._finished, "phase": phase.name, "state": phase.state(),
        }  # fmt: skip
        save(self.path, phase.module, phase.optimizer, phase.generator, counters)
        self._saved = time.perf_counter()

    def finish_phase(self, phase: Phase, *, keep: bool = False) -> None:
        """Note that the phase is finished; the checkpoint of the next one says so, or with `keep` one at once."""
        self._finished[phase.name] = phase.steps
        if keep:
            self.maybe_save(phase, now=True)

    def next_attempt(self) -> None:
        """Note that the attempt is over, and another follows."""
        self.attempt, self.steps = self.attempt + 1, self.total_steps
        self._finished = {}


def save(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, generator: np.random.Generator,
    counters: dict[str, Any],
) -> None:  # fmt: skip
    """Write everything that the next step depends on into one file."""
    tensors = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    tensors["torch"] = torch.get_rng_state()
    state = {
        "version": VERSION,
        "counters": counters,
        "lr": [group["lr"] for group in optimizer.param_groups],
        "generator": _to_json(generator.bit_generator.state),
    }
    kept = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, to_bytes(kept, {"state": json.dumps(state)}))


def read_counters(path: Path) -> dict[str, Any]:
    """The counters alone."""
    try:
        with safe_open(path, framework="pt") as file:
            counters: dict[str, Any] = _state(path, file.metadata())["counters"]
            return counters
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise _broken(path, error) from None


def load(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, generator: np.random.Generator
) -> dict[str, Any]:
    """Restore everything that `save` wrote; returns the counters."""
    try:
        with safe_open(path, framework="pt") as file:
            state = _state(path, file.metadata())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        module.load_state_dict(_with_prefix("module.", tensors))
        described = optimizer.state_dict()
        described["state"] = _moments(_with_prefix("optimizer.", tensors))
        for group, lr in zip(described["param_groups"], state["lr"], strict=True):
            group["lr"] = lr
        optimizer.load_state_dict(described)
        generator.bit_generator.state = _from_json(state["generator"])
        torch.set_rng_state(tensors["torch"])
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise _broken(path, error) from None
    counters: dict[str, Any] = state["counters"]
    return counters


def _state(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((metadata or {})["state"])
    if state["version"] != VERSION:
        raise BrokenFile(path, f"this checkpoint has version {state['version']}; version {VERSION} was wanted.")
    return state


def _broken(path: Path, error: Exception) -> BrokenFile:
    if isinstance(error, BrokenFile):
        return error
    reason = f"this is not a checkpoint of this run ({str(error).splitlines()[0]}); remove it to start anew."
    return BrokenFile(path, reason)


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _moments(flat: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in flat.items():
        number, moment = name.split(".", 1)
        moments.setdefault(int(number), {})[moment] = tensor
    return moments


def _to_json(value: Any) -> Any:
    """NumPy's description of a generator as JSON can hold it."""
    if isinstance(value, dict):
        return {key: _to_json(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": [int(entry) for entry in value], "dtype": str(value.dtype)}
    return int(value) if isinstance(value, np.integer) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    return {key: _from_json(entry) for key, entry in value.items()} if isinstance(value, dict) else value

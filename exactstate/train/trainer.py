"""The training loop: one `Trainer` runs the phases of every recipe, for the NFSM and for all other cells.

    trainer = Trainer(RunDir("runs/S3"), watch=print)
    trainer.run_phase(EndToEndPhase(model, task, config.end_to_end, generator))

A phase takes steps and checks itself on fresh words. The trainer notes a row per check, keeps the best weights, saves
checkpoints, stops early, and on SIGINT or SIGTERM finishes the step, saves a checkpoint and raises `Interrupted`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from exactstate.nn import Backbone
from exactstate.records import Row, write_atomically
from exactstate.tasks import Task
from exactstate.train.build import load_model, save_model
from exactstate.train.checkpoint import SAVE_EVERY, Checkpointer
from exactstate.train.config import TrainConfig
from exactstate.train.phases import Phase
from exactstate.train.run_dir import RunDir

Watcher = Callable[[Row], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run that was stopped by a signal between two steps, with a checkpoint; says where."""


class Trainer:
    """Runs phases, one after the other, and keeps their history."""

    def __init__(
        self, run_dir: RunDir | None = None, watch: Watcher | None = None, *, save_every: float = SAVE_EVERY,
        until: int | None = None, max_seconds: float | None = None,
    ) -> None:  # fmt: skip
        """
        - `run_dir`: where checkpoints, best weights and history go; an unfinished run there is resumed.
        - `watch`: called with every row of the history.
        - `save_every`: seconds between two checkpoints.
        - `until`, `max_seconds`: pause at this step of a phase, or after so much time in all processes; the run stays
          unfinished, and can be resumed.
        """
        self.run_dir, self.watch, self.until, self.max_seconds = run_dir, watch, until, max_seconds
        self.checkpointer = Checkpointer(None if run_dir is None else run_dir.checkpoint_path, save_every)
        self.history: list[Row] = [] if run_dir is None else run_dir.truncate_history(self.checkpointer.rows)
        self.paused = False
        self.last_state: Row = {}
        """Counters of the phase that ran last."""

    def note(self, row: Row) -> None:
        """Add a row to the history."""
        row = {"attempt": self.checkpointer.attempt, **row}
        self.history.append(row)
        self.checkpointer.rows += 1
        if self.run_dir is not None:
            self.run_dir.append_history(row)
        if self.watch is not None:
            self.watch(row)

    def run_phase(
        self, phase: Phase, *, stop: Callable[[Row], bool] | None = None, best: BestWeights | None = None,
        keep: bool = False,
    ) -> bool:  # fmt: skip
        """Run a phase until it is done or `stop` holds of the row of a check; whether `stop` ended it.

        With `best`, the best weights are restored where `stop` did not end the phase. With `keep`, a checkpoint holds
        the finished phase until the next one saves its own, for work between two phases that takes long.
        """
        checkpointer = self.checkpointer
        if self.paused or checkpointer.restore(phase):
            return False
        stopped = False
        with nullcontext(lambda: False) if self.run_dir is None else graceful_stop() as signalled:
            while not (phase.done or stopped or self.paused):
                phase.step()
                if phase.steps % phase.check_every == 0 or phase.done:
                    row = phase.check()
                    self.note({"phase": phase.name, "step": phase.steps, **row})
                    if best is not None:
                        best.update(row)
                    stopped = stop is not None and stop(row)
                if stopped:
                    break
                self.paused = self._out_of_budget(phase.steps) and not phase.done
                checkpointer.maybe_save(phase, now=signalled() or self.paused)
                if signalled():
                    raise Interrupted(f"stopped after step {phase.steps} of the phase '{phase.name}'")
        self.last_state = phase.state()
        if self.paused:
            self.pause_steps = checkpointer.total_steps + phase.steps
            return False
        checkpointer.finish_phase(phase, keep=keep)
        if best is not None and not stopped:
            best.restore()
        return stopped

    def _out_of_budget(self, steps: int) -> bool:
        too_long = self.max_seconds is not None and self.checkpointer.seconds >= self.max_seconds
        return too_long or (self.until is not None and steps >= self.until)

    def best_weights(self, model: nn.Module, by: Sequence[str] = ("accuracy", "first_error")) -> BestWeights:
        """A keeper of the best weights of this attempt, which survives a kill."""
        path = None if self.run_dir is None else self.run_dir.best_path
        return BestWeights(model, path, self.checkpointer.attempt, by)

    def transform(self, name: str, config: TrainConfig, task: Task, change: Callable[[], Backbone]) -> Backbone:
        """A model that is changed between two phases, such as one with heads pruned; saved in the run as a stage.

        A resumed run loads the stage, so that the phases that follow find a model of the right shape.
        """
        if self.run_dir is not None and self.has_stage(name):
            return load_model(self.run_dir.stage_path(name), config, task)[0]
        model = change()
        if self.run_dir is not None and not self.paused:
            save_model(self.run_dir.stage_path(name), model, {"attempt": str(self.checkpointer.attempt)})
        return model

    def has_stage(self, name: str) -> bool:
        """Whether `transform` has saved this stage of this attempt."""
        if self.run_dir is None or not self.run_dir.stage_path(name).exists():
            return False
        with safe_open(self.run_dir.stage_path(name), framework="pt") as file:
            return (file.metadata() or {}).get("attempt") == str(self.checkpointer.attempt)

    @property
    def steps(self) -> int:
        """Steps of all attempts and phases so far."""
        return self.pause_steps if self.paused else self.checkpointer.total_steps


class BestWeights:
    """The weights of the best check so far: of one attempt, in memory, and in a file if there is a path."""

    def __init__(
        self, model: nn.Module, path: Path | None, attempt: int, by: Sequence[str] = ("accuracy", "first_error")
    ) -> None:
        """`by`: the columns of a row to compare, the most important one first."""
        self.model, self.path, self.attempt, self.by = model, path, attempt, tuple(by)
        self.score = tuple(-1.0 for _ in self.by)
        self.weights: dict[str, Tensor] = {}
        if path is None or not path.exists():
            return
        with safe_open(path, framework="pt") as file:
            held = file.metadata() or {}
        if held.get("attempt") == str(attempt):
            self.score, self.weights = tuple(float(part) for part in held["score"].split()), load_file(path)

    def update(self, row: Row) -> None:
        """Keep the weights if no earlier check did better."""
        score = tuple(float(row[name]) for name in self.by)
        if score < self.score:
            return
        self.score = score
        self.weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        if self.path is not None:
            metadata = {"attempt": str(self.attempt), "score": " ".join(repr(part) for part in score)}
            write_atomically(self.path, to_bytes(self.weights, metadata))

    def restore(self) -> None:
        """Load the best weights into the model."""
        if self.weights:
            self.model.load_state_dict(self.weights)


@contextmanager
def graceful_stop() -> Iterator[Callable[[], bool]]:
    """Catch SIGINT and SIGTERM: the first one is noted, the second ends at once. Only the main thread gets signals."""
    received: list[int] = []

    def handle(number: int, frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Outside a phase, where SIGINT raises KeyboardInterrupt, let SIGTERM do the same instead of ending the process."""

    def handle(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread: a step is a few rows, and waking a second thread costs more than it gains."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

"""Take the steps of a phase: check now and then, keep the best, put the run down, stop when it is enough."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from detent.records import Row, write_atomically
from detent.train.checkpointer import Interrupted, Keeper, Lasting

# -- Ctrl-C between two steps: the first one is noted and answered when the step is whole, the second ends at once.


@contextmanager
def patience() -> Iterator[Callable[[], bool]]:
    """While it lasts: whether somebody has asked to stop. Only the main thread can be asked."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


# -- One thread for training: a step is a few rows, and waking a second thread costs more than it brings.


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


Watcher = Callable[[Row], None]


def take(phase: Lasting, note: Watcher, keeper: Keeper, enough: Callable[[Row], bool] | None = None) -> bool:
    """Go on with a phase until it is done, it is enough, or somebody asks to stop; whether it was enough."""
    if keeper.take_up(phase):
        return False
    reached = False
    with nullcontext(lambda: False) if keeper.path is None else patience() as asked_to_stop:
        while not (phase.done or reached):
            phase.step()
            if phase.steps % phase.check_every == 0 or phase.done:
                row = phase.check()
                note({"phase": phase.name, "step": phase.steps, **row})
                reached = enough is not None and enough(row)
                if not reached:
                    keeper.put_down(phase)
            if asked_to_stop():
                keeper.put_down(phase, now=True)
                raise Interrupted(f"stopped after step {phase.steps} of the phase '{phase.name}'")
    keeper.leave(phase)
    return reached


class Best:
    """The weights that did best at a check so far: of one attempt, in memory, and in a file if there is a path."""

    def __init__(self, model: nn.Module, path: Path | None, attempt: int) -> None:
        self.model, self.path, self.attempt = model, path, attempt
        self.score, self.weights = (-1.0, -1.0), dict[str, Tensor]()
        if path is None or not path.exists():
            return
        with safe_open(path, framework="pt") as file:
            held = file.metadata() or {}
        if held.get("attempt") == str(attempt):
            accuracy, first_error = (float(part) for part in held["score"].split())
            self.score, self.weights = (accuracy, first_error), load_file(path)

    def look(self, row: Row) -> None:
        """Keep the weights if they did at least as well as any before: in words all right, then in first errors."""
        score = (row["accuracy"], row["first_error"])
        if score < self.score:
            return
        self.score = score
        self.weights = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        if self.path is not None:
            told = {"attempt": str(self.attempt), "score": f"{score[0]!r} {score[1]!r}"}
            write_atomically(self.path, to_bytes(self.weights, told))

    def restore(self) -> None:
        """Give the model the best weights back."""
        if self.weights:
            self.model.load_state_dict(self.weights)

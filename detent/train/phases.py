"""Phases of training: something that takes steps, can be checked, and can be put down and taken up again.

`Anchored` teaches codes, `Tracking` is training end to end with the loss of the paper. Both draw their words from the
generator they are given; what the next step depends on is written down by `checkpoint`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from detent._types import Ints
from detent.errors import InvalidConfig
from detent.nn import NFSM, Backbone
from detent.nn.losses import first_error
from detent.records import Row
from detent.tasks import Batch, Task
from detent.train import fast_gradient
from detent.train.pretraining import Anchor, Anchoring, rows_of
from detent.train.settings import Settings

# -- A phase with a teacher: right columns and right read-outs are known, and taught until all of them lead by a margin.


class Taught(ABC):
    """Steps on `lesson()`, until `margins()` are reached twice in a row."""

    name = "anchored"

    def __init__(self, module: nn.Module, settings: Anchoring) -> None:
        self.module, self.settings = module, settings
        self.steps, self.streak, self.loss = 0, 0, float("nan")
        self.check_every = settings.check_every
        self.optimizer = torch.optim.AdamW(module.parameters(), settings.rate, weight_decay=settings.weight_decay)

    @abstractmethod
    def lesson(self) -> Tensor:
        """The loss of one step."""

    @abstractmethod
    def margins(self) -> tuple[float, float]:
        """The smallest leads of a right column's entry, and of a right read-out."""

    @property
    def done(self) -> bool:
        return self.streak >= 2 or self.steps >= self.settings.longest

    def step(self) -> None:
        self.module.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.rate * max(0.1, min(1.0, 100 / (self.steps + 1)))
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.lesson()
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
        self.optimizer.step()
        self.steps, self.loss = self.steps + 1, float(loss.detach())

    def check(self) -> dict[str, float]:
        tables, reads = self.margins()
        reached = tables >= self.settings.table_margin and reads >= self.settings.read_margin
        self.streak = self.streak + 1 if reached else 0
        return {"loss": self.loss, "table_margin": tables, "read_margin": reads}


class Phase(Protocol):
    """What the loop needs to know."""

    name: str
    steps: int
    check_every: int

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """What changes them."""

    @property
    def module(self) -> nn.Module:
        """Whose parameters are trained."""

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""

    def step(self) -> None:
        """One step of the optimiser."""

    def check(self) -> Row:
        """What can be said after the last step."""


def tokens(batch: Batch) -> Tensor:
    return torch.from_numpy(batch.inputs.astype(np.int64))


def labels(batch: Batch) -> Tensor:
    return torch.from_numpy(batch.states.astype(np.int64))


def answers(batch: Batch) -> Tensor | None:
    return None if batch.answers is None else torch.from_numpy(batch.answers.astype(np.int64))


class Anchored(Taught):
    """Codes as teachers."""

    def __init__(
        self, anchor: Anchor, task: Task, generator: np.random.Generator, batch: int = 256, length: int = 64
    ) -> None:
        super().__init__(anchor, anchor.settings)
        self.anchor, self.task, self.generator, self.batch, self.length = anchor, task, generator, batch, length

    def lesson(self) -> Tensor:
        self.last = self.task.sample(self.batch, self.length, self.generator)
        self.anchor.codes.learn_labels(self.last)
        return self.anchor.loss(*self._rows(self.anchor.settings.rows))

    def margins(self) -> tuple[float, float]:
        return self.anchor.margins(*self._rows(None))

    def _rows(self, most: int | None) -> tuple[Ints, Ints]:
        return rows_of(self.last, self.task.machine.n_states, most, self.generator)


@dataclass
class Tracking:
    """Words in, labels out, the loss of the paper."""

    model: Backbone
    task: Task
    settings: Settings
    generator: np.random.Generator
    name: str = "tracking"
    steps: int = 0
    streak: int = 0
    loss: float = float("nan")
    reached: float = 0.0

    def __post_init__(self) -> None:
        self.check_every = self.settings.check_every
        self.path = _path(self.model, self.settings)
        self.optimizer = torch.optim.AdamW(
            _groups(self.model, self.settings), self.settings.rate, eps=self.settings.eps, fused=True
        )

    @property
    def module(self) -> nn.Module:
        return self.model

    @property
    def done(self) -> bool:
        return self.steps >= self.settings.steps or self.streak >= self.settings.perfect_checks

    def step(self) -> None:
        settings = self.settings
        self.model.train()
        for layer in self.model.layers:
            layer.block.train(settings.noise)  # type: ignore[union-attr]
        batch = self.task.sample(settings.batch, settings.length, self.generator)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.decayed(settings.rate, settings.last_rate, self.steps)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss, first = self._gradient(tokens(batch), labels(batch), answers(batch))
        nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip)
        self.optimizer.step()
        self.steps, self.reached = self.steps + 1, float(first.float().mean())

    def _gradient(self, inputs: Tensor, wanted: Tensor, asked: Tensor | None) -> tuple[float, Tensor]:
        """(loss, first error of every word), with the gradient left in the parameters."""
        settings, seed = self.settings, int(self.generator.integers(1 << 62))
        exploration = settings.decayed(settings.exploration, settings.last_exploration, self.steps)
        if self.path == "plain":
            return fast_gradient.autograd_gradient(
                self.model, inputs, wanted, settings, seed=seed, exploration=exploration, answers=asked
            )
        masks = torch.from_numpy(self.generator.integers(settings.masks, size=inputs.shape))
        return fast_gradient.gradient(
            self.model, inputs, wanted, settings, masks=masks, seed=seed if settings.noise else None,
            exploration=exploration,
        )  # fmt: skip

    def check(self) -> Row:
        accuracy = self.accuracy()
        self.streak = self.streak + 1 if accuracy == 1.0 else 0
        return {"loss": self.loss, "first_error": self.reached, "accuracy": accuracy, "path": self.path}

    @torch.no_grad()
    def accuracy(self) -> float:
        """The share of fresh words whose labels are all right, and the answer where there is one."""
        self.model.eval()
        batch = self.task.sample(self.settings.check_words, self.settings.length, self.generator)
        if self.path == "quick":
            first = fast_gradient.first_errors(self.model, tokens(batch), labels(batch), self.settings)
            return float((first == self.settings.length).double().mean())
        right = 0
        for begin in range(0, len(batch.inputs), 64):
            some = slice(begin, begin + 64)
            h, _ = self.model.hidden(tokens(batch)[some])
            wanted = labels(batch)[some]
            correct = first_error(self.model.label_logits(h), wanted) == wanted.shape[1]
            if (right_ones := answers(batch)) is not None:
                correct &= self.model.answer_logits(h[:, -1]).argmax(-1) == right_ones[some]
            right += int(correct.sum())
        return right / len(batch.inputs)


def _path(model: Backbone, settings: Settings) -> str:
    """The path by name, `auto` resolved."""
    allowed = fast_gradient.allows(model)
    if settings.path == "quick" and not allowed:
        raise InvalidConfig(
            "path 'quick' trains one NFSM layer without a convolution on the CPU, and this model is another; "
            "say path='plain', or 'auto'."
        )
    return ("quick" if allowed else "plain") if settings.path == "auto" else settings.path


def _groups(model: Backbone, settings: Settings) -> list[Row]:
    """No weight decay on the transition projections and the embedding."""
    kept = {id(model.embedding.weight)}
    for layer in model.layers:
        if isinstance(layer.block, NFSM):
            kept |= {id(layer.block.weight), id(layer.block.bias)}
    free = [parameter for parameter in model.parameters() if id(parameter) in kept]
    rest = [parameter for parameter in model.parameters() if id(parameter) not in kept]
    return [{"params": rest, "weight_decay": settings.weight_decay}, {"params": free, "weight_decay": 0.0}]

"""Phases of training: something that takes steps, can be checked, and can be put down and taken up again.

`Anchored` teaches codes, `Tracking` is training end to end with the loss of the paper. Both draw their words from the
generator they are given, and keep everything that the next step depends on in `state()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from detent.layers import NFSM
from detent.models import Backbone
from detent.tasks import Batch, Task
from detent.training.anchor import Anchor, rows_of
from detent.training.exploration import exploration_penalty, watched
from detent.training.loss import first_error, tracking_loss
from detent.training.settings import Settings

Row = dict[str, Any]


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


def answers(batch: Batch) -> Tensor:
    return torch.from_numpy(batch.answers.astype(np.int64))  # type: ignore[union-attr]


@dataclass
class Anchored:
    """Codes as teachers, until every column and every read-out leads by its margin twice in a row."""

    anchor: Anchor
    task: Task
    generator: np.random.Generator
    batch: int = 256
    length: int = 64
    name: str = "anchored"
    steps: int = 0
    streak: int = 0
    loss: float = float("nan")

    def __post_init__(self) -> None:
        settings = self.anchor.settings
        self.check_every = settings.check_every
        self.optimizer = torch.optim.AdamW(self.anchor.parameters(), settings.rate, weight_decay=settings.weight_decay)

    @property
    def module(self) -> nn.Module:
        return self.anchor

    @property
    def done(self) -> bool:
        return self.streak >= 2 or self.steps >= self.anchor.settings.longest

    def step(self) -> None:
        settings, codes = self.anchor.settings, self.anchor.codes
        self.anchor.train()
        self.last = self.task.sample(self.batch, self.length, self.generator)
        codes.learn_labels(self.last)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.rate * max(0.1, min(1.0, 100 / (self.steps + 1)))
        rows = rows_of(self.last, self.task.machine.n_states, settings.rows, self.generator)
        _descend(self.optimizer, self.anchor, loss := self.anchor.loss(*rows), 1.0)
        self.steps, self.loss = self.steps + 1, float(loss.detach())

    def check(self) -> Row:
        settings = self.anchor.settings
        rows = rows_of(self.last, self.task.machine.n_states, None, self.generator)
        tables, reads = self.anchor.margins(*rows)
        reached = tables >= settings.table_margin and reads >= settings.read_margin
        self.streak = self.streak + 1 if reached else 0
        return {"loss": self.loss, "table_margin": tables, "read_margin": reads}


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
        self.optimizer = torch.optim.AdamW(
            _groups(self.model, self.settings), self.settings.rate, eps=self.settings.eps
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
        with watched(self.model) as calls:
            h, _ = self.model.hidden(tokens(batch), seed=int(self.generator.integers(1 << 62)))
        logits = self.model.label(h)
        loss, first = tracking_loss(logits, labels(batch), rate=settings.mask_rate, balance=settings.balance)
        if batch.answers is not None:
            loss = loss + cross_entropy(self.model.answer(h[:, -1]), answers(batch))
        weight = settings.decayed(settings.exploration, settings.last_exploration, self.steps)
        if settings.noise and weight > 0 and calls:
            penalties = [exploration_penalty(call, first) for call in calls]
            loss = loss + weight * torch.stack(penalties).mean()
        _descend(self.optimizer, self.model, loss, settings.clip)
        self.steps, self.loss, self.reached = self.steps + 1, float(loss.detach()), float(first.float().mean())

    def check(self) -> Row:
        accuracy = self.accuracy()
        self.streak = self.streak + 1 if accuracy == 1.0 else 0
        return {"loss": self.loss, "first_error": self.reached, "accuracy": accuracy}

    @torch.no_grad()
    def accuracy(self) -> float:
        """The share of fresh words whose labels are all right, and the answer where there is one."""
        self.model.eval()
        batch = self.task.sample(self.settings.check_words, self.settings.length, self.generator)
        right = 0
        for begin in range(0, len(batch.inputs), 64):
            some = slice(begin, begin + 64)
            h, _ = self.model.hidden(tokens(batch)[some])
            wanted = labels(batch)[some]
            correct = first_error(self.model.label(h), wanted) == wanted.shape[1]
            if batch.answers is not None:
                correct &= self.model.answer(h[:, -1]).argmax(-1) == answers(batch)[some]
            right += int(correct.sum())
        return right / len(batch.inputs)


def _groups(model: Backbone, settings: Settings) -> list[Row]:
    """No weight decay on the transition projections and the embedding."""
    kept = {id(model.embedding.weight)}
    for layer in model.layers:
        if isinstance(layer.block, NFSM):
            kept |= {id(layer.block.weight), id(layer.block.bias)}
    free = [parameter for parameter in model.parameters() if id(parameter) in kept]
    rest = [parameter for parameter in model.parameters() if id(parameter) not in kept]
    return [{"params": rest, "weight_decay": settings.weight_decay}, {"params": free, "weight_decay": 0.0}]


def _descend(optimizer: torch.optim.Optimizer, module: nn.Module, loss: Tensor, clip: float) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()

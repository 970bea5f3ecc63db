"""A phase with a teacher: right columns and right read-outs are known, and taught until all of them lead by a margin.

Rates fall with the steps, gradients are clipped at 1, and two checks in a row decide. What is taught, and how its
margins are told, is for subclasses to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from detent.training.anchor import Anchoring


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

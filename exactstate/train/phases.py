"""What every phase of training has: steps and checks, a rate that falls, words that grow, words that were wrong.

A recipe is a sequence of phases, run by a `Trainer`. A phase draws its words from the generator that it is given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate.records import Row
from exactstate.tasks import Batch


class Phase(ABC):
    """Something that takes steps.

    All that its next step depends on is in `module`, `optimizer`, `generator`, `curriculum`, `mistakes` and the
    attributes named by `STATE`.
    """

    STATE: tuple[str, ...] = ("steps", "streak", "loss")

    def __init__(
        self, name: str, module: nn.Module, optimizer: torch.optim.Optimizer, generator: np.random.Generator,
        check_every: int,
    ) -> None:  # fmt: skip
        self.name, self.module, self.optimizer, self.generator = name, module, optimizer, generator
        self.check_every = check_every
        self.steps, self.streak, self.loss = 0, 0, float("nan")
        self.curriculum, self.mistakes = Curriculum(1, 1), Mistakes()

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the phase has taken its last step."""

    @abstractmethod
    def step(self) -> None:
        """Take one step of the optimizer."""

    @abstractmethod
    def check(self) -> Row:
        """Measure the model after the last step."""

    def state(self) -> dict[str, Any]:
        """Counters, for a checkpoint."""
        words = {"lengths": [self.curriculum.length, self.curriculum.longest], "mistakes": self.mistakes.words}
        return {**{name: getattr(self, name) for name in self.STATE}, **words}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the counters."""
        for name in self.STATE:
            setattr(self, name, state[name])
        self.curriculum.length, self.curriculum.longest = state["lengths"]
        self.mistakes.words = state["mistakes"]


@dataclass(frozen=True)
class Rate:
    """A rate that falls as a cosine from `first` at step 0 to `last` at the horizon, and stays there."""

    first: float
    last: float
    horizon: int

    def at(self, step: int) -> float:
        """The rate of a step."""
        done = min(step / self.horizon, 1.0)
        return self.last + (self.first - self.last) * (1 + math.cos(math.pi * done)) / 2

    def set(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Make it the learning rate."""
        for group in optimizer.param_groups:
            group["lr"] = self.at(step)


@dataclass
class Curriculum:
    """The length of training words: `first` at the beginning, and longer when the phase says so, up to `longest`."""

    first: int
    longest: int
    length: int = 0
    """Of the words of the next step."""

    def __post_init__(self) -> None:
        self.first = min(self.first, self.longest)
        self.length = self.length or self.first

    def grow(self, length: int | None = None) -> None:
        """Words are this long from now on; by default a symbol longer."""
        self.length = min(self.longest, self.length + 1 if length is None else length)

    def restart(self) -> None:
        """Words are short again."""
        self.length = self.first


@dataclass
class Mistakes:
    """Words that were wrong at a check, to be trained on again; the latest last."""

    most: int = 256
    """So many are kept."""
    words: list[list[list[int]]] = field(default_factory=list)
    """[symbols, labels] of each."""

    def add(self, words: list[list[list[int]]]) -> None:
        """Keep some more; the oldest are forgotten."""
        self.words = [*self.words, *words][-self.most :]

    def mix(
        self, words: Tensor, labels: Tensor, share: float, generator: np.random.Generator, repeats: int = 1
    ) -> tuple[Tensor, Tensor]:
        """A batch, up to this share of it, its first words, replaced by some of these.

        They are cut to the length of the batch; shorter ones are left out. One word is taken about `repeats` times at
        most.
        """
        fitting = [pair for pair in self.words if len(pair[0]) >= words.shape[1]]
        count = min(repeats * len(fitting), round(share * len(words)))
        if not count:
            return words, labels
        chosen = generator.choice(len(fitting), count, replace=count > len(fitting))
        old = torch.tensor([[part[: words.shape[1]] for part in fitting[i]] for i in chosen])
        return torch.cat([old[:, 0], words[count:]]), torch.cat([old[:, 1], labels[count:]])


def tokens_of(batch: Batch) -> Tensor:
    """B L: the symbols of a batch."""
    return torch.from_numpy(batch.inputs.astype(np.int64))


def labels_of(batch: Batch) -> Tensor:
    """B L: its labels."""
    return torch.from_numpy(batch.states.astype(np.int64))


def answers_of(batch: Batch) -> Tensor | None:
    """B: its answers, where there are any."""
    return None if batch.answers is None else torch.from_numpy(batch.answers.astype(np.int64))

"""Phases of training: each takes steps, checks itself, knows when it is done, and has a state that can be saved.

`EndToEndPhase` trains a model on words and labels with the loss of the paper.
A recipe is a sequence of phases, run by a `Trainer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate.errors import InvalidConfig
from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import first_error
from exactstate.records import Row
from exactstate.tasks import Batch, Task
from exactstate.train import fast_gradient
from exactstate.train.config import EndToEndConfig
from exactstate.train.optimizer import AdamW

MIN_LENGTH = 8
"""Length of the first words where lengths grow."""
CHECK_BATCH = 64
"""Words that a check evaluates at once without the fast gradient."""


class Phase(ABC):
    """Something that takes steps.

    All that its next step depends on is in `module`, `optimizer`, `generator` and the attributes named by `STATE`.
    """

    STATE: tuple[str, ...] = ("steps", "streak", "loss")

    def __init__(
        self, name: str, module: nn.Module, optimizer: torch.optim.Optimizer, generator: np.random.Generator,
        check_every: int,
    ) -> None:  # fmt: skip
        self.name, self.module, self.optimizer, self.generator = name, module, optimizer, generator
        self.check_every = check_every
        self.steps, self.streak, self.loss = 0, 0, float("nan")

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
        return {name: getattr(self, name) for name in self.STATE}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the counters."""
        for name in self.STATE:
            setattr(self, name, state[name])


class EndToEndPhase(Phase):
    """Words in, labels out, the loss of the paper."""

    STATE = (*Phase.STATE, "mean_first_error")

    def __init__(
        self, model: Backbone, task: Task, config: EndToEndConfig, generator: np.random.Generator,
        name: str = "end_to_end",
    ) -> None:  # fmt: skip
        optimizer = AdamW(parameter_groups(model, config), config.lr, eps=config.eps, fused=True)
        super().__init__(name, model, optimizer, generator, config.check_every)
        self.model, self.task, self.config = model, task, config
        self.gradient = choose_gradient(model, config)
        self.mean_first_error = 0.0
        """Over the words of the last step."""

    @property
    def done(self) -> bool:
        return self.steps >= self.config.steps or self.streak >= self.config.stop_checks

    @property
    def length(self) -> int:
        """Of the words of the next step: where lengths grow, a power of two that holds twice the mean first error."""
        if not self.config.grow_length:
            return self.config.length
        length = MIN_LENGTH
        while length < min(2 * self.mean_first_error, self.config.length):
            length *= 2
        return min(length, self.config.length)

    def step(self) -> None:
        config = self.config
        self.model.train()
        for layer in self.model.layers:
            layer.block.train(config.noise)  # type: ignore[union-attr]
        self.trained_length = self.length
        batch = self.task.sample(config.batch, self.trained_length, self.generator)
        for group in self.optimizer.param_groups:
            group["lr"] = config.cosine(config.lr, config.final_lr, self.steps)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss, first = self._backward(tokens_of(batch), labels_of(batch), answers_of(batch))
        nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        self.optimizer.step()
        self.steps, self.mean_first_error = self.steps + 1, float(first.float().mean())

    def _backward(self, tokens: Tensor, labels: Tensor, answers: Tensor | None) -> tuple[float, Tensor]:
        """(loss, first error of every word), with the gradient left in the parameters."""
        config, seed = self.config, int(self.generator.integers(1 << 62))
        exploration = config.cosine(config.exploration, config.final_exploration, self.steps)
        if self.gradient == "autograd":
            return fast_gradient.autograd_gradient(
                self.model, tokens, labels, config, seed=seed, exploration=exploration, answers=answers
            )
        masks = torch.from_numpy(self.generator.integers(config.masks, size=tokens.shape))
        return fast_gradient.fast_gradient(
            self.model, tokens, labels, config, masks=masks, seed=seed if config.noise else None,
            exploration=exploration,
        )  # fmt: skip

    def check(self) -> Row:
        accuracy = self.accuracy()
        self.streak = self.streak + 1 if accuracy >= self.config.stop_accuracy else 0
        row = {"loss": self.loss, "first_error": self.mean_first_error, "accuracy": accuracy}
        length = {"length": self.trained_length} if self.config.grow_length else {}
        return {**row, **length, "gradient": self.gradient}

    @torch.no_grad()
    def accuracy(self) -> float:
        """The share of fresh words whose labels are all right, and the answer where there is one."""
        self.model.eval()
        batch = self.task.sample(self.config.check_words, self.config.length, self.generator)
        tokens, labels, answers = tokens_of(batch), labels_of(batch), answers_of(batch)
        if self.gradient == "fast":
            first = fast_gradient.first_errors(self.model, tokens, labels, self.config)
            return float((first == self.config.length).double().mean())
        right = 0
        for begin in range(0, len(tokens), CHECK_BATCH):
            some = slice(begin, begin + CHECK_BATCH)
            h, _ = self.model.hidden(tokens[some])
            correct = first_error(self.model.label_logits(h), labels[some]) == labels.shape[1]
            if answers is not None:
                correct &= self.model.answer_logits(h[:, -1]).argmax(-1) == answers[some]
            right += int(correct.sum())
        return right / len(tokens)


def choose_gradient(model: Backbone, config: EndToEndConfig) -> str:
    """`fast` or `autograd`: what the configuration names, `auto` resolved."""
    allowed = fast_gradient.allows(model)
    if config.gradient == "fast" and not allowed:
        raise InvalidConfig(
            "gradient 'fast' trains one NFSM layer without a convolution on the CPU, and this model is another; "
            "use gradient='autograd', or 'auto'."
        )
    return ("fast" if allowed else "autograd") if config.gradient == "auto" else config.gradient


def parameter_groups(model: Backbone, config: EndToEndConfig) -> list[Row]:
    """No weight decay on the transition projections and the embedding."""
    free = {id(model.embedding.weight)}
    for layer in model.layers:
        if isinstance(layer.block, NFSM):
            free |= {id(layer.block.weight), id(layer.block.bias)}
    parameters = list(model.parameters())
    return [
        {"params": [one for one in parameters if id(one) not in free], "weight_decay": config.weight_decay},
        {"params": [one for one in parameters if id(one) in free], "weight_decay": 0.0},
    ]


def tokens_of(batch: Batch) -> Tensor:
    """B L: the symbols of a batch."""
    return torch.from_numpy(batch.inputs.astype(np.int64))


def labels_of(batch: Batch) -> Tensor:
    """B L: its labels."""
    return torch.from_numpy(batch.states.astype(np.int64))


def with_replay(
    words: Tensor, labels: Tensor, wrong: Sequence[list[list[int]]], share: float, generator: np.random.Generator,
    repeats: int = 1,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The batch, up to this share of it, its first words, replaced by some that were wrong before.

    They are cut to the length of the batch; shorter ones are left out. One word is taken about `repeats` times at most.
    """
    fitting = [pair for pair in wrong if len(pair[0]) >= words.shape[1]]
    count = min(repeats * len(fitting), round(share * len(words)))
    if not count:
        return words, labels
    chosen = generator.choice(len(fitting), count, replace=count > len(fitting))
    old = torch.tensor([[part[: words.shape[1]] for part in fitting[i]] for i in chosen])
    return torch.cat([old[:, 0], words[count:]]), torch.cat([old[:, 1], labels[count:]])


def answers_of(batch: Batch) -> Tensor | None:
    """B: its answers, where there are any."""
    return None if batch.answers is None else torch.from_numpy(batch.answers.astype(np.int64))

"""The phase of the recipe `paper` and of all baselines: words in, labels out, the loss of the paper."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from exactstate.errors import InvalidConfig
from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import first_error
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train import fast_gradient
from exactstate.train.config import EndToEndConfig
from exactstate.train.optimizer import AdamW
from exactstate.train.phases import Curriculum, Phase, Rate, answers_of, labels_of, tokens_of

WEIGHT_DECAY, CLIP = 1e-4, 1.0
"""Of AdamW, but for transition projections and the embedding; the largest norm of the gradient."""
MIN_LENGTH = 8
"""Length of the first words where lengths grow."""
CHECK_BATCH = 64
"""Words that a check evaluates at once without the fast gradient."""


class EndToEndPhase(Phase):
    """Words in, labels out, the loss of the paper; done after enough good checks, or at the last step."""

    STATE = (*Phase.STATE, "mean_first_error")

    def __init__(
        self, model: Backbone, task: Task, config: EndToEndConfig, generator: np.random.Generator
    ) -> None:  # fmt: skip
        super().__init__("end_to_end", model, AdamW(parameter_groups(model), config.lr, fused=True), generator,
                         config.check_every)  # fmt: skip
        self.model, self.task, self.config = model, task, config
        self.gradient = choose_gradient(model, config)
        horizon = config.horizon or config.steps
        self.rate = Rate(config.lr, config.final_lr, horizon)
        self.exploration = Rate(config.exploration, config.exploration / 10, horizon)
        self.curriculum = Curriculum(MIN_LENGTH if config.grow_length else config.length, config.length)
        self.mean_first_error = 0.0
        """Over the words of the last step."""

    @property
    def done(self) -> bool:
        return self.steps >= self.config.steps or self.streak >= self.config.stop_checks

    def step(self) -> None:
        self.model.train()
        self.trained_length = self.curriculum.length
        batch = self.task.sample(self.config.batch, self.curriculum.length, self.generator)
        self.rate.set(self.optimizer, self.steps)
        self.optimizer.zero_grad(set_to_none=True)
        self.loss, first = self._backward(tokens_of(batch), labels_of(batch), answers_of(batch))
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.steps, self.mean_first_error = self.steps + 1, float(first.float().mean())
        if self.config.grow_length:  # positions after the first error have almost no weight: twice as long is enough
            self.curriculum.restart()
            while self.curriculum.length < min(2 * self.mean_first_error, self.config.length):
                self.curriculum.grow(2 * self.curriculum.length)

    def _backward(self, tokens: Tensor, labels: Tensor, answers: Tensor | None) -> tuple[float, Tensor]:
        """(loss, first error of every word), with the gradient left in the parameters."""
        config, seed = self.config, int(self.generator.integers(1 << 62))
        exploration = self.exploration.at(self.steps)
        if self.gradient == "autograd":
            return fast_gradient.autograd_gradient(
                self.model, tokens, labels, config, seed=seed, exploration=exploration, answers=answers
            )
        masks = torch.from_numpy(self.generator.integers(config.masks, size=tokens.shape))
        return fast_gradient.fast_gradient(
            self.model, tokens, labels, config, masks=masks, seed=seed, exploration=exploration
        )

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


def parameter_groups(model: Backbone) -> list[Row]:
    """No weight decay on the transition projections and the embedding."""
    without = {id(model.embedding.weight)}
    for layer in model.layers:
        if isinstance(layer.block, NFSM):
            without |= {id(layer.block.weight), id(layer.block.bias)}
    parameters = list(model.parameters())
    return [
        {"params": [one for one in parameters if id(one) not in without], "weight_decay": WEIGHT_DECAY},
        {"params": [one for one in parameters if id(one) in without], "weight_decay": 0.0},
    ]

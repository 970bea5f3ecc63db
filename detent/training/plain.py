"""The gradient of a step by evaluating the whole network on every token: for any model, and the measure of `quick`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from detent.models import Backbone
from detent.training.exploration import exploration_penalty, watched
from detent.training.loss import tracking_loss
from detent.training.settings import Settings


def gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, settings: Settings, *, seed: int, exploration: float,
    answers: Tensor | None = None,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word); the gradient is added to the parameters."""
    with watched(model) as calls:
        h, _ = model.hidden(tokens, seed=seed)
    loss, first = tracking_loss(model.label(h), labels, rate=settings.mask_rate, balance=settings.balance)
    if answers is not None:
        loss = loss + cross_entropy(model.answer(h[:, -1]), answers)
    if settings.noise and exploration > 0 and calls:
        penalties = [exploration_penalty(call, first) for call in calls]
        loss = loss + exploration * torch.stack(penalties).mean()
    loss.backward()
    return float(loss.detach()), first

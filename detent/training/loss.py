"""The loss of the paper: cross-entropy at every position, muted after the first error, balanced over the classes.

    B  words     L  their length     n  labels

Once the state is wrong, later errors are consequences of it: position t has weight exp(-rate (t - t*)) after the first
error t*. Each word contributes the weighted mean of its terms.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def first_error(logits: Tensor, labels: Tensor) -> Tensor:
    """B: the first position where the likeliest label is wrong; L where there is none."""
    wrong = logits.argmax(-1) != labels
    ahead = torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), wrong.shape[1])
    return ahead


def mask(first: Tensor, length: int, rate: float) -> Tensor:
    """B L: 1 up to the first error, and exp(-rate (t - t*)) after it."""
    late = (torch.arange(length, device=first.device) - first[:, None]).clamp(min=0)
    return torch.exp(-rate * late)


def class_weights(labels: Tensor, count: int, power: float) -> Tensor:
    """B L: each label's share of the batch to the power -`power`, scaled to mean 1 over the batch."""
    shares = torch.bincount(labels.flatten(), minlength=count).clamp(min=1) / labels.numel()
    weights = shares[labels] ** -power
    return weights / weights.mean()


def tracking_loss(logits: Tensor, labels: Tensor, *, rate: float, balance: float) -> tuple[Tensor, Tensor]:
    """(loss, first error of every word)."""
    first = first_error(logits.detach(), labels)
    weights = mask(first, labels.shape[1], rate) * class_weights(labels, logits.shape[-1], balance)
    terms = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(weights)
    return ((weights * terms).sum(dim=1) / weights.sum(dim=1)).mean(), first

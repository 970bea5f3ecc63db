"""The loss of the paper: cross-entropy at every position, muted after the first error, balanced over the classes.

    B  words     L  their length     n  labels

Once the state is wrong, later errors are consequences of it: position t has weight exp(-rate (t - t*)) after the first
error t*. Each word contributes the weighted mean of its terms. A weight below 2^-24, half a unit in the last place of
the weight 1 that the first error has, is zero: it is lost when float32 adds it to that weight anyway.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

FAINT = 2.0**-24
"""Weights of the mask below this are zero."""


def first_error(logits: Tensor, labels: Tensor) -> Tensor:
    """B: the first position where the likeliest label is wrong; L where there is none."""
    wrong = logits.argmax(-1) != labels
    ahead = torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), wrong.shape[1])
    return ahead


def reach(rate: float) -> int:
    """How many positions count from the first error on; the paper's rate of 3 gives 6."""
    return 1 << 30 if rate <= 0 else math.floor(-math.log(FAINT) / rate) + 1


def mask(first: Tensor, length: int, rate: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """B L: 1 up to the first error, exp(-rate (t - t*)) after it, and 0 where that is below FAINT."""
    late = (torch.arange(length, device=first.device) - first[:, None]).clamp(min=0)
    return torch.exp(-rate * late.to(dtype)) * (late < reach(rate))


def class_weights(labels: Tensor, count: int, power: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """B L: each label's share of the batch to the power -`power`, scaled to mean 1 over the batch."""
    shares = torch.bincount(labels.flatten(), minlength=count).clamp(min=1).to(dtype) / labels.numel()
    weights = shares[labels] ** -power
    return weights / weights.mean()


def position_weights(
    first: Tensor, labels: Tensor, count: int, *, rate: float, balance: float, dtype: torch.dtype
) -> Tensor:
    """B L: what each position contributes to the mean over the batch of the words' weighted means."""
    weights = mask(first, labels.shape[1], rate, dtype) * class_weights(labels, count, balance, dtype)
    return weights / weights.sum(dim=1, keepdim=True) / len(labels)


def tracking_loss(logits: Tensor, labels: Tensor, *, rate: float, balance: float) -> tuple[Tensor, Tensor]:
    """(loss, first error of every word)."""
    first = first_error(logits.detach(), labels)
    weights = position_weights(first, labels, logits.shape[-1], rate=rate, balance=balance, dtype=logits.dtype)
    terms = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(weights)
    return (weights * terms).sum(), first

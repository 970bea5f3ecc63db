"""The losses of training end to end: the tracking loss and the exploration penalty.

    B  words     L  length     r  heads     d  indices of a head     E  entries of all heads' logits

The tracking loss is cross-entropy at every position, masked after the first error and balanced over the classes.

The exploration penalty keeps the columns used at the first error soft enough for the noise to try other entries. Once
the logits of a column are spread much wider than the Gumbel noise, the sampled entry is always the arg max and a wrong
one is never revisited. The penalty is relu(s / sigma - 1)^2, with s the standard deviation of the used column of the
sampling logits and sigma = pi / sqrt 6 that of the noise, averaged over the heads; zero for a word without error.

    with record_calls(model) as calls:
        logits = model(words)
    loss, first = tracking_loss(logits, labels)
    loss = loss + 0.03 * sum(exploration_penalty(call, first) for call in calls)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from exactstate.nn.nfsm import NFSM
from exactstate.ops.tables import entry_offsets

MASK_CUTOFF = 2.0**-24
"""Weights of the mask below this are zero."""
NOISE_DEVIATION = math.pi / math.sqrt(6)
"""Standard deviation of Gumbel noise."""


def first_error(logits: Tensor, labels: Tensor) -> Tensor:
    """B: the first position where the likeliest label is wrong; L where there is none."""
    wrong = logits.argmax(-1) != labels
    return torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), wrong.shape[1])


def mask_length(rate: float) -> int:
    """How many positions have a weight from the first error on; the paper's rate of 3 gives 6."""
    return 1 << 30 if rate <= 0 else math.floor(-math.log(MASK_CUTOFF) / rate) + 1


def mask(first: Tensor, length: int, rate: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """B L: 1 up to the first error, exp(-rate (t - t*)) after it, and 0 where that is below MASK_CUTOFF."""
    late = (torch.arange(length, device=first.device) - first[:, None]).clamp(min=0)
    return torch.exp(-rate * late.to(dtype)) * (late < mask_length(rate))


def class_weights(labels: Tensor, count: int, power: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """B L: each label's share of the batch to the power -`power`, scaled to mean 1 over the batch."""
    shares = torch.bincount(labels.flatten(), minlength=count).clamp(min=1).to(dtype) / labels.numel()
    weights = shares[labels] ** -power
    return weights / weights.mean()


def position_weights(
    first: Tensor, labels: Tensor, count: int, *, rate: float, balance: float, dtype: torch.dtype
) -> Tensor:
    """B L: the weight of each position in the mean over the batch of the words' weighted means."""
    weights = mask(first, labels.shape[1], rate, dtype) * class_weights(labels, count, balance, dtype)
    return weights / weights.sum(dim=1, keepdim=True) / len(labels)


def tracking_loss(
    logits: Tensor, labels: Tensor, *, rate: float = 3.0, balance: float = 0.0
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(loss, first error of every word): cross-entropy up to the first error of every word.

    - `logits`: B L n; `labels`: B L.
    - `rate`: the weight of a position t steps after the first error is exp(-rate t); 0 is plain cross-entropy.
    - `balance`: labels are weighted by their share of the batch to minus this power; the paper has 0.5.
    """
    first = first_error(logits.detach(), labels)
    weights = position_weights(first, labels, logits.shape[-1], rate=rate, balance=balance, dtype=logits.dtype)
    terms = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(weights)
    return (weights * terms).sum(), first


@dataclass(frozen=True)
class BlockCall:
    """The input and arguments of one pass through one block."""

    block: NFSM
    rows: Tensor
    """B L m: the block's input."""
    settings: dict[str, Any]
    """The other arguments of the call, the seed among them."""

    @torch.no_grad()
    def states_before(self, position: Tensor) -> Tensor:
        """B r: the state before this position of every word, in the same pass."""
        _, last = self.block(self.rows.detach(), lengths=position, **self.settings)
        return last


@contextmanager
def record_calls(model: nn.Module) -> Iterator[list[BlockCall]]:
    """Record every pass through an NFSM layer of the model, for `exploration_penalty`."""
    calls: list[BlockCall] = []

    def note(block: NFSM, inputs: tuple[Any, ...], settings: dict[str, Any], _: object) -> None:
        calls.append(BlockCall(block, inputs[0], {**dict(zip(("state",), inputs[1:], strict=False)), **settings}))

    blocks = [module for module in model.modules() if isinstance(module, NFSM)]
    hooks = [block.register_forward_hook(note, with_kwargs=True) for block in blocks]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def exploration_penalty(call: BlockCall, first: Tensor) -> Tensor:
    """The mean penalty over the batch, of the columns used at the first error of every word."""
    block, length = call.block, call.rows.shape[1]
    wrong = (first < length).nonzero().flatten()
    if not len(wrong):
        return call.rows.new_zeros(())
    before = call.states_before(first.clamp(max=length))[wrong]
    theta = linear(block.logit_input(call.rows[wrong, first[wrong]]), block.weight, block.bias)
    return spread_penalty(theta, before, block, len(first))


def spread_penalty(theta: Tensor, before: Tensor, block: NFSM, words: int) -> Tensor:
    """The penalty from the logits at the first errors (rows E) and the states before them (rows r)."""
    u = theta / block.config.temperature
    total = u.new_zeros(())
    if not len(u):
        return total
    for h, (d, at) in enumerate(zip(block.heads, entry_offsets(block.heads), strict=True)):
        column = u[:, at : at + d * d].view(-1, d, d)[torch.arange(len(u)), before[:, h]]
        spread = column.std(dim=-1, correction=0) / NOISE_DEVIATION
        total = total + (spread - 1).clamp(min=0).square().sum()
    return total / (len(block.heads) * words)

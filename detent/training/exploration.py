"""The exploration penalty: keep the columns used at the first error soft enough for the noise to try other entries.

    B  words     r  heads     d  indices of a head

Once the logits of a column are spread much wider than the Gumbel noise, the sampled entry is always the arg max and a
wrong one is never revisited. The penalty is relu(s / sigma - 1)^2, with s the standard deviation of the used column of
the sampling logits and sigma = pi / sqrt 6 that of the noise, averaged over the heads; zero for a word without error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from detent.layers import NFSM
from detent.models import Backbone
from detent.scan.tables import entry_offsets

NOISE_DEVIATION = math.pi / math.sqrt(6)


@dataclass(frozen=True)
class Call:
    """One pass through one block, so that it can be looked at again."""

    block: NFSM
    rows: Tensor
    """B L m: what it read."""
    settings: dict[str, Any]
    """How it was called, its seed among them."""

    @torch.no_grad()
    def states_before(self, position: Tensor) -> Tensor:
        """B r: where the heads were before this position of every word, in this very pass."""
        _, last = self.block(self.rows.detach(), lengths=position, **self.settings)
        return last


@contextmanager
def watched(model: Backbone) -> Iterator[list[Call]]:
    """Note every pass through an NFSM block of the model."""
    calls: list[Call] = []

    def note(block: NFSM, inputs: tuple[Any, ...], settings: dict[str, Any], _: object) -> None:
        calls.append(Call(block, inputs[0], settings))

    blocks = [layer.block for layer in model.layers if isinstance(layer.block, NFSM)]
    hooks = [block.register_forward_hook(note, with_kwargs=True) for block in blocks]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def exploration_penalty(call: Call, first: Tensor) -> Tensor:
    """The mean over the batch, for the columns used at the first error of every word."""
    block, length = call.block, call.rows.shape[1]
    wrong = (first < length).nonzero().flatten()
    if not len(wrong):
        return call.rows.new_zeros(())
    before = call.states_before(first.clamp(max=length))[wrong]
    theta = linear(block._source(call.rows[wrong, first[wrong]]), block.weight, block.bias)
    return spread_penalty(theta, before, block, len(first))


def spread_penalty(theta: Tensor, before: Tensor, block: NFSM, words: int) -> Tensor:
    """The same from the logits at the first errors (rows E) and the heads before them (rows r)."""
    u = theta / block.config.temperature
    total = u.new_zeros(())
    if not len(u):
        return total
    for h, (d, at) in enumerate(zip(block.heads, entry_offsets(block.heads), strict=True)):
        column = u[:, at : at + d * d].view(-1, d, d)[torch.arange(len(u)), before[:, h]]
        spread = column.std(dim=-1, correction=0) / NOISE_DEVIATION
        total = total + (spread - 1).clamp(min=0).square().sum()
    return total / (len(block.heads) * words)

"""The paper's training step, the usual way in PyTorch: every position, one-hot tables, dropout per token, autograd.

    B  words     L  their length     m  width     d  indices of a head     E  entries of all heads

It knows no frontier, shares no rows, and forms every table as a matrix whose columns are one-hot in the forward pass
and soft in the backward pass. It uses the parameters of a `Backbone`, and nothing else of the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, one_hot, softmax

from exactstate.nn import NFSM, Backbone
from exactstate.train import EndToEndConfig
from exactstate.train.fast_gradient import BALANCE

NoiseOf = Callable[[int, int, int], Tensor]


def fresh_noise(batch: int, length: int, entries: int) -> Tensor:
    """Gumbel variables from torch's generator, B L E."""
    return -torch.empty(batch, length, entries).exponential_().log()


def dense_loss(
    model: Backbone, tokens: Tensor, labels: Tensor, settings: EndToEndConfig, noise_of: NoiseOf = fresh_noise
) -> tuple[Tensor, Tensor]:
    """(loss, first error of every word)."""
    layer, block = model.layers[0], model.layers[0].block
    assert isinstance(block, NFSM)
    B, L = tokens.shape
    h = model.encoder_norm(model.encoder(model.embedding(tokens)))
    u = linear(layer.norm1(h), block.weight, block.bias) / block.config.temperature  # type: ignore[operator]
    states, used = _run(block, u, noise_of(B, L, u.shape[-1]).to(u.dtype))
    h = h + block.out_proj(torch.cat([at @ value for at, value in zip(states, _values(block), strict=True)], dim=-1))
    h = h + layer.mlp(layer.norm2(h))  # type: ignore[operator]
    logits = model.readout(model.decoder(model.final_norm(h)))

    wrong = logits.detach().argmax(-1) != labels
    first = torch.where(wrong.any(dim=1), wrong.int().argmax(dim=1), L)
    weights = torch.exp(-settings.mask_rate * (torch.arange(L) - first[:, None]).clamp(min=0).to(u.dtype))
    shares = torch.bincount(labels.flatten(), minlength=model.labels).clamp(min=1).to(u.dtype) / labels.numel()
    weights = weights * shares[labels] ** -BALANCE
    terms = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(B, L)
    loss = ((weights * terms).sum(dim=1) / weights.sum(dim=1)).mean()
    return loss + settings.exploration * _penalty(used, first, L), first


def _run(block: NFSM, u: Tensor, noise: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """For every head: one-hot states (B L d), and the columns of u that they used (B L d)."""
    B, L, _ = u.shape
    places = accumulate((d * d for d in block.heads), initial=0)
    states, used = [], []
    for d, at, start in zip(block.heads, places, block.config.initial_state, strict=False):
        columns = u[..., at : at + d * d].view(B, L, d, d)
        scores = columns + noise[..., at : at + d * d].view(B, L, d, d)
        soft = softmax(scores, dim=-1)
        tables = one_hot(scores.argmax(-1), d).to(u.dtype) + soft - soft.detach()
        state = one_hot(torch.full((B,), start), d).to(u.dtype)
        path = [state]
        for t in range(L):
            state = torch.bmm(state[:, None], tables[:, t])[:, 0]
            path.append(state)
        before = torch.stack(path[:-1], dim=1).detach().argmax(-1)
        used.append(columns.gather(2, before[..., None, None].expand(B, L, 1, d))[:, :, 0])
        states.append(torch.stack(path[1:], dim=1))
    return states, used


def _values(block: NFSM) -> list[Tensor]:
    return list(block.values.split(list(block.heads)))


def _penalty(used: list[Tensor], first: Tensor, length: int) -> Tensor:
    """The spread of the columns used at the first errors, beyond that of the noise."""
    words = (first < length).nonzero().flatten()
    if not len(words):
        return used[0].new_zeros(())
    spread = [column[words, first[words]].std(dim=-1, correction=0) for column in used]
    beyond = (torch.stack(spread) / (math.pi / math.sqrt(6)) - 1).clamp(min=0)
    return beyond.square().sum() / (len(used) * len(first))

"""The gradient of a training step without work that cannot change it, for one NFSM layer without a convolution.

    B  words     L  their length     m  width     r  heads     S  their indices     E  their entries     R  rows

Words are run only until shortly after their first error (`Rollout`), positions that agree in input, heads and label
share a row (`SharedRows`), and only used columns of the transition logits receive a gradient. Given the same dropout
masks and the same noise it is the gradient of `autograd_gradient`, which works for any model.

Without a convolution, what precedes the block depends on the symbol and its dropout mask alone, and what follows it on
that and the heads' indices. A row is (input, joint index, label), with a dropout mask of its own after the block. The
gradient of a position is that of its row, times the position's share of the row's weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from exactstate._types import Ints
from exactstate.nn import NFSM, Backbone
from exactstate.nn.losses import (
    exploration_penalty,
    mask_length,
    position_weights,
    record_calls,
    spread_penalty,
    tracking_loss,
)
from exactstate.ops.eager import backward_from
from exactstate.ops.interface import kernels
from exactstate.ops.segments import LogitSource, Noise, padded_segments, rows_of
from exactstate.ops.tables import cell_dtype, offsets
from exactstate.ops.torch_kernels import project_values
from exactstate.train.chunked_cross_entropy import ChunkedCrossEntropy, predict
from exactstate.train.config import EndToEndConfig


def autograd_gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, config: EndToEndConfig, *, seed: int, exploration: float,
    answers: Tensor | None = None,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word) by evaluating the network on every token; for any model.

    The gradient is added to the parameters.
    """
    with record_calls(model) as calls:
        h, _ = model.hidden(tokens, seed=seed)
    loss, first = tracking_loss(model.label_logits(h), labels, rate=config.mask_rate, balance=config.balance)
    if answers is not None:
        loss = loss + cross_entropy(model.answer_logits(h[:, -1]), answers)
    if config.noise and exploration > 0 and calls:
        penalties = [exploration_penalty(call, first) for call in calls]
        loss = loss + exploration * torch.stack(penalties).mean()
    loss.backward()
    return float(loss.detach()), first


FIRST_WINDOW = 6
"""Positions of the first window, at least; each further window is twice as long."""


@dataclass(frozen=True)
class Rollout:
    """Words followed until shortly after their first error."""

    first: Tensor
    """B: the first position whose arg max label is wrong; L where there is none."""
    kept: Tensor
    """B: how many positions count."""
    row: Tensor
    """B L: which shared row stands where; -1 where nothing was computed."""
    states: Tensor
    """(B L) r: the heads after every position."""
    tables: Tensor
    """(B L) S: the table of every position."""
    starts: Tensor
    """B r: the heads before the first position."""


def rollout(
    block: NFSM, source: LogitSource, rows: SharedRows, labels: Tensor, *, noise: Noise | None, beyond: int
) -> Rollout:  # fmt: skip
    """Run words of equal length for `beyond` positions from their first error on, in windows that double.

    `source` holds the input of every position, `labels` (B L) the right labels.
    """
    ops, heads = kernels(block.backend), block.heads
    assert source.index is not None
    B, L = labels.shape
    starts = torch.tensor(block.config.initial_state).expand(B, -1).contiguous()
    at, states = starts.clone(), torch.zeros(B * L, len(heads), dtype=cell_dtype(heads))
    tables = torch.zeros(B * L, sum(heads), dtype=cell_dtype(heads))
    row = torch.full((B * L,), -1)
    first = torch.full((B,), L)
    going, begin, width = torch.arange(B), 0, max(beyond, FIRST_WINDOW)
    while begin < L and len(going):
        end = min(L, begin + width)
        segments = _window(going, begin, end, L)
        made = ops.tables(source, segments, heads, noise)
        at[going] = ops.trajectories(made, segments, at[going], states, heads)
        here = rows_of(segments)
        tables[here] = made
        row[here] = rows.find(source.index[here], states[here], labels.view(-1)[here])
        wrong = ~rows.right[row[here]].view(len(going), end - begin)
        met = torch.where(wrong.any(dim=1), begin + wrong.int().argmax(dim=1), L)
        first[going] = torch.minimum(first[going], met)
        going = going[first[going] + beyond > end]
        begin, width = end, 2 * width
    return Rollout(first, (first + beyond).clamp(max=L), row.view(B, L), states, tables, starts)


def _window(going: Tensor, begin: int, end: int, length: int) -> Tensor:
    """Segments of the positions begin .. end - 1 of some words."""
    count = torch.full_like(going, end - begin)
    local = torch.arange(len(going)) * (end - begin)
    return torch.stack([going * length + begin, count, count * 0, going, count * 0 + begin, local], dim=1)


def allows(model: Backbone) -> bool:
    """Whether the fast gradient can train the model: one NFSM layer, no convolution, no answers, on the CPU."""
    block = model.layers[0].block if len(model.layers) == 1 else None
    return (
        isinstance(block, NFSM)
        and model.kernel_size == 1
        and not model.answers
        and block.weight.device.type == "cpu"
        and fits_key(block.heads, model.vocabulary, model.labels)
    )


class FastStep:
    """One batch on the way to its gradient."""

    def __init__(
        self, model: Backbone, tokens: Tensor, labels: Tensor, config: EndToEndConfig, masks: Tensor, variants: int
    ) -> None:
        """`masks` (B L): which of the `variants` dropout masks of its symbol each token uses."""
        block = model.layers[0].block
        assert isinstance(block, NFSM)
        self.model, self.block, self.labels, self.config = model, block, labels, config
        symbols = torch.arange(model.vocabulary).repeat_interleave(variants)
        self.encoded = model.encode(symbols)
        read, _ = model.layers[0].block_input(self.encoded)  # type: ignore[operator]
        self.read = block.logit_input(read)
        self.index = (tokens * variants + masks).view(-1)
        self.vectors = project_values(block.values, block.out_proj.weight, block.heads)
        self.rows = SharedRows(model, block, self.encoded, self.vectors)

    def rollout(self, seed: int | None, beyond: int) -> Rollout:
        """Run the words for `beyond` positions from their first error on, with sampled tables if a seed is given."""
        noise = None if seed is None else Noise(seed, self.block.config.temperature)
        self.noise, self.source = noise, self._source()
        return rollout(self.block, self.source, self.rows, self.labels, noise=noise, beyond=beyond)

    def backward(self, rollout: Rollout, exploration: float) -> float:
        """Add the gradient of the loss to the parameters; returns the loss."""
        L = self.labels.shape[1]
        weights = position_weights(
            rollout.first, self.labels, self.model.labels, rate=self.config.mask_rate, balance=self.config.balance,
            dtype=self.encoded.dtype,
        )  # fmt: skip
        segments = padded_segments(rollout.kept, L)
        here = rows_of(segments)
        row, weight = rollout.row.view(-1)[here], weights.view(-1)[here]
        of_row = torch.zeros_like(self.rows.losses).index_add_(0, row, weight)
        input_grad = self.rows.backward(of_row)

        theta = linear(self.read, self.block.weight, self.block.bias)
        penalty = exploration * self._penalty(rollout, theta) if exploration > 0 else theta.new_zeros(())
        gains = (input_grad @ self.vectors.detach().T)[row] * (weight / of_row[row])[:, None]
        of_theta = self._used_columns(rollout, segments, rollout.tables[here], gains)
        of_encoded = torch.zeros_like(self.encoded).index_add_(0, self.rows.read, input_grad)
        of_vectors = torch.zeros_like(self.vectors)
        for places in self.rows.places.T:
            of_vectors.index_add_(0, places, input_grad)
        roots = [self.encoded, self.vectors, self.block.out_proj.bias, theta]
        found = [of_encoded, of_vectors, input_grad.sum(0), of_theta]
        if penalty.requires_grad:
            roots, found = [*roots, penalty], [*found, torch.ones_like(penalty)]
        backward_from(roots, found)
        return float((of_row * self.rows.losses).sum() + penalty.detach())

    def _source(self) -> LogitSource:
        ops = kernels(self.block.backend)
        read, weight, bias = self.read.detach().contiguous(), self.block.weight.detach(), self.block.bias.detach()
        return LogitSource(read, weight, bias, self.index, ops.logits(read, weight, bias))

    def _used_columns(self, rollout: Rollout, segments: Tensor, tables: Tensor, gains: Tensor) -> Tensor:
        """The gradient of the logits of the distinct rows, from the gain of being at each index."""
        ops, heads = kernels(self.block.backend), self.block.heads
        of_theta = gains.new_zeros(len(self.read), len(self.block.weight))
        ops.adjoint_scan_(tables.contiguous(), gains, gains.new_zeros(len(segments), sum(heads)), segments, heads)
        ops.surrogate_backward_(
            self.source, segments, rollout.starts, rollout.states, gains, heads, self.noise,
            self.block.config.temperature, (None, None, of_theta),
        )  # fmt: skip
        return of_theta

    def _penalty(self, rollout: Rollout, theta: Tensor) -> Tensor:
        """The exploration penalty at the columns used at the first errors."""
        B, L = self.labels.shape
        wrong = (rollout.first < L).nonzero().flatten()
        at = wrong * L + rollout.first[wrong]
        later = (rollout.first[wrong] > 0)[:, None]
        before = torch.where(later, rollout.states[(at - 1).clamp(min=0)].long(), rollout.starts[wrong])
        return spread_penalty(theta[self.index[at]], before, self.block, B)


def fast_gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, config: EndToEndConfig, *, masks: Tensor, seed: int | None,
    exploration: float,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word); the gradient is added to the parameters."""
    step = FastStep(model, tokens, labels, config, masks, config.masks)
    rollout = step.rollout(seed, mask_length(config.mask_rate))
    return step.backward(rollout, exploration if seed is not None else 0.0), rollout.first


@torch.no_grad()
def first_errors(model: Backbone, tokens: Tensor, labels: Tensor, config: EndToEndConfig) -> Tensor:
    """The first error of every word in evaluation, without noise or dropout."""
    return FastStep(model, tokens, labels, config, torch.zeros_like(tokens), 1).rollout(None, 1).first


class SharedRows:
    """The distinct rows so far, their cross-entropy, and what the backward pass needs."""

    def __init__(self, model: Backbone, block: NFSM, encoded: Tensor, vectors: Tensor) -> None:
        self.model, self.heads = model, block.heads
        self.encoded, self.vectors = encoded.detach(), vectors.detach()
        self.offset = block.out_proj.bias.detach()
        self.entropy = ChunkedCrossEntropy(model.readout)
        self.sizes = (*block.heads, model.labels)
        self.keys: Ints = np.empty(0, np.int64)
        """Sorted; the number of a row is its place in the order in which rows were added."""
        self.numbers: Ints = np.empty(0, np.int64)
        self.read = torch.empty(0, dtype=torch.int64)
        """R: which encoded row."""
        self.places = torch.empty(0, len(block.heads), dtype=torch.int64)
        """R r: which value vectors."""
        self.right = torch.empty(0, dtype=torch.bool)
        """R: whether the arg max label is the right one."""
        self.losses = self.encoded.new_empty(0)
        """R: the cross-entropy."""
        self.batches: list[tuple[Tensor, Tensor]] = []
        """(input of the network after the block, input of the read-out) of the rows that were added together."""

    def find(self, read: Tensor, states: Tensor, labels: Tensor) -> Tensor:
        """The number of the row of every position; rows that are new are computed."""
        key: Ints = read.numpy()
        for column, size in zip((*states.long().numpy().T, labels.numpy()), self.sizes, strict=True):
            key = key * size + column
        different, here, which = np.unique(key, return_index=True, return_inverse=True)
        place = np.searchsorted(self.keys, different)
        known = np.zeros(len(different), bool)
        if len(self.keys):
            known = self.keys[np.minimum(place, len(self.keys) - 1)] == different
        number = np.empty(len(different), np.int64)
        number[known] = self.numbers[place[known]]
        number[~known] = len(self.read) + np.arange(int((~known).sum()))
        self.keys = np.insert(self.keys, place[~known], different[~known])
        self.numbers = np.insert(self.numbers, place[~known], number[~known])
        new = torch.from_numpy(here[~known])
        if len(new):
            self._compute(read[new], states[new].long(), labels[new])
        return torch.from_numpy(number[which])

    def _compute(self, read: Tensor, states: Tensor, labels: Tensor) -> None:
        places = states + torch.tensor(offsets(self.heads))
        into = self.encoded[read] + self.offset + self.vectors[places].sum(dim=1)
        learning = torch.is_grad_enabled()
        features = self.model.decode(self.model.layers[0].feed_forward(into.requires_grad_(learning)))  # type: ignore[operator]
        if learning:
            right, losses = self.entropy.add(features.detach(), labels)
            self.losses = torch.cat([self.losses, losses])
            self.batches.append((into, features))
        else:
            right = predict(features, self.model.readout) == labels
        self.read, self.places = torch.cat([self.read, read]), torch.cat([self.places, places])
        self.right = torch.cat([self.right, right])

    def backward(self, weights: Tensor) -> Tensor:
        """R m: the gradient of sum(weights * cross-entropy) in the input of the network after the block."""
        grads = self.entropy.backward(weights).split([len(into) for into, _ in self.batches])
        backward_from([features for _, features in self.batches], list(grads))
        return torch.cat([into.grad for into, _ in self.batches])  # type: ignore[misc]


def fits_key(heads: tuple[int, ...], symbols: int, labels: int) -> bool:
    """Whether every row has a key of its own among 63 bits, for up to 1024 dropout masks."""
    return math.prod(heads) * labels * symbols < 1 << 53

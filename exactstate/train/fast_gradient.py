"""The gradient of a training step without work that cannot change it, for one NFSM layer without a convolution.

    B  words     L  their length     m  width     r  heads     S  their indices     E  their entries     R  rows
    P  pairs of a row and a right label

Words are run only until shortly after their first error (`Rollout`), positions that agree in input and heads share a
row (`SharedRows`), and only used columns of the transition logits receive a gradient. Given the same dropout masks and
the same noise it is the gradient of `autograd_gradient`, which works for any model.

Without a convolution, what precedes the block depends on the symbol and its dropout mask alone, and what follows it on
that and the heads' indices. A row is (input, joint index), with a dropout mask of its own after the block. The gradient
of a position is that of its pair (row, right label), times the position's share of the pair's weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

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
from exactstate.ops.tables import cell_dtype
from exactstate.ops.torch_kernels import project_values
from exactstate.train.config import EndToEndConfig
from exactstate.train.shared_rows import SharedRows

BALANCE = 0.5
"""Labels are weighted by their share of the batch to minus this power."""


def autograd_gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, config: EndToEndConfig, *, seed: int, exploration: float,
    answers: Tensor | None = None,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word) by evaluating the network on every token; for any model.

    The gradient is added to the parameters.
    """
    with record_calls(model) as calls:
        h, _ = model.hidden(tokens, seed=seed)
    loss, first = tracking_loss(model.label_logits(h), labels, rate=config.mask_rate, balance=BALANCE)
    if answers is not None:
        loss = loss + cross_entropy(model.answer_logits(h[:, -1]), answers)
    if exploration > 0 and calls:
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
        row[here] = rows.find(source.index[here], states[here])
        wrong = (rows.predicted[row[here]] != labels.view(-1)[here]).view(len(going), end - begin)
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
        and fits_key(block.heads, model.vocabulary)
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
            rollout.first, self.labels, self.model.labels, rate=self.config.mask_rate, balance=BALANCE,
            dtype=self.encoded.dtype,
        )  # fmt: skip
        segments = padded_segments(rollout.kept, L)
        here = rows_of(segments)
        weight, n = weights.view(-1)[here], self.model.labels
        key, pair = (rollout.row.view(-1)[here] * n + self.labels.view(-1)[here]).unique(return_inverse=True)
        of_pair = weight.new_zeros(len(key)).index_add_(0, pair, weight)
        losses, input_grad = self.rows.backward(key // n, key % n, of_pair)

        theta = linear(self.read, self.block.weight, self.block.bias)
        penalty = exploration * self._penalty(rollout, theta) if exploration > 0 else theta.new_zeros(())
        gains = (input_grad @ self.vectors.detach().T)[pair] * (weight / of_pair[pair])[:, None]
        of_theta = self._used_columns(rollout, segments, rollout.tables[here], gains)
        of_encoded = torch.zeros_like(self.encoded).index_add_(0, self.rows.read[key // n], input_grad)
        of_vectors = torch.zeros_like(self.vectors)
        for places in self.rows.places[key // n].T:
            of_vectors.index_add_(0, places, input_grad)
        roots = [self.encoded, self.vectors, self.block.out_proj.bias, theta]
        found = [of_encoded, of_vectors, input_grad.sum(0), of_theta]
        if penalty.requires_grad:
            roots, found = [*roots, penalty], [*found, torch.ones_like(penalty)]
        backward_from(roots, found)
        return float((of_pair * losses).sum() + penalty.detach())

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


def fits_key(heads: tuple[int, ...], symbols: int) -> bool:
    """Whether every row has a key of its own among 63 bits, for up to 1024 dropout masks."""
    return math.prod(heads) * symbols < 1 << 53

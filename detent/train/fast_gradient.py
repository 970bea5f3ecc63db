"""The gradient of a step without work that cannot change it, for one NFSM layer without a convolution.

    B  words     L  their length     m  width     r  heads     S  their indices     E  their entries

Only positions up to the frontier are looked at, equal ones share a row, and only used columns of the transition logits
receive a gradient. Given the same dropout masks and the same noise it is the gradient of the plain path.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from detent.nn import NFSM, Backbone
from detent.nn.losses import (
    exploration_penalty,
    mask_length,
    position_weights,
    record_calls,
    spread_penalty,
    tracking_loss,
)
from detent.ops.interface import kernels
from detent.ops.segments import LogitSource, Noise, padded_segments, rows_of
from detent.ops.tables import cell_dtype
from detent.ops.torch_kernels import project_values
from detent.train.settings import Settings
from detent.train.shared_rows import SharedRows, countable

# -- The gradient of a step by evaluating the whole network on every token: for any model, and the measure of `quick`.


def autograd_gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, settings: Settings, *, seed: int, exploration: float,
    answers: Tensor | None = None,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word); the autograd_gradient is added to the parameters."""
    with record_calls(model) as calls:
        h, _ = model.hidden(tokens, seed=seed)
    loss, first = tracking_loss(model.label_logits(h), labels, rate=settings.mask_rate, balance=settings.balance)
    if answers is not None:
        loss = loss + cross_entropy(model.answer_logits(h[:, -1]), answers)
    if settings.noise and exploration > 0 and calls:
        penalties = [exploration_penalty(call, first) for call in calls]
        loss = loss + exploration * torch.stack(penalties).mean()
    loss.backward()
    return float(loss.detach()), first


# -- The frontier: how far each word is right, found block by block, looking only at words that are still of interest.

FIRST = 6
"""Positions of the first block, at least; each further block is twice as long."""


@dataclass(frozen=True)
class Walk:
    """Words followed as far as they matter."""

    first: Tensor
    """B: the first position whose likeliest label is wrong; L where there is none."""
    kept: Tensor
    """B: how many positions matter."""
    row: Tensor
    """B L: which shared row stands where; -1 where nothing was computed."""
    states: Tensor
    """(B L) r: the heads after every position."""
    tables: Tensor
    """(B L) S: what every position does."""
    starts: Tensor
    """B r: the heads before the first position."""


def walk(
    block: NFSM, source: LogitSource, rows: SharedRows, wanted: Tensor, *, noise: Noise | None, reach: int
) -> Walk:  # fmt: skip
    """Follow words of equal length; `source` says what stands at which position, `wanted` (B L) the right labels."""
    ops, heads = kernels(block.backend), block.heads
    assert source.index is not None
    B, L = wanted.shape
    starts = torch.tensor(block.config.initial_state).expand(B, -1).contiguous()
    at, states = starts.clone(), torch.zeros(B * L, len(heads), dtype=cell_dtype(heads))
    tables = torch.zeros(B * L, sum(heads), dtype=cell_dtype(heads))
    row = torch.full((B * L,), -1)
    first = torch.full((B,), L)
    going, begin, width = torch.arange(B), 0, max(reach, FIRST)
    while begin < L and len(going):
        end = min(L, begin + width)
        segments = _window(going, begin, end, L)
        made = ops.tables(source, segments, heads, noise)
        at[going] = ops.trajectories(made, segments, at[going], states, heads)
        here = rows_of(segments)
        tables[here] = made
        row[here] = rows.find(source.index[here], states[here], wanted.view(-1)[here])
        wrong = ~rows.right[row[here]].view(len(going), end - begin)
        met = torch.where(wrong.any(dim=1), begin + wrong.int().argmax(dim=1), L)
        first[going] = torch.minimum(first[going], met)
        going = going[first[going] + reach > end]
        begin, width = end, 2 * width
    return Walk(first, (first + reach).clamp(max=L), row.view(B, L), states, tables, starts)


def _window(going: Tensor, begin: int, end: int, length: int) -> Tensor:
    """Segments of the positions begin .. end - 1 of some words."""
    count = torch.full_like(going, end - begin)
    local = torch.arange(len(going)) * (end - begin)
    return torch.stack([going * length + begin, count, count * 0, going, count * 0 + begin, local], dim=1)


def allows(model: Backbone) -> bool:
    """Whether this path can train the model: one NFSM layer, no convolution, in the machine's own memory."""
    block = model.layers[0].block if len(model.layers) == 1 else None
    return (
        isinstance(block, NFSM)
        and model.kernel_size == 1
        and not model.answers
        and block.weight.device.type == "cpu"
        and countable(block.heads, model.vocabulary, model.labels)
    )


class Step:
    """One batch: what is known of it on the way to the gradient."""

    def __init__(
        self, model: Backbone, tokens: Tensor, labels: Tensor, settings: Settings, masks: Tensor, variants: int
    ) -> None:
        """`masks` (B L) says which of the symbol's `variants` dropout masks each token has."""
        block = model.layers[0].block
        assert isinstance(block, NFSM)
        self.model, self.block, self.labels, self.settings = model, block, labels, settings
        symbols = torch.arange(model.vocabulary).repeat_interleave(variants)
        self.encoded = model.encode(symbols)
        read, _ = model.layers[0].block_input(self.encoded)  # type: ignore[operator]
        self.read = block.logit_input(read)
        self.index = (tokens * variants + masks).view(-1)
        self.vectors = project_values(block.values, block.out_proj.weight, block.heads)
        self.rows = SharedRows(model, block, self.encoded, self.vectors)

    def walk(self, seed: int | None, beyond: int) -> Walk:
        """Follow the words for `beyond` positions from their first error on, with sampled tables if a seed is given."""
        noise = None if seed is None else Noise(seed, self.block.config.temperature)
        self.noise, self.source = noise, self._source()
        return walk(self.block, self.source, self.rows, self.labels, noise=noise, reach=beyond)

    def backward(self, walk: Walk, exploration: float) -> float:
        """Add the gradient of the loss to the parameters; returns the loss."""
        L = self.labels.shape[1]
        weights = position_weights(
            walk.first, self.labels, self.model.labels, rate=self.settings.mask_rate, balance=self.settings.balance,
            dtype=self.encoded.dtype,
        )  # fmt: skip
        segments = padded_segments(walk.kept, L)
        here = rows_of(segments)
        row, weight = walk.row.view(-1)[here], weights.view(-1)[here]
        of_row = torch.zeros_like(self.rows.surprise).index_add_(0, row, weight)
        slopes = self.rows.backward(of_row)

        theta = linear(self.read, self.block.weight, self.block.bias)
        penalty = exploration * self._penalty(walk, theta) if exploration > 0 else theta.new_zeros(())
        gains = (slopes @ self.vectors.detach().T)[row] * (weight / of_row[row])[:, None]
        of_theta = self._used_columns(walk, segments, walk.tables[here], gains)
        of_encoded = torch.zeros_like(self.encoded).index_add_(0, self.rows.read, slopes)
        of_vectors = torch.zeros_like(self.vectors)
        for places in self.rows.places.T:
            of_vectors.index_add_(0, places, slopes)
        roots = [self.encoded, self.vectors, self.block.out_proj.bias, theta]
        found = [of_encoded, of_vectors, slopes.sum(0), of_theta]
        if penalty.requires_grad:
            roots, found = [*roots, penalty], [*found, torch.ones_like(penalty)]
        torch.autograd.backward(roots, found)
        return float((of_row * self.rows.surprise).sum() + penalty.detach())

    def _source(self) -> LogitSource:
        ops = kernels(self.block.backend)
        read, weight, bias = self.read.detach().contiguous(), self.block.weight.detach(), self.block.bias.detach()
        return LogitSource(read, weight, bias, self.index, ops.logits(read, weight, bias))

    def _used_columns(self, walk: Walk, segments: Tensor, tables: Tensor, gains: Tensor) -> Tensor:
        """The gradient of the logits of the distinct rows, from what being at each index is worth."""
        ops, heads = kernels(self.block.backend), self.block.heads
        of_theta = gains.new_zeros(len(self.read), len(self.block.weight))
        ops.adjoint_scan_(tables.contiguous(), gains, gains.new_zeros(len(segments), sum(heads)), segments, heads)
        ops.surrogate_backward_(
            self.source, segments, walk.starts, walk.states, gains, heads, self.noise, self.block.config.temperature,
            (None, None, of_theta),
        )  # fmt: skip
        return of_theta

    def _penalty(self, walk: Walk, theta: Tensor) -> Tensor:
        """The exploration penalty at the columns used at the first errors."""
        B, L = self.labels.shape
        wrong = (walk.first < L).nonzero().flatten()
        at = wrong * L + walk.first[wrong]
        later = (walk.first[wrong] > 0)[:, None]
        before = torch.where(later, walk.states[(at - 1).clamp(min=0)].long(), walk.starts[wrong])
        return spread_penalty(theta[self.index[at]], before, self.block, B)


def gradient(
    model: Backbone, tokens: Tensor, labels: Tensor, settings: Settings, *, masks: Tensor, seed: int | None,
    exploration: float,
) -> tuple[float, Tensor]:  # fmt: skip
    """(loss, first error of every word); the gradient is added to the parameters."""
    step = Step(model, tokens, labels, settings, masks, settings.masks)
    walk = step.walk(seed, mask_length(settings.mask_rate))
    return step.backward(walk, exploration if seed is not None else 0.0), walk.first


@torch.no_grad()
def first_errors(model: Backbone, tokens: Tensor, labels: Tensor, settings: Settings) -> Tensor:
    """The first error of every word in evaluation, without noise or dropout."""
    return Step(model, tokens, labels, settings, torch.zeros_like(tokens), 1).walk(None, 1).first

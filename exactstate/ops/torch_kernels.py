"""The kernels of the backends `reference` and `tree`, in plain torch on top of their scans.

    N  local rows     G  segments     T  the longest of them     r  heads     S  their indices     E  their entries

Segments are laid out as G x T; steps beyond a segment's end are identity tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from exactstate.ops.gumbel import gumbel
from exactstate.ops.segments import (
    LENGTH,
    LOCAL,
    PADDING,
    ROW,
    LogitSource,
    Noise,
    batch_segments,
    refuse_infinite,
    rows_of,
    steps_of,
)
from exactstate.ops.tables import cell_dtype, entry_offsets, identity, offsets


def ordered_logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """bias + x[0] w[0] + x[1] w[1] + ..., summed in that order: the definition of a logit to its last bit."""
    logits = bias.expand(len(rows), -1)
    for i in range(rows.shape[1]):
        logits = logits + rows[:, i : i + 1] * weight[:, i]
    return logits


def blas_logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same by one matrix product, whose summation order is the BLAS library's.

    Rows are padded to a multiple of 16: BLAS handles left-over rows with other kernels, and a row's logits would then
    depend on the number of rows in the call.
    """
    return linear(pad(rows, (0, 0, 0, -len(rows) % 16)), weight, bias)[: len(rows)]


def project_values(values: Tensor, weight: Tensor, heads: Sequence[int]) -> Tensor:
    """S v, m (r v) -> S m: the value vector of every index times its head's columns of the weight; differentiable."""
    shares = weight.view(len(weight), len(heads), values.shape[1]).permute(1, 2, 0)
    if len(set(heads)) == 1:
        return torch.bmm(values.view(len(heads), heads[0], -1), shares).flatten(0, 1)
    return torch.cat([part @ shares[h] for h, part in enumerate(values.split(list(heads)))])


@dataclass(frozen=True, slots=True)
class TorchKernels:
    """The kernels of `exactstate.ops.interface` in plain torch."""

    scan: Any
    """A `Scan` of `exactstate.ops.interface`, which imports this module."""
    logits: Callable[[Tensor, Tensor, Tensor], Tensor]

    def repeated_rows(self, rows: Tensor) -> None:
        """These backends compute every row."""

    def tables(self, source: LogitSource, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
        scores = self._logits(source, segments)
        if noise is not None:
            scores = scores * (1.0 / noise.temperature) + _noise(noise, segments, scores)
        columns = [
            scores[:, at : at + d * d].view(-1, d, d).argmax(-1)
            for d, at in zip(heads, entry_offsets(tuple(heads)), strict=True)
        ]
        return torch.cat(columns, dim=1).to(cell_dtype(heads))

    def trajectories(
        self, tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
        row_index: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        table_row = None if row_index is None else row_index[_to(rows_of(segments), row_index)]
        laid, _, rows, valid = _lay_out(tables, segments, heads, table_row)
        path = self.scan.run(laid, starts, heads)
        states[rows[valid]] = path[valid].to(states.dtype)
        return path[:, -1].long() if path.shape[1] else starts.long()

    def index_gains(self, output_grad: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
        return output_grad[_to(rows_of(segments), output_grad)] @ vectors.T

    def adjoint_scan_(
        self, tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        laid, local, _, _ = _lay_out(tables, segments, heads)
        read = _to(torch.arange(laid.shape[1]) < segments[:, LENGTH, None], gains)
        spread = gains.new_zeros(*laid.shape)
        spread[read] = gains[local[read]]
        lam, firsts = self.scan.adjoint(laid, spread, lasts, heads)
        gains[local[read]] = lam[read]
        return firsts

    def argmax_trajectories(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        return self.trajectories(self.tables(source, segments, heads, None), segments, starts, states, heads)

    def surrogate_backward_(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, lam: Tensor, heads: Sequence[int],
        noise: Noise | None, temperature: float, gradients: tuple[Tensor | None, Tensor | None, Tensor],
    ) -> None:  # fmt: skip
        rows = _to(rows_of(segments), lam)
        before = _before(segments, starts, states, rows)
        scores = self._logits(source, segments) * (1.0 / temperature)
        if noise is not None:
            scores = scores + _noise(noise, segments, scores)
        entries, indices = entry_offsets(tuple(heads)), offsets(tuple(heads))
        for h, d in enumerate(heads):
            column = before[:, h]
            used = entries[h] + column[:, None] * d + torch.arange(d, device=lam.device)
            p = scores.gather(1, used).softmax(-1)
            value = lam[:, indices[h] : indices[h] + d]
            g = p * (value - (p * value).sum(-1, keepdim=True)) / temperature
            lam[:, indices[h] : indices[h] + d] = g
            self._add_gradients(source, rows, column, g, entries[h], gradients)

    @staticmethod
    def _add_gradients(
        source: LogitSource, rows: Tensor, column: Tensor, g: Tensor, entry: int,
        gradients: tuple[Tensor | None, Tensor | None, Tensor],
    ) -> None:  # fmt: skip
        """From the gradient of the used columns of one head to those of input, weight and bias, column by column."""
        grad_input, grad_weight, grad_bias = gradients
        d = g.shape[1]
        if source.index is not None:
            places = (source.index[rows] * grad_bias.shape[1] + entry + column * d)[:, None] + torch.arange(
                d, device=g.device
            )
            grad_bias.view(-1).index_add_(0, places.reshape(-1), g.reshape(-1))
            return
        assert grad_weight is not None
        for k in range(d):
            mine = (column == k).nonzero().flatten()
            entries = slice(entry + k * d, entry + (k + 1) * d)
            grad_weight[entries] += g[mine].T @ source.input[rows[mine]]
            grad_bias[entries] += g[mine].sum(0)
            if grad_input is not None:
                grad_input.index_add_(0, rows[mine], g[mine] @ source.weight[entries])

    def project_values(self, values: Tensor, weight: Tensor, heads: Sequence[int]) -> Tensor:
        shares = weight.view(len(weight), len(heads), values.shape[1])
        nothing = weight.new_zeros(len(weight))
        parts = values.split(list(heads))
        return torch.cat([self.logits(part, shares[:, h], nothing) for h, part in enumerate(parts)])

    def project_values_backward(
        self, vectors_grad: Tensor, values: Tensor, weight: Tensor, heads: Sequence[int]
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        grad_values, grad_shares = [], []
        shares = weight.view(len(weight), len(heads), values.shape[1])
        for h, (part, value) in enumerate(zip(vectors_grad.split(list(heads)), values.split(list(heads)), strict=True)):
            grad_values.append(part @ shares[:, h])
            grad_shares.append(part.T @ value)
        return torch.cat(grad_values), torch.cat(grad_shares, dim=1)

    @staticmethod
    def zeros(like: Tensor, *shape: int) -> Tensor:
        return like.new_zeros(shape)

    def step(
        self, rows: Tensor, weight: Tensor, bias: Tensor, values: Tensor, out_weight: Tensor, out_bias: Tensor,
        starts: Tensor, heads: Sequence[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return step_of(self, rows, weight, bias, values, out_weight, out_bias, starts, heads)

    def read_out(self, vectors: Tensor, bias: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        output = bias.expand(len(states), -1)
        for h, at in enumerate(offsets(tuple(heads))):
            output = output + vectors[at + states[:, h].long()]
        return output

    def read_out_backward(self, output_grad: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        vectors_grad = output_grad.new_zeros(sum(heads), output_grad.shape[1])
        for h, at in enumerate(offsets(tuple(heads))):
            vectors_grad.index_add_(0, at + states[:, h].long(), output_grad)
        return vectors_grad

    def _logits(self, source: LogitSource, segments: Tensor) -> Tensor:
        """N E, for the local rows."""
        rows = _to(rows_of(segments), source.input)
        if source.index is not None:
            assert source.logits is not None
            logits = source.logits[source.index[rows]]
        else:
            logits = self.logits(source.input[rows], source.weight, source.bias)
        if not bool(torch.isfinite(logits).all()):
            refuse_infinite(int(rows[(~torch.isfinite(logits)).any(1).nonzero()[0, 0]]))
        return logits


def step_of(
    kernels: Any, rows: Tensor, weight: Tensor, bias: Tensor, values: Tensor, out_weight: Tensor, out_bias: Tensor,
    starts: Tensor, heads: Sequence[int],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A step by the other functions of a backend."""
    source, states = LogitSource(rows, weight, bias), torch.empty(starts.shape, dtype=torch.int64, device=starts.device)
    final = kernels.argmax_trajectories(source, batch_segments(len(starts), 1), starts, states, heads)
    return kernels.read_out(kernels.project_values(values, out_weight, heads), out_bias, states, heads), final


def _to(places: Tensor, like: Tensor) -> Tensor:
    return places.to(like.device)


def _noise(noise: Noise, segments: Tensor, like: Tensor) -> Tensor:
    sequence, step = (_to(part, like) for part in steps_of(segments))
    return gumbel(torch.tensor(noise.seed, device=like.device), sequence, step, like.shape[1]).to(like.dtype)


def _lay_out(
    tables: Tensor, segments: Tensor, heads: Sequence[int], table_row: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(tables as G T S; local row of every step: G T; row of every step; which steps exist, padding included)."""
    length, padding = segments[:, LENGTH, None], segments[:, PADDING, None]
    step = torch.arange(int((length + padding).max()) if len(segments) else 0)
    read = _to(step < length, tables)
    local = _to(segments[:, LOCAL, None] + step, tables)
    laid = identity(heads, tables.dtype, tables.device).repeat(len(segments), len(step), 1)
    laid[read] = tables[local[read] if table_row is None else table_row[local[read]]]
    return laid, local, _to(segments[:, ROW, None] + step, tables), _to(step < length + padding, tables)


def _before(segments: Tensor, starts: Tensor, states: Tensor, rows: Tensor) -> Tensor:
    """N r: the index of every head before every local row."""
    before = states[(rows - 1).clamp(min=0)].long()
    begin = _to(segments[:, LOCAL][segments[:, LENGTH] > 0], states)
    before[begin] = starts[_to(segments[:, LENGTH] > 0, starts)].long()
    return before

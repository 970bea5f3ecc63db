"""The stages of a layer's pass over segments in plain torch, on top of a scan (`reference` or `tree`).

    N  local rows     G  segments     T  the longest of them     r  heads     S  their indices     E  their entries

Segments are laid out as G x T, and steps beyond a segment's end are identity tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from detent.ops.gumbel import gumbel
from detent.ops.segments import LENGTH, LOCAL, ROOM, ROW, Noise, Source, refuse_infinite, rows_of, steps_of
from detent.ops.tables import cell_dtype, entry_offsets, identity, offsets


def ordered_logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """bias + x[0] w[0] + x[1] w[1] + ..., summed in that order: the definition of a logit to its last bit."""
    logits = bias.expand(len(rows), -1)
    for i in range(rows.shape[1]):
        logits = logits + rows[:, i : i + 1] * weight[:, i]
    return logits


def blas_logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same by one matrix product, whose last bit is the library's business.

    Rows are padded to a multiple of 16: libraries treat left-over rows with other kernels, and then a row's logits
    would depend on how many rows came with it.
    """
    return linear(pad(rows, (0, 0, 0, -len(rows) % 16)), weight, bias)[: len(rows)]


def fold(values: Tensor, projection: Tensor, heads: Sequence[int]) -> Tensor:
    """S v, m (r v) -> S m: the value vector of every index, projected by its head's share of the projection."""
    shares = projection.view(len(projection), len(heads), values.shape[1]).permute(1, 2, 0)
    if len(set(heads)) == 1:
        return torch.bmm(values.view(len(heads), heads[0], -1), shares).flatten(0, 1)
    return torch.cat([part @ shares[h] for h, part in enumerate(values.split(list(heads)))])


@dataclass(frozen=True, slots=True)
class Plain:
    """Stages with the signatures of `detent.ops.cpu`."""

    scan: Any
    """The module with `run` and `adjoint`."""
    logits: Callable[[Tensor, Tensor, Tensor], Tensor]

    def tables(self, source: Source, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
        scores = self._logits(source, segments)
        if noise is not None:
            scores = scores * (1.0 / noise.temperature) + _noise(noise, segments, scores)
        columns = [
            scores[:, at : at + d * d].view(-1, d, d).argmax(-1)
            for d, at in zip(heads, entry_offsets(tuple(heads)), strict=True)
        ]
        return torch.cat(columns, dim=1).to(cell_dtype(heads))

    def track(
        self, tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
        index: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        table_row = (index[_to(rows_of(segments), index)]) if index is not None else None
        laid, _, rows, valid = _lay_out(tables, segments, heads, table_row)
        path = self.scan.run(laid, starts, heads)
        states[rows[valid]] = path[valid].to(states.dtype)
        return path[:, -1].long() if path.shape[1] else starts.long()

    def gains(self, gradient: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
        return gradient[_to(rows_of(segments), gradient)] @ vectors.T

    def weigh(self, tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]) -> Tensor:
        laid, local, _, _ = _lay_out(tables, segments, heads)
        read = _to(torch.arange(laid.shape[1]) < segments[:, LENGTH, None], gains)
        spread = gains.new_zeros(*laid.shape)
        spread[read] = gains[local[read]]
        worth, firsts = self.scan.adjoint(laid, spread, lasts, heads)
        gains[local[read]] = worth[read]
        return firsts

    def follow(
        self, source: Source, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        return self.track(self.tables(source, segments, heads, None), segments, starts, states, heads)

    def surrogate(
        self, source: Source, segments: Tensor, starts: Tensor, states: Tensor, worth: Tensor, heads: Sequence[int],
        noise: Noise | None, temperature: float, gradients: tuple[Tensor | None, Tensor | None, Tensor],
    ) -> None:  # fmt: skip
        rows = _to(rows_of(segments), worth)
        before = _before(segments, starts, states, rows)
        scores = self._logits(source, segments) * (1.0 / temperature)
        if noise is not None:
            scores = scores + _noise(noise, segments, scores)
        entries, indices = entry_offsets(tuple(heads)), offsets(tuple(heads))
        for h, d in enumerate(heads):
            column = before[:, h]
            used = entries[h] + column[:, None] * d + torch.arange(d, device=worth.device)
            p = scores.gather(1, used).softmax(-1)
            value = worth[:, indices[h] : indices[h] + d]
            g = p * (value - (p * value).sum(-1, keepdim=True)) / temperature
            worth[:, indices[h] : indices[h] + d] = g
            self._pull(source, rows, column, g, entries[h], gradients)

    @staticmethod
    def _pull(
        source: Source, rows: Tensor, column: Tensor, g: Tensor, entry: int,
        gradients: tuple[Tensor | None, Tensor | None, Tensor],
    ) -> None:  # fmt: skip
        """From the gradient of the used columns of one head to that of what made them, a column at a time."""
        of_input, of_weight, of_bias = gradients
        d = g.shape[1]
        if source.index is not None:
            places = (source.index[rows] * of_bias.shape[1] + entry + column * d)[:, None] + torch.arange(
                d, device=g.device
            )
            of_bias.view(-1).index_add_(0, places.reshape(-1), g.reshape(-1))
            return
        assert of_weight is not None
        for k in range(d):
            mine = (column == k).nonzero().flatten()
            entries = slice(entry + k * d, entry + (k + 1) * d)
            of_weight[entries] += g[mine].T @ source.input[rows[mine]]
            of_bias[entries] += g[mine].sum(0)
            if of_input is not None:
                of_input.index_add_(0, rows[mine], g[mine] @ source.weight[entries])

    def fold(self, values: Tensor, projection: Tensor, heads: Sequence[int]) -> Tensor:
        shares = projection.view(len(projection), len(heads), values.shape[1])
        nothing = projection.new_zeros(len(projection))
        parts = values.split(list(heads))
        return torch.cat([self.logits(part, shares[:, h], nothing) for h, part in enumerate(parts)])

    def unfold(
        self, gradient: Tensor, values: Tensor, projection: Tensor, heads: Sequence[int]
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        of_values, of_shares = [], []
        shares = projection.view(len(projection), len(heads), values.shape[1])
        for h, (part, value) in enumerate(zip(gradient.split(list(heads)), values.split(list(heads)), strict=True)):
            of_values.append(part @ shares[:, h])
            of_shares.append(part.T @ value)
        return torch.cat(of_values), torch.cat(of_shares, dim=1)

    @staticmethod
    def zeros(like: Tensor, *shape: int) -> Tensor:
        return like.new_zeros(shape)

    def speak(
        self, values: Tensor, projection: Tensor, offset: Tensor, states: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        return self.read(self.fold(values, projection, heads), offset, states, heads)

    def read(self, vectors: Tensor, offset: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        output = offset.expand(len(states), -1)
        for h, at in enumerate(offsets(tuple(heads))):
            output = output + vectors[at + states[:, h].long()]
        return output

    def collect(self, gradient: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        collected = gradient.new_zeros(sum(heads), gradient.shape[1])
        for h, at in enumerate(offsets(tuple(heads))):
            collected.index_add_(0, at + states[:, h].long(), gradient)
        return collected

    def _logits(self, source: Source, segments: Tensor) -> Tensor:
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


def _to(places: Tensor, like: Tensor) -> Tensor:
    return places.to(like.device)


def _noise(noise: Noise, segments: Tensor, like: Tensor) -> Tensor:
    sequence, step = (_to(part, like) for part in steps_of(segments))
    return gumbel(torch.tensor(noise.seed, device=like.device), sequence, step, like.shape[1]).to(like.dtype)


def _lay_out(
    tables: Tensor, segments: Tensor, heads: Sequence[int], table_row: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(tables as G T S; local row of every step: G T; row of every step; which steps exist, held ones included)."""
    length, room = segments[:, LENGTH, None], segments[:, ROOM, None]
    step = torch.arange(int((length + room).max()) if len(segments) else 0)
    read = _to(step < length, tables)
    local = _to(segments[:, LOCAL, None] + step, tables)
    laid = identity(heads, tables.dtype, tables.device).repeat(len(segments), len(step), 1)
    laid[read] = tables[local[read] if table_row is None else table_row[local[read]]]
    return laid, local, _to(segments[:, ROW, None] + step, tables), _to(step < length + room, tables)


def _before(segments: Tensor, starts: Tensor, states: Tensor, rows: Tensor) -> Tensor:
    """N r: the index of every head before every local row."""
    before = states[(rows - 1).clamp(min=0)].long()
    begin = _to(segments[:, LOCAL][segments[:, LENGTH] > 0], states)
    before[begin] = starts[_to(segments[:, LENGTH] > 0, starts)].long()
    return before

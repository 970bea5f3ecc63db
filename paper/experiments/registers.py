"""Registers that copy one another: the tables of an NFSM, read the other way round.

    B  batch     L  length     m  width     r  heads     d  registers of a head     S  the sum of the ds
    R  distinct inputs     c  value width

A head has d registers and d value vectors; register j begins with vector j. A step is a table for each head, and
table[j] is the register that j copies: where an index comes from, while a table of the NFSM says where it goes. All
registers copy at once, so two of them can exchange what they hold. The state of a head is which vector each of its
registers holds, d integers, and the composite of all tables so far. Tables compose by gathers, so a scan is exact.

    set a key to a value      the register of the key copies one that never changes
    exchange two keys         their registers copy each other

An NFSM needs an index for every arrangement to do this, d ** d of them in general, and no machine is extracted here. In
training, rows of a table are softmaxes or one-hot (see `exactstate.nn.soften`), and a register holds a mean of vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, one_hot, pad

from exactstate.errors import InvalidInput
from exactstate.nn.init import fan_in_, truncated_
from exactstate.nn.inputs import check_index
from exactstate.nn.soft import CompiledIndexedRun
from exactstate.ops.cpu import SoftSteps
from exactstate.ops.interface import resolve
from exactstate.ops.ordered_linear import ordered_linear
from exactstate.ops.tables import identity, owners


class Registers(nn.Module):
    """Heads of d registers; every step copies some to others, and reads a weighted sum of what they hold.

    Each of `inputs` inputs has free tables: the arg max of row j of a head's logits is the register that j copies, the
    lowest on a tie. A step reads the sum of the vectors in a head's registers, weighted by an affine map of a row; the
    sums of all heads are projected to the width. Tables are exact in training, too, with the gradient of the softmax.
    After `soften(layer, T)` a row is its softmax at temperature T with probability T in training mode, and exact
    otherwise. Registers of different heads cannot exchange what they hold: few large heads learned better than many.

    `remember` is the initial bias of the logits that let a register keep what it holds. Soft registers leak: an
    untrained one of 24 loses half of what it holds in about 56 steps, and in about 8 with a bias of 6.
    """

    def __init__(
        self, width: int, heads: int, size: int, *, value_width: int, inputs: int, remember: float = 8.0,
        backend: str = "auto",
    ) -> None:  # fmt: skip
        super().__init__()
        self.backend, self.heads = resolve(backend), (size,) * heads
        self.soft_temperature: float | None = None  # set by `exactstate.nn.soften`
        S, E = heads * size, heads * size * size
        # entry j * d + k of a head scores that its register j copies its register k
        self.tables, self.bias = nn.Parameter(torch.empty(inputs, E)), nn.Parameter(torch.empty(E))
        self.values = nn.Parameter(torch.empty(S, value_width))
        self.read_proj, self.out_proj = nn.Linear(width, S), nn.Linear(value_width * heads, width)
        nn.init.normal_(self.tables, std=0.7)
        with torch.no_grad():
            self.bias.copy_((remember * torch.eye(size)).expand(heads, size, size).flatten())
        nn.init.normal_(self.values)
        for linear in (self.read_proj, self.out_proj):
            fan_in_(linear)
        truncated_(self.read_proj.weight, None, 2.0)

    def forward(self, x: tuple[Tensor, Tensor], ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(y, state): the read-out after every step, B L m, and which vector every register holds after the last, B S.

        x are R distinct rows (R m) and which of them stands where (B L); `ids` (B L) are the inputs.
        """
        rows, index = x
        r, d = len(self.heads), self.heads[0]
        queries = embedding(index, self._linear(self.read_proj, rows))
        logits, tables, row_index = self._tables(ids)
        start = self.initial_state(len(ids)) if state is None else state
        states = register_states(tables, row_index, start, self.heads)
        final = states[:, -1]
        if torch.is_grad_enabled() or (self.training and self.soft_temperature is not None):
            sources = self._sources(logits.view(-1, r, d, d), tables.view(-1, r, d))
            begin = None if state is None else state.unflatten(1, (r, d))
            held = register_values(sources, row_index, self.values.view(r, d, -1), self.backend, begin)
        else:
            held = embedding(states + owners(self.heads, states.device), self.values).unflatten(2, (r, d))
        read = _WeightedSum.apply(queries.unflatten(-1, (r, d)), held).flatten(2)
        return self._linear(self.out_proj, read.flatten(0, 1)).view(*index.shape, -1), final

    @torch.no_grad()
    def states(self, ids: Tensor, state: Tensor | None = None) -> Tensor:
        """B L S integers: which vector every register holds after every step, in evaluation."""
        _, tables, row_index = self._tables(ids)
        return register_states(tables, row_index, self.initial_state(len(ids)) if state is None else state, self.heads)

    def initial_state(self, batch: int) -> Tensor:
        """B S integers: register j of a head holds its vector j."""
        return identity(self.heads, device=self.bias.device).expand(batch, -1)

    def _tables(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(the logits of the R distinct inputs, the register that every register copies: R S, row of a step: B L)."""
        distinct, row_index = torch.unique(check_index(ids, len(self.tables), "ids", "inputs"), return_inverse=True)
        logits = embedding(distinct, self.tables) + self.bias
        r, d = len(self.heads), self.heads[0]
        return logits, logits.detach().view(-1, r, d, d).argmax(-1).flatten(1), row_index

    def _sources(self, logits: Tensor, tables: Tensor) -> Tensor:
        """R r d d: of which registers a register takes the mean, with the gradient of the softmax."""
        temperature = (self.soft_temperature if self.training else None) or 0.0
        soft = (logits / (temperature or 1.0)).softmax(-1)
        rounding = one_hot(tables, logits.shape[-1]) - soft.detach()
        if temperature:
            drawn = torch.rand(soft.shape[:-1])
            rounding = rounding * (drawn >= temperature)[..., None]
        return soft + rounding

    def _linear(self, linear: nn.Linear, rows: Tensor) -> Tensor:
        """An affine map with its sums in one order, so that a row does not depend on those beside it."""
        return ordered_linear(rows.contiguous(), linear.weight, linear.bias, self.backend)


class _WeightedSum(torch.autograd.Function):
    """Weights ... d and vectors ... d c -> ... c, summed in one order; a sum of torch has another for other shapes."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(weights, vectors)
        terms = (w[..., None] * v for w, v in zip(weights.unbind(-1), vectors.unbind(-2), strict=True))
        return reduce(torch.add, terms)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        weights, vectors = ctx.saved_tensors
        return (vectors * grad[..., None, :]).sum(-1), weights[..., None] * grad[..., None, :]


def register_values(
    sources: Tensor, row_index: Tensor, values: Tensor, backend: str = "reference", start: Tensor | None = None
) -> Tensor:
    """B L r d c: what every register holds after every step, when registers copy one another.

    A head has d registers and d value vectors, the rows of `values` (r d c); register j begins with vector j, or with
    vector start[b, head, j] (B r d). In a step with row n, register j of a head takes the mean of its registers,
    weighted by sources[n, head, j] (R r d d, n = row_index[b, t]).
    """
    (R, r, d, _), (B, L), c = sources.shape, row_index.shape, values.shape[-1]
    begun = values if start is None else values.flatten(0, 1)[start + d * torch.arange(r)[:, None]]
    if backend != "cpu":
        held, parts = begun.expand(B, r, d, c), []
        for t in range(L):
            held = sources[row_index[:, t]] @ held
            parts.append(held)
        return torch.stack(parts, 1)
    # A component of the values is a sequence of its own. Its first step takes index 0 to that component of the values.
    first = begun.movedim(-1, -3).reshape(-1, r, 1, d)
    moves = torch.cat([sources.transpose(2, 3).flatten(1), pad(first, (0, 0, 0, d - 1)).flatten(1)])
    begin = R + torch.arange(len(first)).view(-1, c).expand(B, c)
    index = torch.cat([begin[:, :, None], row_index[:, None].expand(B, c, L)], 2).flatten(0, 1)
    zeros = torch.zeros(B * c, r, dtype=torch.int64)
    steps = SoftSteps((d,) * r, (B * c, L + 1), zeros, torch.zeros(r, dtype=torch.int64), None, None)
    states: Tensor = CompiledIndexedRun.apply(moves, index, steps)
    return states.view(B, c, L + 1, r, d)[:, :, 1:].permute(0, 2, 3, 4, 1)


def register_states(tables: Tensor, row_index: Tensor, start: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S integers: the vector that every register holds after every step.

    Step (b, t) takes row row_index[b, t] of the tables (R S); sequences begin with the vectors `start` (B S). Blocks
    of about sqrt(L) steps are composed side by side and then one after the other: 2 sqrt(L) gathers in a row.
    """
    (B, L), S = row_index.shape, sum(heads)
    if not L:
        raise InvalidInput("a text has at least one token.")
    own, everyone = owners(heads, tables.device), torch.arange(S)
    steps = embedding(row_index, tables + own)
    size = isqrt(L - 1) + 1
    blocks = -(-L // size)
    steps = torch.cat([steps, everyone.expand(B, blocks * size - L, S)], 1).view(B, blocks, size, S)
    within = [steps[:, :, 0]]
    for t in range(1, size):
        within.append(within[-1].gather(-1, steps[:, :, t]))
    before = [start + own]
    for block in within[-1].unbind(1):
        before.append(before[-1].gather(-1, block))
    began = torch.stack(before[:-1], 1)[:, :, None].expand(B, blocks, size, S)
    return began.gather(-1, torch.stack(within, 2)).flatten(1, 2)[:, :L] - own

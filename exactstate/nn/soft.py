"""Soft states: distributions over indices in training, for a layer that is exact in evaluation.

    B  batch     L  length     m  width     r  heads     d  indices of a head     S  the sum of the ds

With soft states a head is a distribution s over its indices, and a step is s_t = P_t s_{t-1}: column k of P_t is the
softmax of column k of the logits. Forward and backward pass belong to the same smooth function, so a head is moved by
everything that it could have held. `soften` switches a model's layers between soft and exact states. Begin with soft
states, lower the temperature, and finish with exact ones: a distribution that is nearly one-hot is nearly an index.

On the backend `cpu` the pass is compiled; on the others it is a loop over steps in torch, which defines it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from exactstate.errors import InvalidConfig
from exactstate.nn.inputs import check_index, check_lengths
from exactstate.ops.cpu import SoftSteps, soft_backward, soft_forward, soft_indexed, soft_indexed_backward
from exactstate.ops.eager import is_traced
from exactstate.ops.tables import check_states, one_hot


def soften(model: nn.Module, temperature: float | None) -> None:
    """Let all NFSM layers of a model train with soft states at this temperature; None: with exact ones.

    It changes nothing in evaluation, and nothing in a model without such layers.
    """
    if temperature is not None and not 0 < temperature < float("inf"):
        raise InvalidConfig(f"the temperature of soft states is positive and finite, or None; got {temperature}.")
    for module in model.modules():
        if hasattr(module, "soft_temperature"):
            setattr(module, "soft_temperature", temperature)  # noqa: B010 (the class is not known here)


def soft_states(
    x: Tensor, weight: Tensor, bias: Tensor, heads: Sequence[int], start: Tensor, temperature: float,
    *, row_index: Tensor | None = None, lengths: Tensor | None = None, resets: Tensor | None = None,
    initial_state: Sequence[int] = (), backend: str = "reference",
) -> Tensor:  # fmt: skip
    """B L S: the distribution of every head after every step, from inputs B L m and start indices B r.

    `weight` and `bias` are those of the layer: row k * d + j of a head scores its move from index k to index j. With
    `row_index` (B L), x are R distinct rows: R m.
    """
    if row_index is not None:
        row_index = check_index(row_index, len(x))
        if backend != "cpu" or len(x) > row_index.numel() or is_traced():
            x, row_index = nn.functional.embedding(row_index, x), None
    if backend == "cpu" and not is_traced():
        initial = torch.tensor(initial_state or (0,) * len(heads))
        B, L = x.shape[:2] if row_index is None else row_index.shape
        check_states(start, heads, B)
        check_lengths(lengths, (B, L))
        held = None if lengths is None else lengths.long().contiguous()
        starts = None if resets is None else resets.contiguous()
        steps = SoftSteps(tuple(heads), (B, L), start.long().contiguous(), initial, held, starts)
        return _compiled(x, weight / temperature, bias / temperature, row_index, steps)
    (B, L, m), first, entries, parts = x.shape, 0, 0, []
    rows = x.permute(2, 1, 0).reshape(m, L * B)
    for d, run in groupby(heads):
        r = len(list(run))
        span = slice(entries, entries + r * d * d)
        logits = torch.addmm(bias[span, None] / temperature, weight[span] / temperature, rows)
        logits = logits.view(r, d, d, L, B).permute(3, 0, 1, 2, 4)
        if resets is not None:  # every index moves as the initial one does
            initial = torch.tensor(initial_state[first : first + r], device=x.device).view(1, r, 1, 1, 1)
            column = logits.gather(2, initial.expand(L, r, 1, d, B))
            logits = torch.where(resets.T[:, None, None, None], column, logits)
        if lengths is not None:  # steps beyond a length are the identity
            beyond = torch.arange(L, device=x.device)[:, None] >= lengths.to(x.device)
            stay = torch.eye(d, dtype=x.dtype, device=x.device).log()[:, :, None]
            logits = torch.where(beyond[:, None, None, None], stay, logits)
        held = one_hot(start[:, first : first + r], (d,) * r, x.dtype).view(B, r, d).permute(1, 2, 0)
        states = _SoftRun.apply(logits.contiguous(), held.contiguous())
        parts.append(states.flatten(1, 2))
        first, entries = first + r, entries + r * d * d
    return torch.cat(parts, dim=1).permute(2, 0, 1)


def _compiled(x: Tensor, weight: Tensor, bias: Tensor, row_index: Tensor | None, steps: SoftSteps) -> Tensor:
    """The same by compiled kernels, from the weight and bias of logits at temperature 1."""
    logits = nn.functional.linear(x.flatten(0, -2), weight, bias)
    if row_index is None:
        dense: Tensor = _CompiledRun.apply(logits, steps)
        return dense
    moves, at = [], 0
    for d, run in groupby(steps.heads):
        columns = len(list(run)) * d
        moves.append(logits[:, at : at + columns * d].unflatten(1, (columns, d)).softmax(-1).flatten(1))
        at += columns * d
    indexed: Tensor = CompiledIndexedRun.apply(torch.cat(moves, 1), row_index.contiguous(), steps)
    return indexed


class _CompiledRun(torch.autograd.Function):
    """Logits (B L) E -> the distributions after every step, B L S."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, steps: SoftSteps) -> Tensor:
        states, moves = soft_forward(logits.contiguous(), steps)
        ctx.save_for_backward(states, moves)
        ctx.steps = steps
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        states, moves = ctx.saved_tensors
        return soft_backward(grad.contiguous(), moves, states, ctx.steps), None


class CompiledIndexedRun(torch.autograd.Function):
    """Matrices of distinct rows, R E, and the row of every step, B L -> the distributions after every step, B L S."""

    @staticmethod
    def forward(ctx: Any, moves: Tensor, row_index: Tensor, steps: SoftSteps) -> Tensor:
        states = soft_indexed(moves.contiguous(), row_index, steps)
        ctx.save_for_backward(states, moves, row_index)
        ctx.steps = steps
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        states, moves, row_index = ctx.saved_tensors
        return soft_indexed_backward(grad.contiguous(), moves.contiguous(), row_index, states, ctx.steps), None, None


class _SoftRun(torch.autograd.Function):
    """Logits L r k j B and start distributions r k B -> the distributions after every step, L r j B."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, start: Tensor) -> Tensor:
        moves = logits.softmax(3)
        states, at = logits.new_empty(*logits.shape[:2], *logits.shape[3:]), start
        for move, after in zip(moves.unbind(0), states.unbind(0), strict=True):
            at = torch.sum(move * at[:, :, None], 1, out=after)
        ctx.save_for_backward(moves, states, start)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        moves, states, start = ctx.saved_tensors
        # adjoint[t] is the derivative by the distribution after step t, mean[t] by the one before it through step t
        adjoint, mean = grad.contiguous().clone(), torch.empty_like(states)
        for t in range(len(moves) - 1, -1, -1):
            torch.sum(moves[t] * adjoint[t, :, None], 2, out=mean[t])
            if t:
                adjoint[t - 1] += mean[t]
        before = torch.cat([start[None], states[:-1]])
        logits = (adjoint[:, :, None] - mean[:, :, :, None]).mul_(moves).mul_(before[:, :, :, None])
        return logits, mean[0] if len(mean) else torch.zeros_like(start)

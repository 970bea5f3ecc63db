"""h_t = P_t D_t h_{t-1} + b_t with column one-hot P and diagonal D: a scan with its adjoint, and its definition.

    B  batch     L  length     N  entries of the state

P_t is a table: column k is one at row table[k], so entry k is scaled by d[k] and goes to row table[k], and entries
that meet are summed. A product of two such matrices is another, and a merge costs O(N): gathers and one scatter.
Numbers as in `diagonal`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from exactstate.errors import InvalidInput
from exactstate.ops.affine.chunked_scan import (
    ColumnOneHot,
    ColumnOneHotAdjoint,
    chunked_adjoint,
    chunked_scan,
    conjugate,
    fill_up,
    in_chunks,
    paired_product,
    times,
    unit,
)


def pd_loop(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The definition. table: B L N integers, d, b: B L N, h0: B N -> every h_t: B L N; one more dimension for pairs."""
    _check(table, d, b, h0, pairs)
    h, states = h0, []
    for rows, scale, drive in zip(table.unbind(1), d.unbind(1), b.unbind(1), strict=True):
        scaled = paired_product(scale, h) if pairs else scale * h
        places = rows[..., None].expand_as(scaled) if pairs else rows
        h = torch.zeros_like(scaled).scatter_add(1, places, scaled) + drive
        states.append(h)
    return torch.stack(states, dim=1) if states else b.clone()


def pd_scan(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The same in log depth; the backward pass is one reverse scan. The table itself gets no gradient."""
    _check(table, d, b, h0, pairs)
    if b.numel() == 0:
        return b.clone()
    if not pairs:
        return _PDScan.apply(table, d, b, h0, False)
    return _PDScan.apply(table, *(x.movedim(-1, 0).contiguous() for x in (d, b, h0)), True).movedim(0, -1)


def states(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, *, pairs: bool) -> Tensor:
    """Every state, for arrays with pairs in the first dimension."""
    N = table.shape[-1]
    tables = in_chunks(fill_up(table, torch.arange(N, device=table.device)))
    scales = in_chunks(fill_up(d, unit(d.ndim, d, pairs=pairs)))
    drives = fill_up(b)
    out = torch.empty_like(drives, memory_format=torch.contiguous_format)
    chunked_scan(
        ColumnOneHot(pairs=pairs), list(zip(tables, scales, strict=True)), in_chunks(drives), h0, in_chunks(out)
    )
    return out.narrow(-2, 0, b.shape[-2])


def adjoint_states(table: Tensor, d: Tensor, gains: Tensor, last: Tensor, *, pairs: bool) -> tuple[Tensor, Tensor]:
    """lambda_t = g_t + (P_{t+1} D_{t+1})^H lambda_{t+1}, and lambda before the first step."""
    stay, one = torch.arange(table.shape[-1], device=table.device), unit(d.ndim, d, pairs=pairs)
    tables = in_chunks(fill_up(table, stay))
    scales = in_chunks(conjugate(fill_up(d, one), pairs=pairs))
    gains = fill_up(gains)
    out = torch.empty_like(gains, memory_format=torch.contiguous_format)
    steps, identity = list(zip(tables, scales, strict=True)), (stay, one.squeeze(-1))
    chunked_adjoint(ColumnOneHotAdjoint(pairs=pairs), steps, in_chunks(gains), last, identity, in_chunks(out))
    first = out.select(-2, 0)
    scale = conjugate(d.select(-2, 0), pairs=pairs)
    before = times(scale, first.gather(-1, table.select(-2, 0).expand_as(first)), pairs=pairs)
    return out.narrow(-2, 0, table.shape[-2]), before


class _PDScan(torch.autograd.Function):
    """On arrays of shape (B, L, N), or (2, B, L, N) for pairs."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, d: Tensor, b: Tensor, h0: Tensor, pairs: bool) -> Tensor:
        path = states(table, d, b, h0, pairs=pairs).contiguous()
        ctx.save_for_backward(table, d, path, h0)
        ctx.pairs = pairs
        return path

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, output_grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor, None]:
        (table, d, path, h0), pairs = ctx.saved_tensors, ctx.pairs
        lam, grad_start = adjoint_states(table, d, output_grad, torch.zeros_like(h0), pairs=pairs)
        before = torch.cat([h0.unsqueeze(-2), path.narrow(-2, 0, d.shape[-2] - 1)], dim=-2)
        reached = lam.gather(-1, table.expand_as(lam))
        return None, times(reached, conjugate(before, pairs=pairs), pairs=pairs), lam, grad_start, None


def _check(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, pairs: bool) -> None:
    two = (2,) if pairs else ()
    if table.ndim != 3 or d.shape != table.shape + two or b.shape != d.shape or h0.shape != b.shape[:1] + b.shape[2:]:
        N = ", 2" if pairs else ""
        raise InvalidInput(
            f"the table has shape (B, L, N), d and b (B, L, N{N}) and h0 (B, N{N}); "
            f"got {', '.join(str(tuple(x.shape)) for x in (table, d, b, h0))}."
        )
    if table.dtype != torch.int64:
        raise InvalidInput(f"the table holds int64 rows; got {table.dtype}: call .long() on it.")
    if table.numel() and not 0 <= int(table.min()) <= int(table.max()) < table.shape[-1]:
        raise InvalidInput(
            f"the table sends entries to rows 0..{table.shape[-1] - 1}; got {int(table.min())}..{int(table.max())}."
        )
    if not d.dtype == b.dtype == h0.dtype:
        raise InvalidInput(f"d, b and h0 have one type; got {d.dtype}, {b.dtype} and {h0.dtype}.")
    if pairs and b.is_complex():
        raise InvalidInput(f"pairs are real, (Re, Im) in the last dimension; got {b.dtype}.")

"""h_t = a_t h_{t-1} + b_t, every entry on its own: a scan with its adjoint, and the loop that defines it.

    B  batch     L  length     F  entries

Numbers are real or complex; with `pairs=True` the last dimension of every array holds (Re, Im), which also serves
formats in which torch has no complex numbers, such as float16. Whatever the format, every step is computed in it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from exactstate.errors import InvalidInput
from exactstate.ops.affine.chunked_scan import (
    Diagonal,
    chunked_adjoint,
    chunked_scan,
    conjugate,
    fill_up,
    in_chunks,
    paired_product,
    times,
    unit,
)


def diagonal_loop(a: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The definition. a, b: B L ..., h0: B ... -> every h_t: B L ..."""
    _check(a, b, h0, pairs)
    h, states = h0, []
    for scale, drive in zip(a.unbind(1), b.unbind(1), strict=True):
        h = (paired_product(scale, h) if pairs else scale * h) + drive
        states.append(h)
    return torch.stack(states, dim=1) if states else b.clone()


def diagonal_scan(a: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The same in log depth; the backward pass is one reverse scan."""
    _check(a, b, h0, pairs)
    B, L = b.shape[:2]
    if b.numel() == 0:
        return b.clone()
    if not pairs:
        return _DiagonalScan.apply(a.reshape(B, L, -1), b.reshape(B, L, -1), h0.reshape(B, -1), False).view(b.shape)
    a, b, h0 = (x.movedim(-1, 0).contiguous() for x in (a, b, h0))
    states = _DiagonalScan.apply(a.view(2, B, L, -1), b.view(2, B, L, -1), h0.view(2, B, -1), True)
    return states.view(b.shape).movedim(0, -1)


class _DiagonalScan(torch.autograd.Function):
    """On arrays of shape (B, L, F), or (2, B, L, F) for pairs."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h0: Tensor, pairs: bool) -> Tensor:
        steps = [(part,) for part in in_chunks(fill_up(a, unit(a.ndim, a, pairs=pairs)))]
        drives = fill_up(b)
        states = torch.empty_like(drives, memory_format=torch.contiguous_format)
        chunked_scan(Diagonal(pairs=pairs), steps, in_chunks(drives), h0, in_chunks(states))
        states = states.narrow(-2, 0, b.shape[-2]).contiguous()
        ctx.save_for_backward(a, states, h0)
        ctx.pairs = pairs
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, output_grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (a, states, h0), pairs = ctx.saved_tensors, ctx.pairs
        lam, grad_start = diagonal_adjoint(a, output_grad, pairs=pairs)
        before = torch.cat([h0.unsqueeze(-2), states.narrow(-2, 0, a.shape[-2] - 1)], dim=-2)
        return times(lam, conjugate(before, pairs=pairs), pairs=pairs), lam, grad_start, None


def diagonal_adjoint(a: Tensor, output_grad: Tensor, *, pairs: bool = False) -> tuple[Tensor, Tensor]:
    """lambda_t = g_t + conj(a_{t+1}) lambda_{t+1}, and lambda before the first step; B L F, or 2 B L F for pairs."""
    adjoint = conjugate(fill_up(a, unit(a.ndim, a, pairs=pairs)), pairs=pairs)
    gains, one = fill_up(output_grad), unit(a.ndim - 1, a, pairs=pairs)
    lam = torch.empty_like(gains, memory_format=torch.contiguous_format)
    steps, last = [(part,) for part in in_chunks(adjoint)], torch.zeros_like(output_grad.select(-2, 0))
    chunked_adjoint(Diagonal(pairs=pairs), steps, in_chunks(gains), last, (one,), in_chunks(lam))
    return lam.narrow(-2, 0, a.shape[-2]), times(adjoint.select(-2, 0), lam.select(-2, 0), pairs=pairs)


def _check(a: Tensor, b: Tensor, h0: Tensor, pairs: bool) -> None:
    if b.ndim < 2 or a.shape != b.shape or h0.shape != b.shape[:1] + b.shape[2:]:
        raise InvalidInput(
            "a and b have shape (B, L, ...) and h0 has shape (B, ...); "
            f"got {tuple(a.shape)}, {tuple(b.shape)} and {tuple(h0.shape)}."
        )
    if not a.dtype == b.dtype == h0.dtype:
        raise InvalidInput(f"a, b and h0 have one type; got {a.dtype}, {b.dtype} and {h0.dtype}.")
    if pairs and (b.shape[-1] != 2 or b.is_complex()):
        raise InvalidInput(f"pairs are real, (Re, Im) in a last dimension of 2; got {b.dtype} of {tuple(b.shape)}.")

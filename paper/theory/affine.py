"""Affine recurrences as free functions: the loop that defines one, and the scan in log depth of the baselines.

    B  batch     L  length     F, N  entries of the state

    h_t = a_t h_{t-1} + b_t          every entry on its own (Mamba-, AUSSM)
    h_t = P_t D_t h_{t-1} + b_t      P_t sends entry k to row table[k], and entries that meet are summed (PD-SSM)

Numbers are real or complex; with `pairs=True` the last dimension holds (Re, Im). Every step is computed in the format
of the numbers. There is no gradient: the layers have their own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exactstate.baselines.chunked_scan import (
    ColumnOneHot,
    Diagonal,
    Step,
    chunked_scan,
    fill_up,
    in_chunks,
    paired_product,
)
from exactstate.baselines.pdssm import states


def times(x: Tensor, y: Tensor) -> Tensor:
    """The product of numbers whose first dimension is (Re, Im)."""
    return torch.stack([x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]])


class PairedDiagonal(Diagonal):
    """Steps (a,) of such numbers, in every format of real numbers."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        total = drive + times(step[0], h)
        return total if out is None else out.copy_(total)

    def compose(self, first: Step, then: Step) -> Step:
        return (times(first[0], then[0]),)


class PairedColumnOneHot(ColumnOneHot):
    """Steps (table, d) of such numbers."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        table, d = step
        scaled = times(d, h)
        total = drive.clone() if out is None else out.copy_(drive)
        return total.scatter_add_(-1, table.expand_as(scaled), scaled)

    def compose(self, first: Step, then: Step) -> Step:
        (table, d), (later, scale) = first, then
        return later.gather(-1, table), times(d, scale.gather(-1, table.expand_as(scale)))


def unit(x: Tensor, pairs: bool) -> Tensor:
    """One, in a shape that broadcasts."""
    one = x.new_ones((1,) * x.ndim)
    return torch.cat([one, torch.zeros_like(one)]) if pairs else one


def diagonal_loop(a: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """a, b: B L F, h0: B F -> every h_t: B L F; one more dimension for pairs."""
    h, path = h0, []
    for scale, drive in zip(a.unbind(1), b.unbind(1), strict=True):
        h = (paired_product(scale, h) if pairs else scale * h) + drive
        path.append(h)
    return torch.stack(path, dim=1)


def diagonal_scan(a: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The same in log depth."""
    shape = b.shape
    a, b, h0 = (_pairs_first(x, pairs) for x in (a, b, h0))
    a, b, h0 = a.flatten(2 + pairs), b.flatten(2 + pairs), h0.flatten(1 + pairs)
    drives = fill_up(b)
    out = torch.empty_like(drives, memory_format=torch.contiguous_format)
    steps = [(part,) for part in in_chunks(fill_up(a, unit(a, pairs)))]
    chunked_scan(PairedDiagonal() if pairs else Diagonal(), steps, in_chunks(drives), h0, in_chunks(out))
    path = out.narrow(-2, 0, b.shape[-2])
    return (path.movedim(0, -1) if pairs else path).reshape(shape)


def pd_loop(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """table: B L N integers, d, b: B L N, h0: B N -> every h_t: B L N; one more dimension for pairs."""
    h, path = h0, []
    for rows, scale, drive in zip(table.unbind(1), d.unbind(1), b.unbind(1), strict=True):
        scaled = paired_product(scale, h) if pairs else scale * h
        places = rows[..., None].expand_as(scaled) if pairs else rows
        h = torch.zeros_like(scaled).scatter_add(1, places, scaled) + drive
        path.append(h)
    return torch.stack(path, dim=1)


def pd_scan(table: Tensor, d: Tensor, b: Tensor, h0: Tensor, *, pairs: bool = False) -> Tensor:
    """The same in log depth."""
    if not pairs:
        return states(table, d, b, h0)
    d, b, h0 = (_pairs_first(x, pairs) for x in (d, b, h0))
    tables, drives = in_chunks(fill_up(table, torch.arange(table.shape[-1]))), fill_up(b)
    out = torch.empty_like(drives, memory_format=torch.contiguous_format)
    steps = list(zip(tables, in_chunks(fill_up(d, unit(d, pairs))), strict=True))
    chunked_scan(PairedColumnOneHot(), steps, in_chunks(drives), h0, in_chunks(out))
    return out.narrow(-2, 0, b.shape[-2]).movedim(0, -1)


def _pairs_first(x: Tensor, pairs: bool) -> Tensor:
    return x.movedim(-1, 0).contiguous() if pairs else x

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

from exactstate.baselines.chunked_scan import Diagonal, chunked_scan, fill_up, in_chunks, paired_product, unit
from exactstate.baselines.pdssm import states


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
    steps = [(part,) for part in in_chunks(fill_up(a, unit(a.ndim, a, pairs=pairs)))]
    chunked_scan(Diagonal(pairs=pairs), steps, in_chunks(drives), h0, in_chunks(out))
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
    path = states(table, *(_pairs_first(x, pairs) for x in (d, b, h0)), pairs=pairs)
    return path.movedim(0, -1) if pairs else path


def _pairs_first(x: Tensor, pairs: bool) -> Tensor:
    return x.movedim(-1, 0).contiguous() if pairs else x

"""One block of the PD-SSM: h_t = P_t D_t h_{t-1} + b_t, every state given out.

    N  entries of the state     n  matrices of the dictionary     R, T  rows and steps of the block

Streams: the mixture (n), the rows that `hardmax` chose for it (N), the diagonal of D and the drive b (N pairs each, so
2 N wide), and 1 at steps that are taken (1). Shared: the dictionary, N N n as in `hardmax`. A step that is not taken
has the identity for P.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from detent.ops.affine import hardmax
from detent.ops.affine.pd import states, worths
from detent.ops.affine.scan import conjugate, times
from detent.ops.affine.workspace import Room

WITHOUT_COMPLEX = (torch.float16, torch.bfloat16)
"""Formats in which torch has no complex numbers, or no arithmetic on them."""


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1], 2 * start.shape[1]


def forward(streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, room: Room) -> tuple[Tensor, Tensor]:
    _, rows, d, b, taken = streams
    table = _table(rows, taken)
    pairs = d.dtype in WITHOUT_COMPLEX
    path = states(table, _numbers(d), _numbers(b), _numbers(start.flatten(1)), pairs=pairs)
    out = _flat(path, pairs)
    return out, out[:, -1].unflatten(-1, (-1, 2))


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, gain: Tensor, last: Tensor, room: Room
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    mixture, rows, d, b, taken = streams
    pairs = d.dtype in WITHOUT_COMPLEX
    scale, begin = _numbers(d), _numbers(start.flatten(1))
    table = _table(rows, taken)
    path = states(table, scale, _numbers(b), begin, pairs=pairs)
    worth, of_start = worths(table, scale, _numbers(gain), _numbers(last.flatten(1)), pairs=pairs)
    before = torch.cat([begin.unsqueeze(-2), path.narrow(-2, 0, path.shape[-2] - 1)], dim=-2)
    reached = worth.gather(-1, table.expand_as(worth))
    of_d = times(reached, conjugate(before, pairs=pairs), pairs=pairs)
    moved = times(scale, before, pairs=pairs) * taken.squeeze(-1).unsqueeze(-1)
    of_mixture, of_dictionary = hardmax.pull_back(
        mixture.flatten(0, 1), shared[0], _parts(moved, pairs), _parts(worth, pairs), room
    )
    of_rows, of_taken = torch.zeros_like(rows), torch.zeros_like(taken)
    grown = [of_mixture.view_as(mixture), of_rows, _flat(of_d, pairs), _flat(worth, pairs), of_taken]
    return grown, [of_dictionary], _flat(of_start, pairs).unflatten(-1, (-1, 2))


def _table(rows: Tensor, taken: Tensor) -> Tensor:
    """R T N, integers."""
    return torch.where(taken > 0, rows.long(), torch.arange(rows.shape[-1], device=rows.device))


def _numbers(x: Tensor) -> Tensor:
    """... 2N -> ... N complex, or 2 ... N where torch has no complex numbers of this format."""
    paired = x.unflatten(-1, (-1, 2))
    if x.dtype in WITHOUT_COMPLEX:
        return paired.movedim(-1, 0).contiguous()
    return torch.view_as_complex(paired.contiguous())


def _flat(x: Tensor, pairs: bool) -> Tensor:
    """The way back: ... 2N."""
    return (x.movedim(0, -1) if pairs else torch.view_as_real(x.resolve_conj())).flatten(-2)


def _parts(x: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    """(Re, Im), one row per step."""
    re, im = (x[0], x[1]) if pairs else (x.real, x.imag)
    return re.flatten(0, 1).contiguous(), im.flatten(0, 1).contiguous()

"""A block's streams with time cut into chunks and rows innermost, where vector units want them.

    R, T  rows and steps of the block     K  steps of a chunk     C  chunks     f  width

The step t = c K + k of every row lies at [k, :, c], so step k of all chunks is one dense array.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

from detent.scan.affine.sweep import STEPS


def lanes(x: Tensor) -> Tensor:
    """R T f -> K f C R; zeros follow the last step."""
    R, T, f = x.shape
    K = min(T, STEPS)
    C = -(-T // K)
    filled = pad(x, (0, 0, 0, C * K - T)) if C * K > T else x
    return filled.reshape(R, C, K, f).permute(2, 3, 1, 0).contiguous()


def rows(x: Tensor, T: int) -> Tensor:
    """K f C R -> R T f."""
    K, f, C, R = x.shape
    return x.permute(3, 2, 0, 1).reshape(R, C * K, f)[:, :T]


def shift(h: Tensor, start: Tensor, out: Tensor) -> Tensor:
    """The state before every step, from those after: K ... C R and ... R -> K ... C R."""
    out[1:] = h[:-1]
    out[0, ..., 1:, :] = h[-1, ..., :-1, :]
    out[0, ..., 0, :] = start
    return out

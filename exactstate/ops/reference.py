"""The backend `reference`: loops over time that define the results. Every other backend is compared with it.

B  batch     L  length     r  heads     S  the sum of their indices
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.ops.tables import composed, offsets, owners


def prefix(tables: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t."""
    composites = torch.empty_like(tables)
    for t in range(tables.shape[1]):
        composites[:, t] = tables[:, t] if t == 0 else composed(composites[:, t - 1], tables[:, t], heads)
    return composites


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    B, L, _ = tables.shape
    states = torch.empty(B, L, len(heads), dtype=tables.dtype, device=tables.device)
    offset = torch.tensor(offsets(tuple(heads)), device=tables.device)
    state = initial_state.long()
    for t in range(L):
        states[:, t] = tables[:, t].gather(-1, state + offset)
        state = states[:, t].long()
    return states


def adjoint(tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The derivative of the loss by being at index k: lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)).

    gains: B L S, last: B S (lambda after the end) -> lambda: B L S, and lambda before the first step: B S.
    """
    owner = owners(heads, tables.device)
    lam = torch.empty_like(gains)
    ahead = last
    for t in reversed(range(tables.shape[1])):
        lam[:, t] = gains[:, t] + ahead
        ahead = lam[:, t].gather(-1, tables[:, t].long() + owner)
    return lam, ahead

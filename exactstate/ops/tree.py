"""The backend `tree`: scans of log depth in plain torch, on any device.

Composition is associative and exact, so the shape of the tree does not matter: prefix composites by recursive
doubling (Hillis and Steele 1986), in which step t of round i is composed with step t - 2^i.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.ops.tables import offsets, owners


def prefix(tables: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t."""
    owner = owners(heads, tables.device)
    composites, stride = tables.long() + owner, 1
    while stride < tables.shape[1]:
        later = composites[:, stride:].gather(-1, composites[:, :-stride])
        composites = torch.cat([composites[:, :stride], later], dim=1)
        stride *= 2
    return (composites - owner).to(tables.dtype)


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    B, L, _ = tables.shape
    places = initial_state.long() + torch.tensor(offsets(tuple(heads)), device=tables.device)
    return prefix(tables, heads).gather(-1, places[:, None].expand(B, L, len(heads)))


def adjoint(tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)); see `reference.adjoint`.

    A reverse scan over pairs (table, lambda): in round i, lambda of t gains that of t + 2^i, looked up through
    the composite of the tables between them. Sums are taken in another order than the loop's.
    """
    owner = owners(heads, tables.device)
    L = tables.shape[1]
    if L == 0:
        return torch.empty_like(gains), last
    moves = tables.long() + owner
    lam = torch.cat([gains[:, :-1], (gains[:, -1] + last)[:, None]], dim=1)
    # hops[:, t] leads from step t to step t + stride; at first that is the table of step t + 1
    hops, stride = moves[:, 1:], 1
    while stride < L:
        gained = lam[:, stride:].gather(-1, hops)
        lam = torch.cat([lam[:, :-stride] + gained, lam[:, -stride:]], dim=1)
        hops = hops[:, stride:].gather(-1, hops[:, :-stride]) if 2 * stride < L else hops[:, :0]
        stride *= 2
    return lam, lam[:, 0].gather(-1, moves[:, 0])

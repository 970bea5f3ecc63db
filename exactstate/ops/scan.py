"""Scans over transition tables: composites, states, and the adjoint, by any backend.

B  batch     L  length     r  heads     S  the sum of their indices
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops import interface
from exactstate.ops.tables import check_heads, check_states, check_tables, check_tensor


def prefix(tables: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t. Without `heads`, one head of S indices."""
    heads = _checked_heads(tables, heads)
    return interface.scan(backend).prefix(tables, heads)


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    heads = _checked_heads(tables, heads)
    check_tensor("initial_state", initial_state)
    check_states(initial_state, heads, tables.shape[0])
    return interface.scan(backend).run(tables, initial_state, heads)


def adjoint(
    tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto"
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)), with lambda = `last` after the end.

    gains: B L S, last: B S -> lambda: B L S, and lambda before the first step: B S.
    """
    heads = _checked_heads(tables, heads)
    check_tensor("gains", gains)
    check_tensor("last", last)
    if gains.dtype not in (torch.float32, torch.float64):
        raise InvalidInput(f"gains are float32 or float64; got {gains.dtype}: convert them first.")
    if gains.shape != tables.shape:
        raise InvalidInput(
            f"gains have the shape of the tables, {tuple(tables.shape)}; got {tuple(gains.shape)}."
        )  # fmt: skip
    shape = (tables.shape[0], tables.shape[2])
    if last.dtype != gains.dtype or last.shape != shape:
        raise InvalidInput(
            f"last is {gains.dtype} of shape {shape}, as the gains are; got {last.dtype} of shape {tuple(last.shape)}."
        )
    return interface.scan(backend).adjoint(tables, gains, last, heads)


def _checked_heads(tables: Tensor, heads: Sequence[int] | None) -> Sequence[int]:
    check_tensor("tables", tables)
    heads = tables.shape[-1:] if heads is None else check_heads(heads)
    check_tables(tables, heads)
    return heads

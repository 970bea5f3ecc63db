"""Scans over transition tables: composites, states, and the adjoint, by any backend.

B  batch     L  length     r  heads     S  the sum of their indices
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from detent.ops import interface
from detent.ops.tables import check_states, check_tables


def prefix(tables: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t. Without `heads`, one head of S indices."""
    heads = _checked_heads(tables, heads)
    return interface.scan(backend).prefix(tables, heads)


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    heads = _checked_heads(tables, heads)
    check_states(initial_state, heads, tables.shape[0])
    return interface.scan(backend).run(tables, initial_state, heads)


def adjoint(
    tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto"
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)), with lambda = `last` after the end.

    gains: B L S, last: B S -> lambda: B L S, and lambda before the first step: B S.
    """
    heads = _checked_heads(tables, heads)
    return interface.scan(backend).adjoint(tables, gains, last, heads)


def _checked_heads(tables: Tensor, heads: Sequence[int] | None) -> Sequence[int]:
    heads = (tables.shape[-1],) if heads is None else heads
    check_tables(tables, heads)
    return heads

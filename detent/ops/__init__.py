"""Tables, how many of them compose, and the sampled pass with its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from detent.ops import interface as backends
from detent.ops.interface import available as available
from detent.ops.interface import resolve as resolve
from detent.ops.tables import check_states, check_tables
from detent.ops.tables import compose as compose
from detent.ops.tables import identity as identity


def prefix(tables: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t. One head of S indices unless `heads` says more."""
    heads = _heads(tables, heads)
    check_tables(tables, heads)
    return backends.scan(backend).prefix(tables, heads)


def run(tables: Tensor, start: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto") -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    heads = _heads(tables, heads)
    check_tables(tables, heads)
    check_states(start, heads, tables.shape[0])
    return backends.scan(backend).run(tables, start, heads)


def adjoint(
    tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int] | None = None, *, backend: str = "auto"
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)), with lambda = `last` after the end.

    gains: B L S, last: B S -> lambda: B L S, and lambda before the first step: B S.
    """
    heads = _heads(tables, heads)
    check_tables(tables, heads)
    return backends.scan(backend).adjoint(tables, gains, last, heads)


def _heads(tables: Tensor, heads: Sequence[int] | None) -> Sequence[int]:
    return (tables.shape[-1],) if heads is None else heads

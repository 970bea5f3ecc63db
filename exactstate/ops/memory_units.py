"""Memory units on their attractors: every step pushes a unit one level up, one level down, or not at all.

    B  batch     L  length     d  units     n  levels of a unit

A push of p in {-1, 0, 1} is the table k -> k + p, clipped to 0 .. n - 1. With two levels these are "set low", "keep"
and "set high": the flip-flop. States come from the scan over tables, so they are exact. The backward pass is the
adjoint of the recurrence that the tables came from, with v the value of a level:

    two levels       v <- z s + (1 - z) v         set where z = 1; v is -1 or 1
    n = 2 k + 1      v <- clip(v + z s, -k, k)    moved where z = 1; v is -k .. k

z and s are {0, 1} and {-1, 1}, and get the gradients that these equations give them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.affine.diagonal import diagonal_adjoint
from exactstate.ops.interface import scan
from exactstate.ops.tables import cell_dtype


def level_dtype(n: int) -> torch.dtype:
    """The type in which levels are kept."""
    return cell_dtype((n,))


def values(levels: Tensor, n: int, dtype: torch.dtype) -> Tensor:
    """The values of levels: -1 and 1, or -k .. k."""
    return (2 * levels.to(dtype) - 1) if n == 2 else levels.to(dtype) - n // 2


def levels_of(values: Tensor, n: int) -> Tensor:
    """The inverse of `values`."""
    return ((values.detach() + 1) / 2 if n == 2 else values.detach() + n // 2).round().long()


def push_tables(push: Tensor, n: int) -> Tensor:
    """... d -> ... d n: the tables of pushes in {-1, 0, 1}."""
    each = torch.arange(n, device=push.device) + torch.arange(-1, 2, device=push.device)[:, None]
    return each.clamp(0, n - 1).to(level_dtype(n))[push.long() + 1]


def _memory_scan(
    z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int, backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(values, levels) after every step, B L d each; a step with `resets` (B L) starts at `initial_level`."""
    _check_memory_scan(z, s, start, resets, n, initial_level)
    B, L, d = z.shape
    tables = push_tables(z * s, n)
    if resets is not None:
        tables = torch.where(resets[..., None, None], tables[..., initial_level, None], tables)
    levels = scan(backend).run(tables.view(B, L, d * n), levels_of(start, n), (n,) * d)
    return values(levels, n, z.dtype), levels


def _check_memory_scan(z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int) -> None:
    """Refuse what would lead outside the tables."""
    if z.ndim != 3 or s.shape != z.shape or start.shape != (z.shape[0], z.shape[2]):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (z, s, start))
        raise InvalidInput(f"memory_scan takes z and s of shape B L d and start of shape B d; got {shapes}.")
    if resets is not None and (resets.dtype != torch.bool or resets.shape != z.shape[:2]):
        raise InvalidInput(f"memory_scan takes resets of shape {tuple(z.shape[:2])}, booleans; got {resets.dtype}.")
    if n < 2 or not 0 <= initial_level < n:
        raise InvalidInput(f"memory_scan takes two or more levels, and one of them; got {n} and {initial_level}.")
    if z.numel() and bool(((z * s).abs() > 1).any()):
        raise InvalidInput("memory_scan takes pushes z * s of -1, 0 or 1.")
    if start.numel() and not bool(((levels := levels_of(start, n)) >= 0).all() and (levels < n).all()):
        raise InvalidInput(f"memory_scan takes start values that are levels of {n}.")


memory_scan = torch.library.custom_op("exactstate::memory_scan", _memory_scan, mutates_args=())


@memory_scan.register_fake
def _(
    z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, n: int, initial_level: int, backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(z, memory_format=torch.contiguous_format), z.new_empty(z.shape, dtype=level_dtype(n))


def _memory_scan_backward(
    output_grad: Tensor, z: Tensor, s: Tensor, start: Tensor, resets: Tensor | None, levels: Tensor, n: int,
    initial_level: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of z, s and the start."""
    if output_grad.numel() == 0:
        return torch.zeros_like(output_grad), torch.zeros_like(output_grad), torch.zeros_like(start)
    path = values(levels, n, z.dtype)
    before = torch.cat([start[:, None], path[:, :-1]], dim=1)
    if resets is not None:
        before = torch.where(resets[..., None], values(torch.tensor(initial_level), n, z.dtype), before)
    # at a barrier nothing moves, and no gradient passes
    free = torch.ones_like(z) if n == 2 else (path == before + z * s).to(z.dtype)
    through = 1 - z if n == 2 else free
    if resets is not None:
        through = torch.where(resets[..., None], 0, through)
    lam, grad_start = diagonal_adjoint(through, output_grad)
    return lam * ((s - before) if n == 2 else s * free), lam * z * free, grad_start


memory_scan_backward = torch.library.custom_op(
    "exactstate::memory_scan_backward", _memory_scan_backward, mutates_args=()
)


@memory_scan_backward.register_fake
def _(output_grad: Tensor, z: Tensor, s: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return z.new_empty(z.shape), s.new_empty(s.shape), start.new_empty(start.shape)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    z, s, start, resets, ctx.n, ctx.initial_level, _ = inputs
    ctx.save_for_backward(z, s, start, resets, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, output_grad: Tensor, _levels: Tensor) -> tuple[Any, ...]:
    z, s, start, resets, levels = ctx.saved_tensors
    grad_z, grad_s, grad_start = memory_scan_backward(
        output_grad.contiguous(), z, s, start, resets, levels, ctx.n, ctx.initial_level
    )
    return grad_z, grad_s, grad_start, None, None, None, None


memory_scan.register_autograd(_backward, setup_context=_setup_context)

"""Value vectors, projected: what each index of each head adds to the output of a layer.

r  heads     S  their indices     v  width of a value vector     m  width of the output

`detent::fold` and its adjoint are operators of their own, so that a training step on the compiled backend wakes no
threads but its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from detent.scan.backends import stages
from detent.scan.eager import plainly, traced


def _fold(values: Tensor, projection: Tensor, heads: Sequence[int], backend: str) -> Tensor:
    """S v, m (r v) -> S m: the value vector of every index, projected."""
    return stages(backend).fold(values.contiguous(), projection.contiguous(), heads).contiguous()


def _unfold(
    gradient: Tensor, values: Tensor, projection: Tensor, heads: Sequence[int], backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return stages(backend).unfold(gradient.contiguous(), values.contiguous(), projection.contiguous(), heads)


fold = torch.library.custom_op("detent::fold", _fold, mutates_args=())
unfold = torch.library.custom_op("detent::unfold", _unfold, mutates_args=())
fold.register_fake(lambda values, projection, heads, backend: values.new_empty(len(values), len(projection)))
unfold.register_fake(
    lambda gradient, values, projection, heads, backend: (torch.empty_like(values), torch.empty_like(projection))
)


def _keep(ctx: Any, inputs: Any, output: Tensor) -> None:
    values, projection, *ctx.settings = inputs
    ctx.save_for_backward(values, projection)


def _pull_back(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    return *unfold(gradient, *ctx.saved_tensors, *ctx.settings), None, None


fold.register_autograd(_pull_back, setup_context=_keep)


_unfolded = plainly(_unfold)
_folded = plainly(
    _fold, _keep, lambda ctx, gradient: (*_unfolded(gradient, *ctx.saved_tensors, *ctx.settings), None, None)
)


def folded(values: Tensor, projection: Tensor, heads: Sequence[int], backend: str) -> Tensor:
    """`fold`, by the shorter way when nobody traces."""
    return (fold if traced() else _folded)(values, projection, heads, backend)

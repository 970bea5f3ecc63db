"""An affine map of rows whose sums are taken in one order, so that a row's bits do not depend on the rows beside it.

That holds for the backends `reference` and `cpu`. On `tree`, and in half precision everywhere, the sums are those of a
matrix product, and their last bit is the library's business.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from detent.ops.interface import stages
from detent.ops.torch_kernels import blas_logits


@torch.library.custom_op("detent::ordered_linear", mutates_args=())
def ordered_linear(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    """S m, E m, E -> S E."""
    full = weight.dtype in (torch.float32, torch.float64)
    logits = stages(backend).logits if full else blas_logits
    return logits(rows.contiguous(), weight.contiguous(), bias.contiguous()).contiguous()


@ordered_linear.register_fake
def _(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    return rows.new_empty(len(rows), len(weight))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])


def _backward(ctx: Any, gain: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
    rows, weight = ctx.saved_tensors
    of_rows, of_weight, of_bias, _ = ctx.needs_input_grad
    return (
        gain @ weight if of_rows else None,
        gain.T @ rows if of_weight else None,
        gain.sum(0) if of_bias else None,
        None,
    )


ordered_linear.register_autograd(_backward, setup_context=_keep)

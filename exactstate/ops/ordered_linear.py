"""An affine map whose sums are taken in one order, as a PyTorch operator with a gradient.

    N  rows     m  width     E  outputs

The definition of a logit: bias + x[0] w[0] + x[1] w[1] + ..., summed in that order, so that a row's bits do not depend
on the rows beside it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.eager import autograd_function, is_exported_to_onnx, is_traced, one_by_one
from exactstate.ops.interface import kernels
from exactstate.ops.plain import plain_linear
from exactstate.ops.torch_kernels import blas_logits


def _linear(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    if (
        rows.ndim != 2 or weight.ndim != 2 or rows.shape[1] != weight.shape[1] or bias.shape != weight.shape[:1]
        or not weight.is_floating_point() or not rows.dtype == weight.dtype == bias.dtype
    ):  # fmt: skip
        got = ", ".join(f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in (rows, weight, bias))
        raise InvalidInput(f"rows, weight and bias are floating point of one type and shapes N m, E m, E; got {got}.")
    full = weight.dtype in (torch.float32, torch.float64)
    logits = kernels(backend).logits if full else blas_logits
    return logits(rows.contiguous(), weight.contiguous(), bias.contiguous()).contiguous()


def _linear_fake(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    return rows.new_empty(rows.shape[0], weight.shape[0])


def _linear_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])


def _linear_backward(ctx: Any, output_grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
    rows, weight = ctx.saved_tensors
    grad_rows, of_weight, of_bias, _ = ctx.needs_input_grad
    return (
        output_grad @ weight if grad_rows else None,
        output_grad.T @ rows if of_weight else None,
        output_grad.sum(0) if of_bias else None,
        None,
    )


_op = torch.library.custom_op("exactstate::ordered_linear", _linear, mutates_args=())
_op.register_fake(_linear_fake)
_op.register_vmap(one_by_one(_op))
_op.register_autograd(_linear_backward, setup_context=_linear_setup)
_eager = autograd_function(_linear, _linear_setup, _linear_backward)


def ordered_linear(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    """rows @ weight.T + bias (N m, E m, E -> N E), summed in one order on the backends `reference` and `cpu`.

    There a row's bits do not depend on the rows beside it. On `tree`, and in half precision everywhere, the sums are
    those of a matrix product.
    """
    if is_exported_to_onnx():
        return plain_linear(rows, weight, bias, backend)
    product: Tensor = (_op if is_traced(rows) else _eager)(rows, weight, bias, backend)
    return product

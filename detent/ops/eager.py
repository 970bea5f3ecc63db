"""Autograd functions for calls that nothing records: cheaper than an operator, with the same result.

An operator of `torch.library` is what compilers, exporters and dispatch modes see. Calling one in eager mode takes
longer, and the first call loads torch's compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def autograd_function(
    function: Callable[..., Any], setup: Callable[..., None] | None = None, backward: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function with a gradient; `setup` and `backward` as for `torch.library.register_autograd`."""

    class Function(torch.autograd.Function):
        # PyTorch inspects the signature of `forward` in every call: a short one is faster
        forward = staticmethod(lambda *arguments: function(*arguments))
        setup_context = staticmethod(setup or (lambda ctx, inputs, output: None))

    if backward is not None:
        Function.backward = staticmethod(backward)  # type: ignore[method-assign]
    return Function.apply


def is_traced() -> bool:
    """Whether calls are recorded: by torch.compile, torch.export or a dispatch mode."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def backward_from(tensors: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
    """`torch.autograd.backward(tensors, gradients)`, which would load sympy to compare their shapes."""
    _Gradients.apply(gradients, *tensors).backward()


class _Gradients(torch.autograd.Function):
    """A scalar whose gradients are given."""

    @staticmethod
    def forward(ctx: Any, gradients: Sequence[Tensor], *tensors: Tensor) -> Tensor:
        ctx.gradients = gradients
        return tensors[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, one: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients

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

    class Transformed(torch.autograd.Function):
        """The form that the transforms of torch.func ask for; PyTorch inspects its signature in every call."""

        forward = staticmethod(lambda *arguments: function(*arguments))
        setup_context = staticmethod(setup or (lambda ctx, inputs, output: None))

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = function(*arguments)
            if setup is not None:
                setup(ctx, arguments, output)
            return output

    if backward is not None:
        Function.backward = Transformed.backward = staticmethod(backward)  # type: ignore[method-assign]

    def apply(*arguments: Any) -> Any:
        chosen = Transformed if torch._C._are_functorch_transforms_active() else Function
        return chosen.apply(*arguments)

    return apply


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

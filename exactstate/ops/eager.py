"""Autograd functions for calls that nothing records: cheaper than an operator, with the same result.

An operator of `torch.library` is what compilers, exporters, tracers and dispatch modes see. Calling one in eager mode
takes longer, and the first call loads torch's compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from exactstate.errors import InvalidInput


def autograd_function(
    function: Callable[..., Any], setup: Callable[..., None] | None = None, backward: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function with a gradient; `setup` and `backward` as for `torch.library.register_autograd`."""

    class Transformed(torch.autograd.Function):
        """The form that the transforms of torch.func ask for; PyTorch inspects its signature in every call."""

        forward = staticmethod(lambda *arguments: function(*arguments))
        setup_context = staticmethod(setup or (lambda ctx, inputs, output: None))
        backward = staticmethod(refuse_derivative)
        jvp = staticmethod(_refuse_jvp)
        vmap = staticmethod(lambda *arguments: one_by_one(apply)(*arguments))

    class Function(torch.autograd.Function):
        backward = staticmethod(refuse_derivative)
        jvp = staticmethod(_refuse_jvp)

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = function(*arguments)
            if setup is not None:
                setup(ctx, arguments, output)
            return output

    if backward is not None:
        Function.backward = Transformed.backward = staticmethod(backward)

    def apply(*arguments: Any) -> Any:
        chosen = Transformed if torch._C._are_functorch_transforms_active() else Function
        return chosen.apply(*arguments)

    return apply


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """The batching rule of `torch.func.vmap` for a function: its calls one by one, stacked."""

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        calls = [
            function(*(
                part.select(dim, i).contiguous() if isinstance(dim, int) else part
                for part, dim in zip(arguments, in_dims, strict=True)
            ))
            for i in range(info.batch_size)
        ]  # fmt: skip
        if isinstance(calls[0], Tensor):
            return torch.stack(calls), 0
        return tuple(map(torch.stack, zip(*calls, strict=True))), (0,) * len(calls[0])

    return rule


def refuse_derivative(ctx: Any, *gradients: Any) -> Any:
    """The backward pass of a backward pass, or of a call without a gradient."""
    raise InvalidInput(
        "the straight-through gradient of this layer has no derivative of its own: leave out create_graph=True, "
        "torch.func.hessian and gradient penalties on the layer's inputs; and export in training mode what is trained."
    )


def _refuse_jvp(ctx: Any, *tangents: Any) -> Any:
    raise InvalidInput(
        "the straight-through gradient of this layer is defined in reverse mode only: use torch.func.vjp, grad or "
        "jacrev instead of jvp, jacfwd and forward_ad."
    )


def is_traced(tensor: Tensor | None = None) -> bool:
    """Whether calls are recorded, by torch.compile, torch.export, torch.jit.trace or a dispatch mode; or whether this
    tensor is one that has no numbers (meta, fake) or dispatches by itself."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0 or torch.jit.is_tracing():
        return True
    if tensor is None or (type(tensor) is Tensor and tensor.is_cpu):
        return False
    return tensor.is_meta or torch._C._dispatch_keys(tensor).has(torch._C.DispatchKey.Python)


def is_fake(tensor: Tensor) -> bool:
    """Whether it is a FakeTensor, which has a shape and no numbers."""
    fake = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and isinstance(tensor, fake.FakeTensor)


def is_counted() -> bool:
    """Whether a dispatch mode looks at calls outside of a compiler: it may count floating-point operations."""
    return not torch.compiler.is_compiling() and torch._C._len_torch_dispatch_stack() > 0


def is_transformed() -> bool:
    """Whether torch.func or forward-mode differentiation looks at calls."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_exported() -> bool:
    """Whether torch.export, torch.onnx or torch.jit.trace records a program that outlives this call."""
    return torch.jit.is_tracing() or torch.compiler.is_exporting()


def is_exported_to_onnx() -> bool:
    """Whether torch.onnx.export records the call; raises where it records what it cannot translate."""
    if not is_exported() or not torch.onnx.is_in_onnx_export():
        return False
    if torch.jit.is_tracing():
        raise InvalidInput("torch.onnx.export(dynamo=False) cannot record this layer: pass dynamo=True.")
    return True


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Full precision where autocast is on; where it is off, nothing that a graph would have to record."""
    kind = device.type
    on = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


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

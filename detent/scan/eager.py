"""Two ways to call the same function: an operator for whoever traces, a plain autograd function otherwise.

Operators (`torch.library.custom_op`) are what compile, export and fake tensors want to see. Called eagerly they cost
several times as much as an autograd function does, and torch.func.grad cannot see through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Call = Callable[..., Any]


def traced() -> bool:
    """Whether calls are being recorded rather than only made."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def plainly(function: Call, keep: Call | None = None, backward: Call | None = None) -> Call:
    """`function` as an autograd function: `keep(ctx, inputs, output)`, then `backward(ctx, *gradients)`.

    Without them there is no derivative to be had.
    """

    class Plain(torch.autograd.Function):
        # PyTorch takes the signature of `forward` apart in every call: a short one is quicker
        forward = staticmethod(lambda *arguments: function(*arguments))
        setup_context = staticmethod(keep or (lambda ctx, inputs, output: None))

    if backward is not None:
        Plain.backward = staticmethod(backward)  # type: ignore[method-assign]
    return Plain.apply

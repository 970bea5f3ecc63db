"""Adam and AdamW of torch, without loading torch's compiler.

torch wraps methods of its optimizers so that `torch.compile` leaves them alone, and the wrappers import the
compiler on the first call: a quarter of what `exactstate train S3` takes. Here the methods inside the wrappers are
called. Steps have the same bits; nothing changes for code that compiles, because no optimizer of this package is
compiled.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import Optimizer

_add_param_group = inspect.unwrap(Optimizer.add_param_group)
_zero_grad = inspect.unwrap(Optimizer.zero_grad)
_state_dict = inspect.unwrap(Optimizer.state_dict)
_load_state_dict = inspect.unwrap(Optimizer.load_state_dict)
_step = inspect.unwrap(torch.optim.Adam.step)


class _WithoutCompiler(Optimizer):
    """The methods of an Adam that torch wraps."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _add_param_group(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        _zero_grad(self, set_to_none)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = _state_dict(self)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        _load_state_dict(self, state_dict)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        return _step(self, closure)


class Adam(_WithoutCompiler, torch.optim.Adam):
    """`torch.optim.Adam`."""


class AdamW(_WithoutCompiler, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

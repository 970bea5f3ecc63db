"""Register the PyTorch operators as soon as both detent and torch are imported, in either order.

A graph that was saved with `torch.export` names operators such as `detent::nfsm_eval`. A program that loads it imports
detent, and need not know which module defines them. Who does not import torch does not wait for it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def register_with_torch() -> None:
    """Register the operators now if torch is loaded, else when it is."""
    if sys.modules.get("torch") is not None:
        _register()
    else:
        sys.meta_path.insert(0, _AfterTorch())


def _register() -> None:
    import detent.ops.memory_units
    import detent.ops.nfsm_op
    import detent.ops.ordered_linear  # noqa: F401


class _AfterTorch:
    """Finds torch as always, and registers the operators once it is executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

"""Register the PyTorch operators as soon as both exactstate and torch are imported, in either order.

A graph that was saved with `torch.export` names operators such as `exactstate::nfsm_eval`. A program that loads it
imports exactstate, and need not know which module defines them. Who does not import torch does not wait for it.
Where a module of exactstate is the first to import torch, the operators are registered once that module is whole:
those that define them may need it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def register_with_torch() -> None:
    """Register the operators now if torch is loaded, else when it is."""
    if sys.modules.get("torch") is not None:
        _register()
    else:
        sys.meta_path.insert(0, _AfterTorch())


def _register() -> None:
    import exactstate.ops.memory_units
    import exactstate.ops.nfsm_op
    import exactstate.ops.ordered_linear  # noqa: F401


class _AfterTorch:
    """Finds modules as always; registers the operators when torch is loaded and none of ours is half so."""

    def __init__(self) -> None:
        self.depth, self.torch_is_loaded = 0, False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("exactstate."):
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = self._counted(spec.loader.exec_module)  # type: ignore
        return spec

    def _counted(self, execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def exec_module(module: ModuleType) -> None:
            is_torch = module.__name__ == "torch"
            self.depth += not is_torch
            try:
                execute(module)
            finally:
                self.depth -= not is_torch
            self.torch_is_loaded |= is_torch
            if self.torch_is_loaded and not self.depth and self in sys.meta_path:
                sys.meta_path.remove(self)
                _register()

        return exec_module

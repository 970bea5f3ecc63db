"""Packages that import what they export when it is first used, and packages that can be called.

    if TYPE_CHECKING:                       # for type checkers
        from exactstate.nn.nfsm import NFSM as NFSM

    __all__ = lazy(__name__, {"nfsm": ["NFSM"]})

Then `import exactstate.nn` loads nothing, and `exactstate.nn.NFSM` loads the one module that defines it. An export wins
over a submodule of the same name: `exactstate.automata.isomorphism` is the function, whatever was imported before.

With `call=True` the package can be called as the function of its own name: `exactstate.extract(model)` is
`exactstate.extract.extract(model)`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package whose exports and named subpackages are imported on first use."""

    _exports: dict[str, str]
    """export -> the module that defines it"""
    _packages: frozenset[str]

    def __getattr__(self, name: str) -> Any:
        if name in self._packages:
            return import_module(f"{self.__name__}.{name}")
        if name not in self._exports:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self.__dict__[name] = getattr(import_module(self._exports[name]), name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system binds a submodule here when it is loaded; an export of that name is what callers mean
        if name not in self._exports or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._exports, *self._packages})

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return import_module, (self.__name__,)  # pickle and deepcopy a module by its name, as cloudpickle does others


class CallablePackage(LazyPackage):
    """A lazy package that can be called as the function of its name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @property
    def _function(self) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])


def lazy(
    package: str, exports: Mapping[str, Sequence[str]], *, packages: Sequence[str] = (), call: bool = False
) -> list[str]:
    """Export these names of these modules, which are relative to the package; the names, for `__all__`.

    `packages` are subpackages that are imported on first use as well; they are not among `__all__`.
    """
    module = sys.modules[package]
    names = {name: f"{package}.{inner}" for inner, names in exports.items() for name in names}
    module.__dict__.update(_exports=names, _packages=frozenset(packages))
    module.__class__ = CallablePackage if call else LazyPackage
    return sorted(names)

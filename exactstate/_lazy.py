"""Packages that import what they export when it is first used, and packages that can be called.

A package lists its exports once, under `if TYPE_CHECKING:`, where type checkers read them:

    if TYPE_CHECKING:
        from exactstate.nn.nfsm import NFSM as NFSM

    lazy(__name__)

Then `import exactstate.nn` loads nothing, and `exactstate.nn.NFSM` loads the one module that defines it. An export
wins over a submodule of the same name: `exactstate.automata.isomorphism` is the function, whatever was imported
before.

`lazy(__name__, call=True)` also lets the package be called as the function of its own name:
`exactstate.extract(model)` is `exactstate.extract.extract(model)`.
"""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package whose exports are imported on first use."""

    _exports: dict[str, tuple[str, str]]

    def __getattr__(self, name: str) -> Any:
        if name not in self._exports:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, original = self._exports[name]
        value: Any = import_module(module)
        if not (isinstance(value, CallablePackage) and module == f"{self.__name__}.{name}"):
            value = getattr(value, original)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # the import system binds a submodule here when it is loaded; an export of that name is what callers mean
        if name not in self._exports or not isinstance(value, ModuleType) or isinstance(value, CallablePackage):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._exports})


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


def lazy(package: str, *, call: bool = False) -> list[str]:
    """Export what stands under `if TYPE_CHECKING:` in the package's `__init__.py`; the names, for `__all__`."""
    module = sys.modules[package]
    assert module.__file__ is not None
    exports = exports_of(Path(module.__file__).read_text(encoding="utf-8"))
    module.__dict__["_exports"] = exports
    module.__class__ = CallablePackage if call else LazyPackage
    return sorted(exports)


def exports_of(source: str) -> dict[str, tuple[str, str]]:
    """name -> (module, name there), of the imports under `if TYPE_CHECKING:`."""
    exports = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom) and statement.module:
                    for alias in statement.names:
                        exports[alias.asname or alias.name] = (statement.module, alias.name)
    return exports

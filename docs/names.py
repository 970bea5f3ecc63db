"""The public names with their signatures and docstrings, as Markdown."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

ROOMS = (
    "layers", "models", "tasks", "automata", "extraction", "certification", "runtime", "recipes", "evaluation", "scan",
    "theory", "report", "records", "errors",
)  # fmt: skip


def names_text() -> str:
    """The page."""
    import detent

    parts = ["# The names, one by one", "", "## detent", ""]
    parts += [f"- `detent.{name}` is `detent.{detent._ROOM[name]}.{name}`" for name in sorted(detent.__all__)]
    for room in ROOMS:
        module = import_module(f"detent.{room}")
        parts += ["", f"## detent.{room}", "", _plain(module.__doc__), ""]
        for name, value in offered(module):
            parts += _entry(name, value)
    return "\n".join(parts) + "\n"


def offered(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What the module offers: functions and classes of this library."""
    for name, value in sorted(vars(module).items()):
        mine = getattr(value, "__module__", "") or ""
        if not name.startswith("_") and mine.startswith("detent.") and (inspect.isclass(value) or callable(value)):
            yield name, value


def _entry(name: str, value: Any) -> list[str]:
    parts = [f"### {name}", "", "```python", f"{name}{_signature(value)}", "```", "", _plain(inspect.getdoc(value)), ""]
    if inspect.isclass(value):
        for method, function in vars(value).items():
            documented = callable(function) or isinstance(function, classmethod | property)
            if documented and not method.startswith("_") and inspect.getdoc(getattr(value, method)):
                sentence = inspect.getdoc(getattr(value, method)) or ""
                parts.append(f"- `{method}`: {_plain(sentence.splitlines()[0])}")
        parts.append("")
    return parts


def _signature(value: Any) -> str:
    try:
        return str(inspect.signature(value)).replace("'", "")
    except (ValueError, TypeError):
        return ""


def _plain(text: str | None) -> str:
    """A docstring as Markdown: what is indented or begins with >>> is code already, names of types are not tags."""
    lines = inspect.cleandoc(text or "").splitlines()
    return "\n".join(f"    {line}" if line.startswith((">>>", "...")) else line for line in lines)


def is_documented(value: Any) -> bool:
    """Whether somebody has written a sentence about it."""
    written = inspect.getdoc(value) or ""
    generated = dataclasses.is_dataclass(value) and written.startswith(f"{getattr(value, '__name__', '')}(")
    return bool(written) and not generated

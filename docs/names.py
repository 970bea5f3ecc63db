"""The public names with their signatures and docstrings, as Markdown."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

ROOMS = (
    "nn", "tasks", "automata", "learning", "extract", "certify", "runtime", "train", "evaluate", "ops", "report",
    "records", "errors",
)  # fmt: skip
WIDE = 96
"""Letters of a signature that stands on one line."""


def names_text() -> str:
    """The page."""
    import detent

    parts = ["# The names, one by one", "", "Written from the docstrings.", "", "## detent", ""]
    parts += ["The names of the front door; each lives in the room that its link leads to.", ""]
    parts += [
        f"- [`detent.{name}`](#{name.lower()}): {_first(getattr(detent, name))}" for name in sorted(detent.__all__)
    ]
    parts += ["", "Rooms: " + ", ".join(f"[{room}](#detent{room})" for room in ROOMS) + "."]
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


def _first(value: Any) -> str:
    """The first sentence of what is said about it."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _entry(name: str, value: Any) -> list[str]:
    parts = [f"### {name}", "", "```python", f"{name}{_signature(value)}", "```", "", _plain(inspect.getdoc(value)), ""]
    if inspect.isclass(value):
        parts += [f"- `{method}`: {sentence}" for method, sentence in _methods(value)]
        parts.append("")
    return parts


def _methods(value: type) -> Iterator[tuple[str, str]]:
    """Methods and properties about which a sentence was written here, with that sentence."""
    for method, function in vars(value).items():
        own = function.__func__ if isinstance(function, classmethod | staticmethod) else function
        said = own.__doc__ if callable(own) or isinstance(own, property) else None
        if said and not method.startswith("_") and not inspect.isclass(own):
            yield method, inspect.cleandoc(said).splitlines()[0]


def _signature(value: Any) -> str:
    """What it takes; one argument a line where they would not fit on one."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return ""
    whole = str(found).replace("'", "")
    if len(whole) <= WIDE:
        return whole
    result = whole[whole.rindex(") -> ") :] if ") -> " in whole else ")"
    lines, kind = [], None
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            lines.append("    *,")
        kind = parameter.kind
        lines.append(f"    {parameter},".replace("'", ""))
    return "\n".join(["(", *lines, result])


def _plain(text: str | None) -> str:
    """A docstring as Markdown: from >>> to the next empty line it is code."""
    lines, code = [], False
    for line in inspect.cleandoc(text or "").splitlines():
        code = bool(line) and (code or line.startswith(">>>"))
        lines.append(f"    {line}" if code else line)
    return "\n".join(lines)


def is_documented(value: Any) -> bool:
    """Whether somebody has written a sentence about it."""
    written = inspect.getdoc(value) or ""
    generated = dataclasses.is_dataclass(value) and written.startswith(f"{getattr(value, '__name__', '')}(")
    return bool(written) and not generated

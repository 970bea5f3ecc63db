"""Read and write machine files, by extension or by content.

Every format has a module, which is imported when the format is used.
"""

from __future__ import annotations

import os
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from exactstate.automata.io.common import AmbiguousFile, Kind, Missing, Reading
from exactstate.automata.machine import Semiautomaton
from exactstate.errors import BrokenFile, InvalidMachine, unknown, unreadable, utf8
from exactstate.records import write_atomically

EXTENSIONS = {"dot": (".dot", ".gv"), "json": (".json",)}


def _format(name: str) -> ModuleType:
    """The module of a format: its `read`, `text_of` and `looks_like`."""
    if name not in EXTENSIONS:
        raise unknown("format", name, EXTENSIONS)
    return import_module(f"exactstate.automata.io.{'dot_reader' if name == 'dot' else 'json_format'}")


def read_machine(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    kind: Kind | None = None,
    missing: Missing = "error",
    strict: bool = False,
    notes: list[str] | None = None,
) -> Semiautomaton:
    """The machine in a file: a Moore, a Mealy, or a Semiautomaton where there is neither start nor output.

    format   dot or json; by default by the extension, or by the content if the extension is unknown
    kind     dfa, moore, mealy or semiautomaton, for files that do not say; a dfa is a Moore machine with
             outputs reject, accept
    missing  where a state has no transition on a symbol: an "error", a new dead state ("sink"), or a self-loop
             ("loop"); an output that is needed there is called `missing`
    strict   refuse an ambiguous file
    notes    a list that gets one sentence for each ambiguity; without it they are warnings

    A file that cannot be read raises BrokenFile with a sentence and the line.
    """
    text = _text_of(path)
    collected: list[str] = []
    name = format or _format_by_extension(path)
    if name is None:
        name = next((name for name in EXTENSIONS if _format(name).looks_like(text)), None)
        if name is None:
            raise BrokenFile(
                path, f"neither its extension nor its content is one of {', '.join(EXTENSIONS)}; pass format=."
            )
        reading = Reading(text="", source=str(path), strict=strict, notes=collected)
        reading.note(f"the extension {Path(path).suffix!r} is unknown; the content looks like {name}.")
    machine = parse_machine(
        text, format=name, kind=kind, missing=missing, strict=strict, notes=collected, source=str(path)
    )  # fmt: skip
    _report(collected, notes, str(path))
    return machine


def parse_machine(
    text: str,
    *,
    format: str,
    kind: Kind | None = None,
    missing: Missing = "error",
    strict: bool = False,
    notes: list[str] | None = None,
    source: str = "text",
) -> Semiautomaton:
    """The machine in a text; `source` is its name in errors, the other options are those of `read_machine`."""
    read = _format(format).read
    reading = Reading(text=text, source=source, kind=kind, missing=missing, strict=strict)
    if not text.strip():
        raise reading.error("it is empty.")
    machine = read(reading)
    _report(reading.notes, notes, source)
    return machine


parse_dot = partial(parse_machine, format="dot")
parse_json = partial(parse_machine, format="json")


def write_machine(machine: Semiautomaton, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a machine so that `read_machine` gives it back, equal.

    The format is that of the extension unless `format` is given. The file is written atomically.
    """
    name = format or _format_by_extension(path)
    if name is None:
        raise unknown(
            "extension", Path(path).suffix, (suffix for suffixes in EXTENSIONS.values() for suffix in suffixes)
        )
    write_atomically(path, machine_text(machine, format=name).encode())


def machine_text(machine: Semiautomaton, *, format: str) -> str:
    """The machine as text of a format."""
    text: str = _format(format).text_of(machine)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidMachine("a name holds half a surrogate pair, which no text file can hold; rename it.") from None
    return text


def _format_by_extension(path: str | os.PathLike[str]) -> str | None:
    suffix = Path(path).suffix.lower()
    return next((name for name, suffixes in EXTENSIONS.items() if suffix in suffixes), None)


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        return utf8(Path(path).read_bytes(), path).replace("\r\n", "\n")
    except OSError as error:
        raise unreadable(path, error) from None


def _report(collected: list[str], notes: list[str] | None, source: str) -> None:
    if notes is not None:
        notes += collected
        return
    for sentence in collected:
        warnings.warn(f"{source}, {sentence}", AmbiguousFile, stacklevel=4)

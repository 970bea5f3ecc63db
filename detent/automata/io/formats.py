"""Read and write machine files: which format a file has, and what becomes of doubts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from detent.automata.io import att, ba, dot, json_format
from detent.automata.io.reader import DoubtfulReading, Kind, Missing, Reading
from detent.automata.io.writable import check_carried
from detent.automata.machine import Semiautomaton
from detent.errors import BrokenFile, InvalidMachine, unknown
from detent.records import write_atomically


class _Format(NamedTuple):
    extensions: tuple[str, ...]
    read: Callable[[Reading], Semiautomaton]
    text: Callable[[Semiautomaton], str]
    looks_like: Callable[[str], bool]
    carries_all: bool


FORMATS = {
    "dot": _Format((".dot", ".gv"), dot.read, dot.to_dot, dot.looks_like, True),
    "json": _Format((".json",), json_format.read, json_format.to_json, json_format.looks_like, True),
    "ba": _Format((".ba",), ba.read, ba.to_ba, ba.looks_like, False),
    "att": _Format((".att",), att.read, att.to_att, att.looks_like, False),
}


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

    format   dot, json, att or ba; by default the extension says it, and an unknown extension the content
    kind     dfa, moore, mealy or semiautomaton, for files that leave it open; a dfa is a Moore machine with
             outputs reject, accept
    missing  where a state has no transition on a symbol: an "error", a new dead state ("sink"), or stay ("loop");
             an output that is needed and not there is called `missing`
    strict   refuse a file that leaves anything open
    notes    a list that gets one sentence for each thing that was left open; without it they are warnings

    Whatever cannot be read raises BrokenFile with one sentence and the line.
    """
    text = _text_of(path)
    doubts: list[str] = []
    name = format or _format_by_extension(path)
    if name is None:
        name = next((name for name, known in FORMATS.items() if known.looks_like(text)), None)
        if name is None:
            raise BrokenFile(path, f"neither its name nor its content is one of {', '.join(FORMATS)}; pass format=.")
        doubt = Reading(text="", source=str(path), strict=strict, notes=doubts).doubt
        doubt(f"the extension {Path(path).suffix!r} says nothing; the content looks like {name}.")
    machine = parse_machine(
        text, format=name, kind=kind, missing=missing, strict=strict, notes=doubts, source=str(path)
    )  # fmt: skip
    _report(doubts, notes, str(path))
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
    """The machine in a text; `source` is what errors call it, the other settings are those of `read_machine`."""
    read = _format(format).read
    reading = Reading(text=text, source=source, kind=kind, missing=missing, strict=strict)
    if not text.strip():
        raise reading.error("there is nothing in it.")
    machine = read(reading)
    _report(reading.notes, notes, source)
    return machine


parse_dot = partial(parse_machine, format="dot")
parse_json = partial(parse_machine, format="json")
parse_att = partial(parse_machine, format="att")
parse_ba = partial(parse_machine, format="ba")


def write_machine(machine: Semiautomaton, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a machine so that `read_machine` gives it back, equal; refuse what the format cannot carry.

    The extension says the format unless `format` does. The file appears whole or not at all.
    """
    name = format or _format_by_extension(path)
    if name is None:
        raise unknown("extension", Path(path).suffix, (end for known in FORMATS.values() for end in known.extensions))
    write_atomically(path, machine_text(machine, format=name).encode())


def machine_text(machine: Semiautomaton, *, format: str) -> str:
    """The machine in a format, checked to be carried by it."""
    chosen = _format(format)
    text = chosen.text(machine)
    if not chosen.carries_all:
        check_carried(format, machine, chosen.read(Reading(text=text)))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidMachine("a name holds half a surrogate pair, which no text file can hold; rename it.") from None
    return text


def _format(name: str) -> _Format:
    if name not in FORMATS:
        raise unknown("format", name, FORMATS)
    return FORMATS[name]


def _format_by_extension(path: str | os.PathLike[str]) -> str | None:
    suffix = Path(path).suffix.lower()
    return next((name for name, known in FORMATS.items() if suffix in known.extensions), None)


def _text_of(path: str | os.PathLike[str]) -> str:
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise BrokenFile(path, "there is no such file.") from None
    except OSError as error:
        raise BrokenFile(path, f"it cannot be read: {error.strerror or error}.") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenFile(path, f"byte {content[error.start]:#04x} is not UTF-8 text.", line) from None


def _report(doubts: list[str], notes: list[str] | None, source: str) -> None:
    if notes is not None:
        notes += doubts
        return
    for sentence in doubts:
        warnings.warn(f"{source}, {sentence}", DoubtfulReading, stacklevel=4)

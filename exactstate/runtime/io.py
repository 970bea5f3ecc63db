"""Machines on disk: JSON for people, a compact binary for programs; FORMAT.md has both. No pickle.

`load(path)` detects the format by content and refuses whatever is not exactly a machine, with the reason. It also reads
machine files of other programs (DOT), with `exactstate.automata.read_machine`.

JSON is what `exactstate.automata` writes, with "heads" and "about" added. The binary has a header of counts, names,
tables, and a SHA-256 of all of it, without padding or trailing bytes: one machine has one file. Nothing is
allocated before the file is known to be long enough to fill it.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Mealy, Moore
from exactstate.automata.io import json_format
from exactstate.automata.io.common import Reading
from exactstate.automata.run import smallest_dtype
from exactstate.errors import BrokenFile, InvalidMachine, unknown, unreadable, utf8
from exactstate.records import write_atomically
from exactstate.runtime.heads import Heads
from exactstate.runtime.machine import Machine, about_from_text, about_to_text

FOREIGN = (".dot", ".gv")


def save(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write the machine atomically, by extension. Formats of other programs hold no heads or metadata."""
    match Path(path).suffix.lower():
        case ".json":
            write_atomically(path, to_json(machine))
        case ".exactstate":
            write_atomically(path, to_bytes(machine))
        case suffix if suffix in FOREIGN:
            from exactstate.automata import write_machine

            write_machine(machine.automaton, path)
        case suffix:
            raise unknown("extension", suffix, (".json", ".exactstate", *FOREIGN))


def load(path: str | os.PathLike[str]) -> Machine:
    """The machine in a file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    if content.startswith(MAGIC[:1]) or Path(path).suffix.lower() == ".exactstate":
        return from_bytes(content, str(path))
    if Path(path).suffix.lower() == ".json" or content[:100].lstrip().startswith(b"{"):
        return from_json(content, str(path))
    from exactstate.automata import read_machine

    return Machine.of(read_machine(path))


def to_json(machine: Machine) -> str:
    """The machine as JSON text, one line per table."""
    text = json_format.to_json(machine.automaton).rstrip().removesuffix("}").rstrip()
    if machine.heads is not None:
        heads = zip(machine.heads.starts, machine.heads.tables, strict=True)
        rows = (f'{{"start": {start}, "tables": {json.dumps(table.tolist())}}}' for start, table in heads)
        text += ',\n  "heads": [\n    ' + ",\n    ".join(rows) + "\n  ]"
    if machine.about:
        text += ',\n  "about": ' + json.dumps(machine.about, ensure_ascii=False)
    text += "\n}\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidMachine("a name holds half a surrogate pair, which no text file can hold; rename it.") from None
    return text


def from_json(content: bytes, source: str) -> Machine:
    """The machine that the text describes; every entry is checked."""
    text = utf8(content, source)
    reading = Reading(text=text, source=source)
    if not text.strip():
        raise reading.error("it is empty.")
    entries = json_format.parse_entries(reading)
    automaton = json_format.from_entries(reading, entries)
    heads = _heads(entries["heads"], source, automaton.n_symbols) if "heads" in entries else None
    about = entries.get("about", {})
    if not isinstance(about, dict):
        raise BrokenFile(source, "the entry about is not an object; wanted keys and values.")
    try:
        return Machine.of(automaton, heads=heads, about=about)
    except InvalidMachine as error:
        raise BrokenFile(source, str(error)) from None


def _heads(value: object, source: str, symbols: int) -> Heads:
    if not isinstance(value, list) or not value:
        raise BrokenFile(source, "the entry heads is not a list of heads.")
    tables, starts = [], []
    for h, head in enumerate(value):
        if not isinstance(head, dict) or set(head) != {"start", "tables"}:
            raise BrokenFile(source, f"the entry heads[{h}] wants the entries start and tables, and no others.")
        starts.append(_numbers([head["start"]], 1, f"heads[{h}].start", source)[0])
        rows = head["tables"]
        if not isinstance(rows, list) or len(rows) != symbols or not isinstance(rows[0], list) or not rows[0]:
            raise BrokenFile(source, f"the entry heads[{h}].tables wants {symbols} rows of numbers, one per symbol.")
        size = len(rows[0])
        tables.append([_numbers(row, size, f"heads[{h}].tables[{a}]", source) for a, row in enumerate(rows)])
    try:
        return Heads(tuple(tables), tuple(starts))  # type: ignore[arg-type]
    except InvalidMachine as error:
        raise BrokenFile(source, str(error)) from None


def _numbers(row: object, length: int, place: str, source: str) -> Sequence[int]:
    """A row of non-negative integers; `Heads` checks their range."""
    if not isinstance(row, list) or len(row) != length:
        raise BrokenFile(source, f"the entry {place} wants {length} numbers.")
    for entry in row:
        if type(entry) is not int or not 0 <= entry < 1 << 32:
            raise BrokenFile(source, f"the entry {place} holds {json.dumps(entry)[:30]}; wanted an index.")
    return row


MAGIC = b"\x89EXSTAT\n"
VERSION = 1
HEADER = struct.Struct("<8I")
KINDS = (Moore, Mealy)
DIGEST = 32


def to_bytes(machine: Machine) -> bytes:
    """The machine as bytes."""
    automaton, heads = machine.automaton, machine.heads
    numbered = automaton.states == tuple(map(str, range(automaton.n_states)))
    parts = [
        MAGIC,
        HEADER.pack(
            VERSION, KINDS.index(type(automaton)), automaton.n_symbols, automaton.n_states, len(automaton.outputs),
            automaton.start, 0 if heads is None else len(heads.tables), 0 if numbered else 1,
        ),
        *map(_text, (*automaton.symbols, *(() if numbered else automaton.states), *automaton.outputs)),
        _table(automaton.tables, automaton.n_states),
        _table(automaton.readout, len(automaton.outputs)),
    ]  # fmt: skip
    if heads is not None:
        for start, table in zip(heads.starts, heads.tables, strict=True):
            parts += [struct.pack("<2I", table.shape[1], start), _table(table, table.shape[1])]
    parts.append(_text(about_to_text(machine.about)))
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def from_bytes(content: bytes, source: str) -> Machine:
    """The machine that the bytes describe; every one of them is checked."""
    reading = _ByteReader(content, source)
    if reading.take(len(MAGIC), "the magic") != MAGIC:
        raise reading.error(f"it does not begin with {MAGIC!r}, so it is no binary machine; write it anew.")
    (version,) = struct.unpack_from("<I", reading.take(4, "the version"))
    if version != VERSION:
        raise reading.error(f"its version is {version}; this exactstate reads version {VERSION}.")
    reading.place -= 4
    header = HEADER.unpack(reading.take(HEADER.size, "the header"))
    _, kind, symbols, states, outputs, start, n_heads, named = header
    if kind >= len(KINDS) or named > 1:
        raise reading.error(f"its kind is {kind} and its states are named {named}; wanted 0 or 1 each.")
    if not (symbols and states and outputs):
        raise reading.error(f"it has {symbols} symbols, {states} states and {outputs} outputs; wanted some of each.")
    fields: dict[str, Any] = {"start": start, "symbols": reading.names(symbols, "symbol")}
    fields["states"] = reading.names(states, "state") if named else ()
    fields["outputs"] = reading.names(outputs, "output")
    fields["tables"] = reading.table((symbols, states), states, "tables")
    fields["readout"] = reading.table((symbols, states) if kind else (states,), outputs, "read-out")
    heads = [reading.head(h, symbols) for h in range(n_heads)] if n_heads else None
    about = reading.text("the metadata")
    reading.finish()
    try:
        joined = None if heads is None else Heads(tuple(t for t, _ in heads), tuple(s for _, s in heads))
        return Machine.of(KINDS[kind](**fields), heads=joined, about=about_from_text(about))
    except InvalidMachine as error:
        raise reading.error(str(error)) from None


class _ByteReader:
    """A cursor over bytes that checks the remaining length before every read."""

    def __init__(self, content: bytes, source: str) -> None:
        self.content, self.source, self.place = content, source, 0

    def error(self, reason: str) -> BrokenFile:
        return BrokenFile(self.source, reason)

    def require(self, count: int, what: str) -> None:
        left = len(self.content) - DIGEST - self.place
        if count > left:
            raise self.error(
                f"it ends too early: {what} wants {count} bytes at byte {self.place}; {max(left, 0)} left."
            )

    def take(self, count: int, what: str) -> bytes:
        self.require(count, what)
        self.place += count
        return self.content[self.place - count : self.place]

    def number(self, what: str) -> int:
        return int.from_bytes(self.take(4, what), "little")

    def text(self, what: str) -> str:
        taken = self.take(self.number(what), what)
        try:
            return taken.decode()
        except UnicodeDecodeError as error:
            raise self.error(f"{what} holds the byte {taken[error.start]:#04x}, which is not UTF-8 text.") from None

    def names(self, count: int, kind: str) -> tuple[str, ...]:
        self.require(4 * count, f"the {kind} names")
        return tuple(self.text(f"the name of {kind} {i}") for i in range(count))

    def table(self, shape: tuple[int, ...], below: int, what: str) -> Ints:
        dtype = smallest_dtype(below).newbyteorder("<")
        count = int(np.prod(shape, dtype=object))
        taken = np.frombuffer(self.take(count * dtype.itemsize, f"the {what}"), dtype)
        return taken.astype(dtype.newbyteorder("=")).reshape(shape)

    def head(self, h: int, symbols: int) -> tuple[Ints, int]:
        size, start = self.number(f"head {h}"), self.number(f"head {h}")
        if not size:
            raise self.error(f"head {h} has no indices.")
        return self.table((symbols, size), size, f"table of head {h}"), start

    def finish(self) -> None:
        """Refuse trailing bytes and a wrong digest."""
        extra = len(self.content) - DIGEST - self.place
        if extra:
            raise self.error(f"it has {extra} bytes after the machine.")
        if hashlib.sha256(self.content[:-DIGEST]).digest() != self.content[-DIGEST:]:
            raise self.error("its SHA-256 is not that of its content; it was damaged or changed.")


def _text(text: str) -> bytes:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidMachine("a name holds half a surrogate pair, which no file can hold; rename it.") from None
    return struct.pack("<I", len(encoded)) + encoded


def _table(table: Ints, below: int) -> bytes:
    return table.astype(smallest_dtype(below).newbyteorder("<")).tobytes()

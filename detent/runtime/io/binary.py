"""Machines as bytes: a header of counts, names, tables, and a SHA-256 over all of it. FORMAT.md has the layout.

No holes and no trailing bytes: one machine has one file, and a file is read to its last byte or refused. Nothing is
allocated before it is known that the file is long enough to fill it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np

from detent._types import Ints
from detent.automata import Mealy, Moore
from detent.automata.run import smallest_dtype
from detent.errors import BrokenFile, InvalidMachine
from detent.runtime.heads import Heads
from detent.runtime.machine import Machine, from_text, to_text

MAGIC = b"\x89DETENT\n"
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
    parts.append(_text(to_text(machine.about)))
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def from_bytes(content: bytes, source: str) -> Machine:
    """The machine that the bytes describe; every one of them is checked."""
    reading = _Reading(content, source)
    if reading.take(len(MAGIC), "the magic") != MAGIC:
        raise reading.error(f"it does not begin with {MAGIC!r}, so it is no detent machine in binary form.")
    (version,) = struct.unpack_from("<I", reading.take(4, "the version"))
    if version != VERSION:
        raise reading.error(f"its version is {version}; this detent reads version {VERSION}.")
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
        return Machine.of(KINDS[kind](**fields), heads=joined, about=from_text(about))
    except InvalidMachine as error:
        raise reading.error(str(error)) from None


class _Reading:
    """Bytes read from the front, with an end that is known before they are used."""

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
        """Refuse a file that goes on, or that is not the one that was written."""
        extra = len(self.content) - DIGEST - self.place
        if extra:
            raise self.error(f"it goes on for {extra} bytes after the machine.")
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

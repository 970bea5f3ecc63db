"""Machines as JSON: what `detent.automata` writes, and beside it heads and metadata where there are any.

{"format": "detent-machine", "version": 1, "kind": ..., "symbols": ..., "states": ..., "tables": ..., "start": ...,
 "outputs": ..., "readout": ...,
 "heads": [{"start": 0, "tables": [[...], ...]}, ...],
 "about": {...}}
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from detent.automata.io import parse_json
from detent.automata.io import to_json as automaton_to_json
from detent.errors import BrokenFile, InvalidMachine
from detent.runtime.heads import Heads
from detent.runtime.machine import Machine


def to_json(machine: Machine) -> str:
    """The machine as JSON text, one line per table."""
    text = automaton_to_json(machine.automaton).rstrip().removesuffix("}").rstrip()
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
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BrokenFile(source, f"byte {content[error.start]:#04x} is not UTF-8 text.", line) from None
    automaton = parse_json(text, source=source)
    entries = json.loads(text)
    heads = _heads(entries["heads"], source, automaton.n_symbols) if "heads" in entries else None
    about = entries.get("about", {})
    if not isinstance(about, dict):
        raise BrokenFile(source, "the entry about is no object; wanted names and what they stand for.")
    try:
        return Machine.of(automaton, heads=heads, about=about)
    except InvalidMachine as error:
        raise BrokenFile(source, str(error)) from None


def _heads(value: object, source: str, symbols: int) -> Heads:
    if not isinstance(value, list) or not value:
        raise BrokenFile(source, "the entry heads is no list of heads.")
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
    """A row of integers that an index may be; whether they are in range is for the heads to say."""
    if not isinstance(row, list) or len(row) != length:
        raise BrokenFile(source, f"the entry {place} wants {length} numbers.")
    for entry in row:
        if type(entry) is not int or not 0 <= entry < 1 << 32:
            raise BrokenFile(source, f"the entry {place} holds {json.dumps(entry)[:30]}; wanted an index.")
    return row

"""Machines as JSON: integer tables and lists of names. Represents every machine exactly.

    {"format": "exactstate-machine", "version": 1, "kind": "mealy" | "moore" | "semiautomaton",
     "symbols": [...], "states": [...], "tables": [[...], ...],
     "start": 0, "outputs": [...], "readout": [...] (Moore) or [[...], ...] (Mealy)}

tables[a][q] is where symbol a sends state q. A file is refused unless every entry is valid. The entries "heads" and
"about", which `exactstate.runtime` adds, are ignored here.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from exactstate.automata.io.common import DFA_OUTPUTS, Reading, shown
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.errors import InvalidMachine
from exactstate.records import InvalidJson, parse_strict_json

FORMAT, VERSION = "exactstate-machine", 1
_ALWAYS = ("format", "version", "kind", "symbols", "states", "tables")
_WITH_OUTPUTS = (*_ALWAYS, "start", "outputs", "readout")
_OF_RUNTIME = ("heads", "about")
_KINDS: dict[str, type[Semiautomaton]] = {"mealy": Mealy, "moore": Moore, "semiautomaton": Semiautomaton}


def to_json(machine: Semiautomaton) -> str:
    """The machine as JSON text, one line per table."""
    entries: dict[str, str] = {
        "format": _plain(FORMAT),
        "version": _plain(VERSION),
        "kind": _plain(next(kind for kind, build in _KINDS.items() if isinstance(machine, build))),
        "symbols": _plain(machine.symbols),
        "states": _plain(machine.states),
        "tables": _rows(machine.tables.tolist()),
    }
    if isinstance(machine, Moore | Mealy):
        readout = machine.readout.tolist()
        entries["start"] = _plain(machine.start)
        entries["outputs"] = _plain(machine.outputs)
        entries["readout"] = _rows(readout) if isinstance(machine, Mealy) else _plain(readout)
    return "{\n" + ",\n".join(f"  {_plain(key)}: {value}" for key, value in entries.items()) + "\n}\n"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rows(rows: list[list[int]]) -> str:
    return "[\n" + ",\n".join(f"    {_plain(row)}" for row in rows) + "\n  ]"


def read(reading: Reading) -> Semiautomaton:
    """The machine that the text describes."""
    return from_entries(reading, parse_entries(reading))


def parse_entries(reading: Reading) -> dict[str, Any]:
    """The JSON object of a machine file; its entries are not checked yet."""
    try:
        entries = parse_strict_json(reading.text)
    except InvalidJson as error:
        if error.key is not None:
            _refuse(reading, error.key, "came twice.")
        if "nested" in error.reason:
            raise reading.error("lists are nested too deep; a machine needs two levels.") from None
        if "not a number" in error.reason:
            raise reading.error(f"{error.reason}; tables hold integers.") from None
        why = error.reason if error.line is None else f"this is not JSON: {error.reason}"
        raise reading.error(f"{why}.", error.line) from None
    found = entries.get("format") if isinstance(entries, dict) else None
    if isinstance(found, str) and found != FORMAT and found.endswith("-machine"):
        old = "of another program or an older version"
        raise reading.error(f'the format is {_brief(found)}, {old}; wanted "{FORMAT}", with the same entries.', 1)
    if found != FORMAT:
        raise reading.error(f'wanted a JSON object with "format": "{FORMAT}"; this is some other JSON.', 1)
    return entries


def from_entries(reading: Reading, entries: dict[str, Any]) -> Semiautomaton:
    """The machine in a JSON object; every entry is checked."""
    if type(entries.get("version")) is not int or entries["version"] != VERSION:
        _refuse(reading, "version", f"is {_brief(entries.get('version'))}; this exactstate reads version {VERSION}.")
    kind = entries.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        _refuse(reading, "kind", f"is {_brief(kind)}; wanted one of {', '.join(_KINDS)}.")
    wanted = _ALWAYS if kind == "semiautomaton" else _WITH_OUTPUTS
    for key in wanted:
        if key not in entries:
            raise reading.error(f'a {kind} needs the entry "{key}"; it is missing.')
    for key in entries:
        if key not in (*wanted, *_OF_RUNTIME):
            _refuse(reading, key, f"does not belong in a {kind}.")

    fields: dict[str, Any] = {
        "symbols": _names(reading, "symbols", entries["symbols"]),
        "states": _names(reading, "states", entries["states"]),
    }
    A, n = len(fields["symbols"]), len(fields["states"])
    fields["tables"] = _table(reading, "tables", entries["tables"], A, n, n)
    if kind != "semiautomaton":
        outputs = fields["outputs"] = _names(reading, "outputs", entries["outputs"])
        (fields["start"],) = _numbers(reading, "start", [entries["start"]], 1, n)
        readout = entries["readout"]
        fields["readout"] = (
            _table(reading, "readout", readout, A, n, len(outputs))
            if kind == "mealy"
            else _numbers(reading, "readout", readout, n, len(outputs))
        )
    _check_kind(reading, kind, fields)
    try:
        return _KINDS[kind](**fields)
    except InvalidMachine as error:
        raise reading.error(str(error)) from None


def looks_like(text: str) -> bool:
    return text[:1000].lstrip().startswith("{")


text_of = to_json


def _check_kind(reading: Reading, kind: str, fields: dict[str, Any]) -> None:
    accepts = reading.kind == "dfa" and kind == "moore" and tuple(fields["outputs"]) == DFA_OUTPUTS
    if reading.kind not in (None, kind) and not accepts:
        raise reading.error(f'the file says it is a {kind}; it cannot be read with kind="{reading.kind}".')


def _names(reading: Reading, key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not value:
        _refuse(reading, key, f"is {_brief(value)}; wanted a list of names.")
    for i, name in enumerate(value):
        if not isinstance(name, str):
            _refuse(reading, key, f"has {_brief(name)} at place {i}; wanted a string.")
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            _refuse(reading, key, f"has half a surrogate pair at place {i}; wanted a name that can be written.")
    return value


def _table(reading: Reading, key: str, value: object, rows: int, columns: int, below: int) -> list[list[int]]:
    if not isinstance(value, list) or len(value) != rows:
        _refuse(reading, key, f"is {_brief(value)}; wanted {rows} rows, one per symbol.")
    return [_numbers(reading, f"{key}[{a}]", row, columns, below) for a, row in enumerate(value)]


def _numbers(reading: Reading, place: str, value: object, length: int, below: int) -> list[int]:
    """A row of integers, each from 0 to below - 1."""
    if not isinstance(value, list) or len(value) != length:
        _refuse(reading, place, f"is {_brief(value)}; wanted {length} numbers, one per state.")
    for q, entry in enumerate(value):
        # bool is a subclass of int, and true is no state
        if type(entry) is not int or not 0 <= entry < below:
            at = place if place == "start" else f"{place}[{q}]"
            _refuse(reading, at, f"is {_brief(entry)}; wanted an integer from 0 to {below - 1}.")
    return value


def _brief(value: object) -> str:
    """A value as errors show it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return shown(value) if isinstance(value, str) else shown(str(value), 30)[1:-1]


def _refuse(reading: Reading, place: str, complaint: str) -> NoReturn:
    """An error at an entry, with the line on which its key stands."""
    key = re.escape(json.dumps(place.split("[")[0], ensure_ascii=False))
    found = re.search(rf"{key}\s*:", reading.text)
    raise reading.error(f"the entry {shown(place)[1:-1]} {complaint}", reading.line(found.start()) if found else None)

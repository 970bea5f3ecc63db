"""Machines as JSON: integer tables and lists of names. The one format that carries every machine as it is.

    {"format": "detent-machine", "version": 1, "kind": "mealy" | "moore" | "semiautomaton",
     "symbols": [...], "states": [...], "tables": [[...], ...],
     "start": 0, "outputs": [...], "readout": [...] (Moore) or [[...], ...] (Mealy)}

tables[a][q] is where symbol a sends state q. A file is refused unless every entry is what it should be. What
`detent.runtime` puts beside these, "heads" to run the machine by and "about" where it comes from, is passed over.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NoReturn

from detent.automata.io.reader import DFA_OUTPUTS, Reading, shown
from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.errors import BrokenFile, InvalidMachine

FORMAT, VERSION = "detent-machine", 1
_ALWAYS = ("format", "version", "kind", "symbols", "states", "tables")
_WITH_OUTPUTS = (*_ALWAYS, "start", "outputs", "readout")
_BESIDE = ("heads", "about")
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
    entries = _parsed(reading)
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        raise reading.error(f'wanted a JSON object with "format": "{FORMAT}"; this is some other JSON.', 1)
    if type(entries.get("version")) is not int or entries["version"] != VERSION:
        _refuse(reading, "version", f"is {_seen(entries.get('version'))}; this detent reads version {VERSION}.")
    kind = entries.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        _refuse(reading, "kind", f"is {_seen(kind)}; wanted one of {', '.join(_KINDS)}.")
    wanted = _ALWAYS if kind == "semiautomaton" else _WITH_OUTPUTS
    for key in wanted:
        if key not in entries:
            raise reading.error(f'a {kind} needs the entry "{key}"; it is missing.')
    for key in entries:
        if key not in (*wanted, *_BESIDE):
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
        said = entries["readout"]
        fields["readout"] = (
            _table(reading, "readout", said, A, n, len(outputs))
            if kind == "mealy"
            else _numbers(reading, "readout", said, n, len(outputs))
        )
    _check_kind(reading, kind, fields)
    try:
        return _KINDS[kind](**fields)
    except InvalidMachine as error:
        raise reading.error(str(error)) from None


def looks_like(text: str) -> bool:
    return text[:1000].lstrip().startswith("{")


def _parsed(reading: Reading) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            times = Counter(key for key, _ in pairs)
            _refuse(reading, times.most_common(1)[0][0], "came twice.")
        return entries

    def constant(name: str) -> NoReturn:
        raise reading.error(f"{name} is not a number; tables hold integers.")

    try:
        return json.loads(reading.text, object_pairs_hook=unique, parse_constant=constant)
    except BrokenFile:
        raise
    except json.JSONDecodeError as error:
        raise reading.error(f"this is not JSON: {error.msg.lower()} at column {error.colno}.", error.lineno) from None
    except RecursionError:
        raise reading.error("lists are nested too deep; a machine needs two levels.") from None
    except ValueError:
        raise reading.error("a number has too many digits.") from None


def _check_kind(reading: Reading, kind: str, fields: dict[str, Any]) -> None:
    accepts = reading.kind == "dfa" and kind == "moore" and tuple(fields["outputs"]) == DFA_OUTPUTS
    if reading.kind not in (None, kind) and not accepts:
        raise reading.error(f'the file says it is a {kind}; it cannot be read with kind="{reading.kind}".')


def _names(reading: Reading, key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not value:
        _refuse(reading, key, f"is {_seen(value)}; wanted a list of names.")
    for i, name in enumerate(value):
        if not isinstance(name, str):
            _refuse(reading, key, f"has {_seen(name)} at place {i}; wanted a string.")
        if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
            _refuse(reading, key, f"has half a surrogate pair at place {i}; wanted a name that can be written.")
    return value


def _table(reading: Reading, key: str, value: object, rows: int, columns: int, below: int) -> list[list[int]]:
    if not isinstance(value, list) or len(value) != rows:
        _refuse(reading, key, f"is {_seen(value)}; wanted {rows} rows, one per symbol.")
    return [_numbers(reading, f"{key}[{a}]", row, columns, below) for a, row in enumerate(value)]


def _numbers(reading: Reading, place: str, value: object, length: int, below: int) -> list[int]:
    """A row of integers, each from 0 to below - 1."""
    if not isinstance(value, list) or len(value) != length:
        _refuse(reading, place, f"is {_seen(value)}; wanted {length} numbers, one per state.")
    for q, entry in enumerate(value):
        # bool is a subclass of int, and true is no state
        if type(entry) is not int or not 0 <= entry < below:
            at = place if place == "start" else f"{place}[{q}]"
            _refuse(reading, at, f"is {_seen(entry)}; wanted an integer from 0 to {below - 1}.")
    return value


def _seen(value: object) -> str:
    """What came, in a few words."""
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

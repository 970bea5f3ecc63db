"""Machines on disk: JSON for people, a compact binary for programs; see FORMAT.md. No pickle anywhere.

`load(path)` goes by the content and refuses whatever is not exactly a machine, with the reason. It also takes machine
files of other programs (DOT, AT&T text, BA), as `detent.automata.read_machine` reads them.
"""

from __future__ import annotations

import os
from pathlib import Path

from detent.automata import read_machine, write_machine
from detent.errors import BrokenFile, unknown
from detent.records import write_atomically
from detent.runtime.io.binary import MAGIC, from_bytes, to_bytes
from detent.runtime.io.json_format import from_json, to_json
from detent.runtime.machine import Machine

FOREIGN = (".dot", ".gv", ".att", ".ba")


def save(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write the machine, whole or not at all; the extension says how. Other formats carry no heads and no metadata."""
    match Path(path).suffix.lower():
        case ".json":
            write_atomically(path, to_json(machine))
        case ".detent":
            write_atomically(path, to_bytes(machine))
        case suffix if suffix in FOREIGN:
            write_machine(machine.automaton, path)
        case suffix:
            raise unknown("extension", suffix, (".json", ".detent", *FOREIGN))


def load(path: str | os.PathLike[str]) -> Machine:
    """The machine in a file."""
    content = _read(path)
    if content.startswith(MAGIC) or Path(path).suffix.lower() == ".detent":
        return from_bytes(content, str(path))
    if Path(path).suffix.lower() == ".json" or content[:100].lstrip().startswith(b"{"):
        return from_json(content, str(path))
    return Machine.of(read_machine(path))


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise BrokenFile(path, "there is no such file.") from None
    except OSError as error:
        raise BrokenFile(path, f"it cannot be read: {(error.strerror or str(error)).lower()}.") from None

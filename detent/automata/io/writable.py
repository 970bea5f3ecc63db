"""Refuse to write what a format cannot carry: a file that reads back as another machine is worse than none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from detent.automata.io.reader import shown
from detent.automata.machine import Semiautomaton
from detent.errors import InvalidMachine

_WAY_OUT = "write .json or .dot, which carry every machine"


def cannot_carry(format: str, wanted: str, came: str) -> InvalidMachine:
    return InvalidMachine(f"{format} carries {wanted}, and {came}; {_WAY_OUT}.")


def refuse_names(
    format: str, kind: str, names: Iterable[str], fits: Callable[[str], bool], why: str = "would not be read back"
) -> None:
    """Refuse the first name that does not fit."""
    for name in names:
        if not fits(name):
            raise InvalidMachine(f"the {kind} {shown(name)} {why} in {format}; rename it, or {_WAY_OUT}.")


def check_carried(format: str, machine: Semiautomaton, read_back: Semiautomaton) -> None:
    """Refuse a machine that comes back different, saying what would change."""
    if read_back == machine:
        return
    if type(read_back) is not type(machine):
        raise InvalidMachine(f"{format} would read this machine back as a {type(read_back).__name__}; {_WAY_OUT}.")
    what = next(what for what in ("states", "symbols", "outputs") if getattr(machine, what) != getattr(read_back, what))
    names = shown(", ".join(getattr(machine, what)))
    raise InvalidMachine(
        f"{format} does not carry the order of the {what} {names}; number them in order "
        f"(dataclasses.replace(machine, {what}=...)), or {_WAY_OUT}."
    )

"""Programs as templates beside this file: what stands in `@{...}` is filled in, everything else is the program."""

from __future__ import annotations

from pathlib import Path
from string import Template

from exactstate.automata.policy import OTHER
from exactstate.runtime.machine import Machine


class _Template(Template):
    delimiter = "@"


def filled(file: str, /, **values: object) -> str:
    """The program of a template."""
    return _Template((Path(__file__).parent / file).read_text(encoding="utf-8")).substitute(values)


def other_symbol(machine: Machine) -> int:
    """The symbol that a monitor reads for a call that it does not know; -1 for other machines, which refuse."""
    return machine.symbols.index(OTHER) if "monitor" in machine.about and OTHER in machine.symbols else -1

"""What every reader of machine files shares: what it reads, what it may assume, and what it has to say.

A doubt is a thing the file leaves open and the reader settled by a documented rule. Doubts become notes for the
caller; with strict=True the first one is the reason why the file is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.errors import BrokenFile, InvalidConfig

Kind = Literal["dfa", "moore", "mealy", "semiautomaton"]
Missing = Literal["error", "sink", "loop"]

DFA_OUTPUTS = ("reject", "accept")
"""A DFA is the Moore machine with these outputs, in this order."""


class DoubtfulReading(UserWarning):
    """A machine file left something open; the warning says how it was read."""


@dataclass(kw_only=True)
class Reading:
    """One text being read into a machine."""

    text: str
    source: str = "text"
    """What errors call it: a path, as a rule."""
    kind: Kind | None = None
    """What the caller says it is; None to find out."""
    missing: Missing = "error"
    """What becomes of a state that has no transition on some symbol."""
    strict: bool = False
    """Whether a doubt is an error."""
    notes: list[str] = field(default_factory=list)
    """How the doubts were settled, one sentence each."""
    _place: tuple[int, int] = (0, 1)
    """The last position that was asked for, and its line."""

    def __post_init__(self) -> None:
        one_of("kind", self.kind, (None, *get_args(Kind)))
        one_of("missing", self.missing, get_args(Missing))

    def error(self, reason: str, line: int | None = None) -> BrokenFile:
        return BrokenFile(self.source, reason, line)

    def doubt(self, sentence: str, line: int | None = None) -> None:
        """Keep a sentence about something that had to be settled, or refuse the file when strict."""
        if self.strict:
            raise self.error(f"strict reading stops here: {sentence}", line)
        self.notes.append(f"line {line}: {sentence}" if line is not None else sentence)

    def line(self, position: int) -> int:
        """The line, counted from 1, on which a position of the text lies; quick when asked in order."""
        known, line = self._place if self._place[0] <= position else (0, 1)
        self._place = (position, line + self.text.count("\n", known, position))
        return self._place[1]


def kind_of(machine: Semiautomaton) -> Kind:
    """What a file calls this machine."""
    if isinstance(machine, Moore):
        return "dfa" if machine.outputs == DFA_OUTPUTS else "moore"
    return "mealy" if isinstance(machine, Mealy) else "semiautomaton"


def one_of(what: str, given: object, known: Iterable[object]) -> None:
    """Refuse a setting that is not among `known`."""
    choices = list(known)
    if given not in choices:
        raise InvalidConfig(f"{what}={given!r} is not one of {', '.join(map(repr, choices))}.")


def shown(name: str, length: int = 60) -> str:
    """A name as an error quotes it: in quotes, and not longer than a line."""
    return repr(name if len(name) <= length else name[: length - 3] + "...")

"""What the readers and writers of machine files share.

    A  symbols     n  states

`Reading` is a text with the options to read it; it makes errors with line numbers and collects notes on what the file
left open. `assemble` builds a deterministic, complete machine from transitions, or says where they are not. The last
functions refuse to write what a format cannot represent: a file that reads back as another machine is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Literal, NamedTuple, get_args

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.errors import BrokenFile, InvalidConfig

Kind = Literal["dfa", "moore", "mealy", "semiautomaton"]
Missing = Literal["error", "sink", "loop"]
DFA_OUTPUTS = ("reject", "accept")
"""A DFA is the Moore machine with these outputs, in this order."""
MAX_ENTRIES = 1 << 27
"""The largest number of table entries up to which an incomplete machine is completed."""


class AmbiguousFile(UserWarning):
    """A machine file is ambiguous; the warning says how it was read."""


@dataclass(kw_only=True)
class Reading:
    """One text that is being read, and how to read it."""

    text: str
    source: str = "text"
    """Its name in errors, usually a path."""
    kind: Kind | None = None
    """The kind that the caller expects; None to detect it."""
    missing: Missing = "error"
    """What to do where a state has no transition on some symbol."""
    strict: bool = False
    """Whether an ambiguity is an error."""
    notes: list[str] = field(default_factory=list)
    """How ambiguities were resolved, one sentence each."""
    _place: tuple[int, int] = (0, 1)
    """The last position passed to `line`, and its line."""

    def __post_init__(self) -> None:
        one_of("kind", self.kind, (None, *get_args(Kind)))
        one_of("missing", self.missing, get_args(Missing))

    def error(self, reason: str, line: int | None = None) -> BrokenFile:
        return BrokenFile(self.source, reason, line)

    def note(self, sentence: str, line: int | None = None) -> None:
        """Record how an ambiguity was resolved, or refuse the file when strict."""
        if self.strict:
            raise self.error(f"strict reading refuses this: {sentence}", line)
        self.notes.append(f"line {line}: {sentence}" if line is not None else sentence)

    def line(self, position: int) -> int:
        """The line, counted from 1, of a position in the text; fast for ascending positions."""
        known, line = self._place if self._place[0] <= position else (0, 1)
        self._place = (position, line + self.text.count("\n", known, position))
        return self._place[1]


def kind_of(machine: Semiautomaton) -> Kind:
    """The name of this kind of machine in files."""
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


class State(NamedTuple):
    name: str
    line: int | None
    """Where the file first mentions it."""
    output: str | None = None
    """The output of a Moore machine in this state."""


class Step(NamedTuple):
    source: int
    symbol: str
    target: int
    line: int
    output: str | None = None
    """The output of a Mealy machine on this step."""


def assemble(
    reading: Reading,
    states: Sequence[State],
    steps: Sequence[Step],
    *,
    start: int | None = None,
    symbols: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> Semiautomaton:
    """The machine with these states and steps.

    Steps with outputs make a Mealy machine, states with outputs a Moore machine, neither a semiautomaton.
    `symbols` and `outputs` come first and in this order, others follow as they appear.
    """
    if not steps:
        raise reading.error("there is no transition in it, so there is no machine.")
    symbol_number = numbered(chain(symbols, (step.symbol for step in steps)))
    cells = _cells(reading, states, steps, symbol_number)
    names = [state.name for state in states]
    output_number = None
    if steps[0].output is not None:
        output_number = numbered(chain(outputs, (step.output or "" for step in steps)))
    elif states[0].output is not None:
        output_number = numbered(chain(outputs, (state.output or "" for state in states)))

    incomplete = len(cells) < len(symbol_number) * len(names)
    filler = ""
    if incomplete:
        _check_completion(reading, states, cells, list(symbol_number))
        if reading.missing == "sink":
            names.append(fresh("sink", names))
        if output_number is not None and (steps[0].output is not None or reading.missing == "sink"):
            filler = "reject" if tuple(output_number) == DFA_OUTPUTS else fresh("missing", output_number)
            output_number.setdefault(filler, len(output_number))

    A, n = len(symbol_number), len(names)
    tables = np.full((A, n), n - 1) if reading.missing == "sink" else np.tile(np.arange(n), (A, 1))
    where = np.array(list(cells), np.intp).reshape(-1, 2)
    tables[where[:, 1], where[:, 0]] = [step.target for step in cells.values()]
    if output_number is None:
        return Semiautomaton(symbols=tuple(symbol_number), tables=tables, states=tuple(names))

    assert start is not None
    readout: Ints
    build: type[Mealy | Moore]
    if steps[0].output is not None:
        build, readout = Mealy, np.full((A, n), output_number.get(filler, 0))
        readout[where[:, 1], where[:, 0]] = [output_number[step.output or ""] for step in cells.values()]
    else:
        build = Moore
        readout = np.array(
            [output_number[state.output or ""] for state in states] + [output_number.get(filler)] * (n - len(states))
        )
    return build(
        symbols=tuple(symbol_number), tables=tables, states=tuple(names), start=start, outputs=tuple(output_number),
        readout=readout,
    )  # fmt: skip


def _cells(
    reading: Reading, states: Sequence[State], steps: Sequence[Step], symbol_number: dict[str, int]
) -> dict[tuple[int, int], Step]:
    """The step of every (state, symbol); two different ones are refused with both lines."""
    cells: dict[tuple[int, int], Step] = {}
    repeated: list[Step] = []
    for step in steps:
        cell = (step.source, symbol_number[step.symbol])
        known = cells.setdefault(cell, step)
        if known is not step:
            if (known.target, known.output) != (step.target, step.output):
                raise reading.error(_two_ways(states, known, step), step.line)
            repeated.append(step)
    if repeated:
        step, more = repeated[0], f" (and {len(repeated) - 1} more)" if len(repeated) > 1 else ""
        state = shown(states[step.source].name)
        reading.note(f"the step of state {state} on {shown(step.symbol)} is written twice{more}.", step.line)
    return cells


def _two_ways(states: Sequence[State], known: Step, step: Step) -> str:
    def way(taken: Step) -> str:
        output = "" if taken.output is None else f" with output {shown(taken.output)}"
        return f"to {shown(states[taken.target].name)}{output} (line {taken.line})"

    state = shown(states[step.source].name)
    return (
        f"state {state} goes on {shown(step.symbol)} {way(known)} and {way(step)}; "
        "a machine is deterministic, so one of the two lines must go."
    )


def _check_completion(
    reading: Reading, states: Sequence[State], cells: dict[tuple[int, int], Step], symbols: Sequence[str]
) -> None:
    """Refuse a missing transition, unless the caller says how to complete it and the table is not too large."""
    wanted = len(states) * len(symbols)
    if reading.missing != "error":
        if wanted > MAX_ENTRIES:
            raise reading.error(
                f"completing {len(states)} states with {len(symbols)} symbols would need {wanted} transitions "
                f"for the {len(cells)} in the file; the most is {MAX_ENTRIES}."
            )
        return
    leaving = np.bincount([source for source, _ in cells], minlength=len(states))
    gap = int(np.argmax(leaving < len(symbols)))
    symbol = next(name for a, name in enumerate(symbols) if (gap, a) not in cells)
    others = wanted - len(cells) - 1
    more = f" ({others} more {'is' if others == 1 else 'are'} missing)" if others else ""
    raise reading.error(
        f"state {shown(states[gap].name)} has no transition on {shown(symbol)}{more}; add it, "
        'or pass missing="sink" to go there to a new dead state, or missing="loop" to stay.',
        states[gap].line,
    )


def numbered(names: Iterable[str]) -> dict[str, int]:
    """name -> number, in order of first appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def fresh(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name_1, name_2, ... that is not taken."""
    used = set(taken)
    return name if name not in used else next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in used)

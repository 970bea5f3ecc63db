"""From the transitions of a file to a machine: deterministic and complete, or one sentence saying where it is not.

A  symbols     n  states
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from detent.automata.files.reading import DFA_OUTPUTS, Reading, shown
from detent.automata.machine import Mealy, Moore, Semiautomaton
from detent.automata.running import Ints

LARGEST = 1 << 27
"""Table entries above which an incomplete machine is not completed."""


class State(NamedTuple):
    name: str
    line: int | None
    """Where the file first speaks of it."""
    output: str | None = None
    """What a Moore machine says in it."""


class Step(NamedTuple):
    source: int
    symbol: str
    target: int
    line: int
    output: str | None = None
    """What a Mealy machine says on the way."""


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
    says = None
    if steps[0].output is not None:
        says = numbered(chain(outputs, (step.output or "" for step in steps)))
    elif states[0].output is not None:
        says = numbered(chain(outputs, (state.output or "" for state in states)))

    incomplete = len(cells) < len(symbol_number) * len(names)
    silence = ""
    if incomplete:
        _check_completion(reading, states, cells, list(symbol_number))
        if reading.missing == "sink":
            names.append(fresh("sink", names))
        if says is not None and (steps[0].output is not None or reading.missing == "sink"):
            silence = "reject" if tuple(says) == DFA_OUTPUTS else fresh("missing", says)
            says.setdefault(silence, len(says))

    A, n = len(symbol_number), len(names)
    tables = np.full((A, n), n - 1) if reading.missing == "sink" else np.tile(np.arange(n), (A, 1))
    where = np.array(list(cells), np.intp).reshape(-1, 2)
    tables[where[:, 1], where[:, 0]] = [step.target for step in cells.values()]
    if says is None:
        return Semiautomaton(symbols=tuple(symbol_number), tables=tables, states=tuple(names))

    assert start is not None
    readout: Ints
    build: type[Mealy | Moore]
    if steps[0].output is not None:
        build, readout = Mealy, np.full((A, n), says.get(silence, 0))
        readout[where[:, 1], where[:, 0]] = [says[step.output or ""] for step in cells.values()]
    else:
        build = Moore
        readout = np.array([says[state.output or ""] for state in states] + [says.get(silence)] * (n - len(states)))
    return build(
        symbols=tuple(symbol_number), tables=tables, states=tuple(names), start=start, outputs=tuple(says),
        readout=readout,
    )  # fmt: skip


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Every name with its number, in order of first appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def naturally(names: Iterable[str]) -> list[str]:
    """The names in order of first appearance, or by value when all of them are whole numbers."""
    distinct = list(dict.fromkeys(names))
    plain = all(name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") for name in distinct)
    # by length and then by letters: the order of the values, without turning a million digits into one
    return sorted(distinct, key=lambda name: (len(name), name)) if plain else distinct


def fresh(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name_1, name_2, ... that is not taken."""
    used = set(taken)
    return name if name not in used else next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in used)


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
        reading.doubt(f"the step of state {state} on {shown(step.symbol)} is written twice{more}.", step.line)
    return cells


def _two_ways(states: Sequence[State], known: Step, step: Step) -> str:
    def way(taken: Step) -> str:
        said = "" if taken.output is None else f" with output {shown(taken.output)}"
        return f"to {shown(states[taken.target].name)}{said} (line {taken.line})"

    state = shown(states[step.source].name)
    return (
        f"state {state} goes on {shown(step.symbol)} {way(known)} and {way(step)}; "
        "a machine is deterministic, so one of the two lines must go."
    )


def _check_completion(
    reading: Reading, states: Sequence[State], cells: dict[tuple[int, int], Step], symbols: Sequence[str]
) -> None:
    """Refuse a missing transition, unless the caller said what to put there and there is room for it."""
    wanted = len(states) * len(symbols)
    if reading.missing != "error":
        if wanted > LARGEST:
            raise reading.error(
                f"completing {len(states)} states with {len(symbols)} symbols would need {wanted} transitions "
                f"for the {len(cells)} in the file; the most is {LARGEST}."
            )
        return
    leaving = np.bincount([source for source, _ in cells], minlength=len(states))
    gap = int(np.argmax(leaving < len(symbols)))
    symbol = next(name for a, name in enumerate(symbols) if (gap, a) not in cells)
    others = wanted - len(cells) - 1
    more = f" ({others} more {'is' if others == 1 else 'are'} missing)" if others else ""
    raise reading.error(
        f"state {shown(states[gap].name)} has no transition on {shown(symbol)}{more}; add it, "
        'or pass missing="sink" to lead there to a new dead state, or missing="loop" to stay.',
        states[gap].line,
    )

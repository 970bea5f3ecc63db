"""BA (.ba), the format of RABIT and AutomataLib: an acceptor of symbols, one transition per line.

    start                   the start; when absent, the source of the first transition
    symbol,source->target
    state                   an accepting state; when there is none, all states accept

Read as a DFA over finite words. States and symbols are ordered by value when all of them are whole numbers, else
by first appearance. It cannot represent: outputs other than reject, accept; a DFA that accepts nowhere; machines
without a start; other orders; names that are empty, have blanks around them, or hold `,`, `->` or a line break.
Writing such a machine is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from exactstate.automata.io.common import (
    DFA_OUTPUTS,
    Reading,
    State,
    Step,
    assemble,
    cannot_represent,
    kind_of,
    naturally,
    refuse_names,
    shown,
)
from exactstate.automata.machine import Moore, Semiautomaton

_NAME = r"[^,>]+?"
_ARC = re.compile(rf"({_NAME}),({_NAME})->({_NAME})")


def to_ba(machine: Semiautomaton) -> str:
    """The machine as BA text."""
    if kind_of(machine) != "dfa":
        raise cannot_represent("BA", "DFAs only", f"this is a {kind_of(machine)}")
    assert isinstance(machine, Moore)
    if not machine.readout.any():
        raise cannot_represent("BA", "DFAs that accept somewhere", "a file without accepting states accepts everywhere")
    for kind, names in (("state", machine.states), ("symbol", machine.symbols)):
        refuse_names("BA", kind, names, lambda name: bool(re.fullmatch(_NAME, name)) and name.strip() == name
                     and len(name.splitlines()) == 1)  # fmt: skip
    return "\n".join([*_lines(machine), ""])


def _lines(machine: Moore) -> Iterator[str]:
    states = machine.states
    yield states[machine.start]
    for q in [machine.start, *(q for q in range(machine.n_states) if q != machine.start)]:
        for symbol, target in zip(machine.symbols, machine.tables[:, q], strict=True):
            yield f"{symbol},{states[q]}->{states[target]}"
    yield from (name for name, accepts in zip(states, machine.readout, strict=True) if accepts)


def read(reading: Reading) -> Semiautomaton:
    """The machine that the text describes."""
    if reading.kind not in (None, "dfa"):
        raise reading.error(f'BA holds a dfa; it cannot be read with kind="{reading.kind}".')
    rows = [(line, row.strip()) for line, row in enumerate(reading.text.split("\n"), 1) if row.strip()]
    arcs: list[tuple[int, str, str, str]] = []
    alone: list[tuple[int, str]] = []
    start = None
    for line, row in rows:
        arc = _ARC.fullmatch(row)
        if arc:
            if alone:
                raise reading.error(f"a transition after the accepting state on line {alone[0][0]}.", line)
            symbol, source, target = (part.strip() for part in arc.groups())
            arcs.append((line, symbol, source, target))
        elif not re.fullmatch(_NAME, row):
            raise reading.error(f"{shown(row)} is neither a state nor symbol,source->target.", line)
        elif arcs:
            alone.append((line, row))
        elif start is None:
            start = row
        else:
            raise reading.error(f"two states before the first transition; the second is {shown(row)}.", line)
    if not arcs:
        raise reading.error("there is no transition in it, so there is no machine.")

    first: dict[str, int] = {}
    for line, _, source, target in arcs:
        first.setdefault(source, line)
        first.setdefault(target, line)
    for line, name in [(rows[0][0], start or arcs[0][2]), *alone]:
        if name not in first:
            raise reading.error(f"the state {shown(name)} is on no transition.", line)
    names = naturally(first)
    number = {name: q for q, name in enumerate(names)}
    accepting = {name for _, name in alone} or set(names)
    return assemble(
        reading,
        [State(name, first[name], DFA_OUTPUTS[name in accepting]) for name in names],
        [Step(number[source], symbol, number[target], line) for line, symbol, source, target in arcs],
        start=number[start or arcs[0][2]],
        symbols=naturally(symbol for _, symbol, _, _ in arcs),
        outputs=DFA_OUTPUTS,
    )


def looks_like(text: str) -> bool:
    return any(_ARC.fullmatch(row.strip()) for row in text[:1000].split("\n")[:3])

"""AT&T text (.att), the format of OpenFst and of MLRegTest: one transition or one final state per line.

    source target symbol            or    source target input output            columns separated by tabs or blanks
    state                                 a final state

The first state of the first line is the start. With input = output on every line the file is a DFA whose accepting
states are the final ones; otherwise it is a Mealy machine. States, symbols and outputs are ordered by value when
all of them are whole numbers, as OpenFst has them, else by first appearance.

It cannot represent: names that are empty or hold blanks; other orders; unused outputs; Moore machines that are not
DFAs; machines without a start; Mealy machines that only repeat their input. Writing such a machine is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from exactstate.automata.machine import Mealy, Moore, Semiautomaton

EPSILONS = ("<eps>", "<epsilon>", "@0@", "ε")
"""Names under which OpenFst and foma write the empty word."""


def to_att(machine: Semiautomaton) -> str:
    """The machine as AT&T text, with four columns."""
    if not isinstance(machine, Mealy) and kind_of(machine) != "dfa":
        raise cannot_represent("AT&T text", "Mealy machines and DFAs only", f"this is a {kind_of(machine)}")
    assert isinstance(machine, Moore | Mealy)
    outputs = machine.outputs if isinstance(machine, Mealy) else ()
    for kind, names in (("state", machine.states), ("symbol", machine.symbols), ("output", outputs)):
        refuse_names("AT&T text", kind, names, lambda name: len(name.split()) == 1 and name.split()[0] == name)
        if kind != "state":
            refuse_names("AT&T text", kind, names, lambda name: name not in EPSILONS, why="stands for the empty word")
            if "0" in names and all(map(str.isdigit, names)):
                raise cannot_represent(
                    "AT&T text", "numbers above 0 as symbols", f"0 is the empty word to OpenFst ({kind})"
                )
    return "\n".join([*_lines(machine), ""])


def _lines(machine: Moore | Mealy) -> Iterator[str]:
    states, symbols = machine.states, machine.symbols
    for q in [machine.start, *(q for q in range(machine.n_states) if q != machine.start)]:
        for a, symbol in enumerate(symbols):
            output = machine.outputs[machine.readout[a, q]] if isinstance(machine, Mealy) else symbol
            yield f"{states[q]}\t{states[machine.tables[a, q]]}\t{symbol}\t{output}"
    yield from (name for q, name in enumerate(states) if isinstance(machine, Mealy) or machine.readout[q])


def read(reading: Reading) -> Semiautomaton:
    """The machine that the text describes."""
    rows = list(_rows(reading))
    arcs = [(line, row) for line, row in rows if len(row) > 2]
    if not arcs:
        raise reading.error("there is no transition in it, so there is no machine.")
    first: dict[str, int] = {}
    for line, (source, target, *_) in arcs:
        first.setdefault(source, line)
        first.setdefault(target, line)
    final = {row[0] for line, row in rows if _is_final(reading, line, row, first)}

    names = naturally(first)
    number = {name: q for q, name in enumerate(names)}
    symbols, outputs = naturally(row[2] for _, row in arcs), naturally(row[-1] for _, row in arcs)
    _check_epsilon(reading, arcs, symbols, outputs)
    mealy = _is_mealy(reading, arcs)
    if mealy and len(final) < len(names):
        state = next(name for name in names if name not in final)
        reading.note(f"state {shown(state)} is not final; a Mealy machine has outputs in every state.", first[state])
    # states with outputs would be assembled into a DFA
    states = [State(name, first[name], None if mealy else DFA_OUTPUTS[name in final]) for name in names]
    steps = [Step(number[row[0]], row[2], number[row[1]], line, row[3] if mealy else None) for line, row in arcs]
    return assemble(
        reading, states, steps, start=number[rows[0][1][0]], symbols=symbols, outputs=outputs if mealy else DFA_OUTPUTS
    )


def looks_like(text: str) -> bool:
    columns = text[:1000].lstrip().split("\n")[0].split()
    # any four words could be a transition, so unknown text counts only with OpenFst's numbers for states
    return len(columns) in (3, 4) and columns[0].isdigit() and columns[1].isdigit()


def _is_mealy(reading: Reading, arcs: Sequence[tuple[int, list[str]]]) -> bool:
    mealy = reading.kind == "mealy" or (reading.kind is None and any(row[2] != row[-1] for _, row in arcs))
    if reading.kind in ("moore", "semiautomaton"):
        raise reading.error(f'AT&T text holds a dfa or a mealy machine; it cannot be read with kind="{reading.kind}".')
    for line, row in arcs:
        if not mealy and row[2] != row[-1]:
            raise reading.error(f"input {shown(row[2])} and output {shown(row[-1])} differ in a dfa.", line)
        if mealy and len(row) == 3:
            raise reading.error("a mealy machine needs four columns: source, target, input, output.", line)
    return mealy


def _rows(reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """The columns of every line that has some; all transitions have the same number of them."""
    first, width = 0, 0
    for line, text in enumerate(reading.text.split("\n"), 1):
        row = text.split()
        if len(row) > 4:
            raise reading.error(f"{len(row)} columns; wanted source, target, input and output, and no weight.", line)
        if len(row) > 2:
            first, width = first or line, width or len(row)
            if len(row) != width:
                raise reading.error(f"{len(row)} columns here, {width} on line {first}; wanted one number.", line)
        if row:
            yield line, row


def _is_final(reading: Reading, line: int, row: list[str], known: dict[str, int]) -> bool:
    if len(row) > 2:
        return False
    if row[0] not in known:
        raise reading.error(f"the final state {shown(row[0])} is on no transition.", line)
    if len(row) == 2 and row[1].strip("0") not in ("", "."):
        raise reading.error(f"the final state {shown(row[0])} has the weight {shown(row[1])}; wanted none.", line)
    return True


def _check_epsilon(reading: Reading, arcs: Sequence[tuple[int, list[str]]], *alphabets: list[str]) -> None:
    for line, row in arcs:
        for name in row[2:]:
            if name in EPSILONS:
                raise reading.error(f"{shown(name)} is the empty word; a machine reads a symbol at every step.", line)
    if any("0" in names and all(map(str.isdigit, names)) for names in alphabets):
        reading.note("0 was read as a symbol; OpenFst without symbol tables takes it for the empty word.")

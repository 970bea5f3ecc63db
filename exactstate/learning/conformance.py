"""Check a log against a machine: the first line that departs, and how often each transition was taken. Streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from exactstate._text import one_line
from exactstate._types import Ints
from exactstate.automata import Mealy, Moore, format_word
from exactstate.learning.logs import LABELS, Trace


@dataclass(frozen=True)
class Departure:
    """Where a trace leaves the machine."""

    line: int
    position: int
    """The number of the input in its trace, from 1; 0 for the output before the first."""
    inputs: tuple[str, ...]
    """Up to and with that input."""
    state: str
    """Of the machine before it."""
    expected: str | None
    """None where the machine does not know the input."""
    seen: str

    def explain(self) -> str:
        if self.expected is None:
            return (
                f"line {self.line}: input {self.position} is {self.inputs[-1]!r}, which the machine does not read "
                f"(in state {one_line(self.state)})"
            )
        return (
            f"line {self.line}: after {format_word(self.inputs)} the machine outputs {self.expected!r} (in state "
            f"{one_line(self.state)}), the log has {self.seen!r}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Conformance:
    """What a log shows of a machine; true if it conforms."""

    machine: Moore | Mealy
    traces: int
    symbols: int
    departing: int
    """Traces with a difference."""
    first: Departure | None
    covered: Ints
    """A n: how often each transition was taken, up to a difference."""

    def __bool__(self) -> bool:
        return self.first is None

    @property
    def coverage(self) -> float:
        """The share of transitions that were taken."""
        return float((self.covered > 0).mean())

    def explain(self) -> str:
        taken, size = int((self.covered > 0).sum()), self.covered.size
        summary = f"{taken} of {size} transitions are covered"
        if self.first is None:
            return f"conforms: {self.traces:,} traces with {self.symbols:,} symbols; {summary}."
        return f"departs: {self.first.explain()}.\n{self.departing:,} of {self.traces:,} traces depart; {summary}."

    def rows(self) -> list[dict[str, object]]:
        """One row for every transition: how often it was taken."""
        machine = self.machine.to_mealy()
        return [
            {
                "state": machine.states[q], "symbol": symbol, "output": machine.outputs[int(machine.readout[a, q])],
                "target": machine.states[int(machine.tables[a, q])], "count": int(self.covered[a, q]),
            }
            for q in range(machine.n_states)
            for a, symbol in enumerate(machine.symbols)
        ]  # fmt: skip


def conform(
    machine: Moore | Mealy, traces: Iterable[Trace], *, watch: Callable[[int, int], None] | None = None
) -> Conformance:
    """Run every trace through the machine and compare outputs; a trace is left where it departs."""
    mealy = machine.to_mealy()
    number = {name: a for a, name in enumerate(mealy.symbols)}
    tables, readout, outputs = mealy.tables.tolist(), mealy.readout.tolist(), mealy.outputs
    is_dfa = isinstance(machine, Moore) and set(machine.outputs) == {"accept", "reject"}
    covered = [[0] * mealy.n_states for _ in range(mealy.n_symbols)]
    count = symbols = departing = 0
    first: Departure | None = None
    for trace in traces:
        count += 1
        state, departure = mealy.start, None
        if trace.initial is not None and isinstance(machine, Moore):
            wanted = machine.outputs[int(machine.readout[machine.start])]
            seen = LABELS.get(trace.initial.lower(), trace.initial) if is_dfa else trace.initial
            if seen != wanted:
                departure = Departure(trace.line, 0, (), machine.states[state], wanted, trace.initial)
        steps = zip(trace.inputs, trace.outputs, strict=True) if departure is None else iter(())
        for position, (name, output) in enumerate(steps, start=1):
            a = number.get(name)
            symbols += 1
            if a is None:
                word = tuple(trace.inputs[:position])
                departure = Departure(trace.line, position, word, mealy.states[state], None, str(output))
                break
            wanted = outputs[readout[a][state]]
            if output is not None and output != wanted and not (is_dfa and LABELS.get(output.lower()) == wanted):
                word = tuple(trace.inputs[:position])
                departure = Departure(trace.line, position, word, mealy.states[state], wanted, output)
                break
            covered[a][state] += 1
            state = tables[a][state]
        if departure is not None:
            departing += 1
            first = first or departure
        if watch is not None and count % 1000 == 0:
            watch(count, symbols)
    return Conformance(
        machine=machine, traces=count, symbols=symbols, departing=departing, first=first, covered=np.array(covered)
    )

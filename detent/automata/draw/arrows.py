"""What a diagram says of a machine: one arrow per pair of states, its symbols merged, its label short enough.

    A  symbols     n  states

Two arrows that undo each other with the same label (a transposition, seen from both ends) become one with two heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from detent.automata.machine import Mealy, Moore, Semiautomaton

LINES, CODED_LINES = 3, 5
"""Lines of a label; what does not fit is counted."""
WIDTH = 18
"""Characters of a line."""


@dataclass(frozen=True, slots=True)
class Arrow:
    source: int
    target: int
    symbols: tuple[int, ...]
    label: str
    both_ways: bool = False
    """Whether it has a head at each end."""

    @property
    def is_loop(self) -> bool:
        return self.source == self.target


def arrows_of(machine: Semiautomaton, *, coded: bool = False) -> list[Arrow]:
    """The arrows of the machine, self-loops included, in order of source and first symbol.

    Coded labels say A, B, ... for the symbols and 1, 2, ... for the outputs; `codes` is the key to them.
    """
    merged: dict[tuple[int, int], list[int]] = {}
    for q, row in enumerate(machine.tables.T.tolist()):
        for a, target in enumerate(row):
            merged.setdefault((q, target), []).append(a)
    labels = {ends: _label(machine, ends[0], symbols, coded) for ends, symbols in merged.items()}
    arrows = []
    for (q, target), symbols in merged.items():
        back = merged.get((target, q))
        undone = q != target and back == symbols and labels[target, q] == labels[q, target]
        if not undone or q < target:
            arrows.append(Arrow(q, target, tuple(symbols), labels[q, target], undone))
    return arrows


def can_be_coded(machine: Semiautomaton) -> bool:
    return machine.n_symbols <= 26 and (not isinstance(machine, Mealy) or len(machine.outputs) <= 40)


def codes(machine: Semiautomaton) -> list[str]:
    """The key to coded labels: what every letter and number stands for."""
    key = [f"{_letter(a)} = {brief(name, 60)}" for a, name in enumerate(machine.symbols)]
    if isinstance(machine, Mealy):
        key += [f"{b + 1} = {brief(name, 60)}" for b, name in enumerate(machine.outputs)]
    return key


def node_labels(machine: Semiautomaton, width: int) -> list[tuple[str, str]]:
    """(name, output) of every state; the output is empty where there is none, or where it is the name.

    Names that would not be told apart after shortening give way to numbers.
    """
    names = [brief(name, width) for name in machine.states]
    if len(set(names)) < len(names):
        names = [str(q) for q in range(len(names))]
    if not isinstance(machine, Moore) or machine.outputs == ("reject", "accept"):
        return [(name, "") for name in names]
    outputs = [machine.outputs[b] for b in machine.readout]
    if tuple(outputs) == machine.states:
        return [(name, "") for name in names]
    return [(name, brief(output, width)) for name, output in zip(names, outputs, strict=True)]


def brief(name: str, width: int = WIDTH) -> str:
    """The name, printable and not longer than this; what is left out is left out in the middle."""
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    tail = (width - 1) // 3
    return visible if len(visible) <= width else visible[: width - 1 - tail] + "…" + visible[-tail:]


def _label(machine: Semiautomaton, q: int, symbols: Sequence[int], coded: bool) -> str:
    """The symbols, and for a Mealy machine what is said: side by side if they fit, else one below the other."""
    if not isinstance(machine, Mealy):
        told = [_together(machine, symbols, coded)] if coded else [machine.symbols[a] for a in symbols]
    else:
        said: dict[int, list[int]] = {}
        for a in symbols:
            said.setdefault(int(machine.readout[a, q]), []).append(a)
        # inputs with the same answer share it: a, b / 0
        told = [
            f"{_together(machine, inputs, True)}/{b + 1}" if coded
            else f"{_together(machine, inputs, False)} / {machine.outputs[b]}"
            for b, inputs in said.items()
        ]  # fmt: skip
    if sum(map(len, told)) + 2 * len(told) <= WIDTH:
        return brief(("; " if coded else ", ").join(told))
    most = CODED_LINES if coded else LINES
    shown = [brief(one) for one in told[: most if len(told) <= most else most - 1]]
    return "\n".join(shown + [f"+ {len(told) - len(shown)} more"] * (len(told) > len(shown)))


def _together(machine: Semiautomaton, symbols: Sequence[int], coded: bool) -> str:
    """Several symbols in a row; coded, with runs such as A-D."""
    if not coded:
        return ", ".join(machine.symbols[a] for a in symbols)
    runs = []
    for _, members in groupby(enumerate(symbols), lambda pair: pair[1] - pair[0]):
        run = [_letter(a) for _, a in members]
        runs += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
    return ",".join(runs)


def _letter(a: int) -> str:
    return chr(ord("A") + a)

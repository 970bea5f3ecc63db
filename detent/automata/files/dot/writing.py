"""Write a machine as DOT that Graphviz draws, LearnLib and AALpy read, and our reader reads back exactly.

The order of states is the order of the node lines; the order of symbols is the order of the edges that leave the
first state. A DFA (a Moore machine with outputs reject, accept) marks accepting states by double circles; outputs
in an order of their own are listed in the graph attribute detent_outputs. Names: see `labels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np

from detent.automata.files.dot.labels import escape
from detent.automata.files.reading import kind_of, one_of
from detent.automata.machine import Mealy, Moore, Semiautomaton

Dialect = Literal["learnlib", "aalpy"]


def to_dot(machine: Semiautomaton, *, dialect: Dialect = "learnlib", merge: bool = False) -> str:
    """The machine as DOT text.

    The dialects differ for Moore machines only: LearnLib writes the label `name / output`, AALpy and AutomataWiki
    the record `name|output`. With `merge`, parallel edges are one arrow with a label of several lines, which is
    better to look at and which only our reader takes apart again.
    """
    one_of("dialect", dialect, get_args(Dialect))
    lines = ["digraph machine {", *_header(machine, merge)]
    lines += [f"\ts{q} [{look}];" for q, look in enumerate(_looks(machine, dialect))]
    lines += _edges(machine, merge)
    if isinstance(machine, Moore | Mealy):
        lines += ['\t__start0 [label="" shape="none" width="0" height="0"];', f"\t__start0 -> s{machine.start};"]
    return "\n".join([*lines, "}", ""])


def _header(machine: Semiautomaton, merge: bool) -> Iterator[str]:
    """The mark of our own files, and the orders that the order of lines does not show."""
    yield f'\tdetent_machine="{kind_of(machine)}";'
    if merge:
        yield f'\tdetent_symbols="{_listed(machine.symbols)}";'
    if isinstance(machine, Moore | Mealy) and kind_of(machine) != "dfa":
        # states, and for Mealy the symbols within a state, in the order in which the lines come
        told = np.ravel(machine.readout.T)
        _, first = np.unique(told, return_index=True)
        if told[np.sort(first)].tolist() != list(range(len(machine.outputs))) or merge:
            yield f'\tdetent_outputs="{_listed(machine.outputs)}";'


def _listed(names: Iterable[str]) -> str:
    return "|".join(escape(name, "|") for name in names)


def _looks(machine: Semiautomaton, dialect: Dialect) -> Iterator[str]:
    """The attributes of every state."""
    kind = kind_of(machine)
    for q, name in enumerate(machine.states):
        label = escape(name, "/|{}<>" if kind == "moore" else "")
        if not isinstance(machine, Moore):
            yield f'shape="circle" label="{label}"'
        elif kind == "dfa":
            yield f'shape="{"doublecircle" if machine.readout[q] else "circle"}" label="{label}"'
        elif dialect == "learnlib":
            yield f'shape="circle" label="{label} / {escape(machine.outputs[machine.readout[q]])}"'
        else:
            output = escape(machine.outputs[machine.readout[q]], "|{}<>")
            yield f'shape="record" style="rounded" label="{label}|{output}"'


def _edges(machine: Semiautomaton, merge: bool) -> Iterator[str]:
    """One line per transition, or per pair of states; states in order, symbols in order."""
    tables = machine.tables.T.tolist()
    symbols = [escape(name, "/" if isinstance(machine, Mealy) else "") for name in machine.symbols]
    labels = [symbols] * machine.n_states
    if isinstance(machine, Mealy):
        outputs = [escape(name) for name in machine.outputs]
        labels = [[f"{a}/{outputs[b]}" for a, b in zip(symbols, row, strict=True)] for row in machine.readout.T]
    told: Iterable[tuple[int, str]]
    for q, (row, said) in enumerate(zip(tables, labels, strict=True)):
        if merge:
            arrows: dict[int, list[str]] = {}
            for target, label in zip(row, said, strict=True):
                arrows.setdefault(target, []).append(label)
            told = ((target, "\\n".join(lines)) for target, lines in arrows.items())
        else:
            told = zip(row, said, strict=True)
        yield from (f'\ts{q} -> s{target} [label="{label}"];' for target, label in told)

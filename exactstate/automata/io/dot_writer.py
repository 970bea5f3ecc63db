"""Write a machine as DOT, and read such files back exactly.

The files are drawn by Graphviz, read by LearnLib and AALpy, and marked by the graph attribute
exactstate_machine=KIND, so that `own_machine` reads back every name and every order without guessing. They may be
edited: lines added, moved or removed are read as they are.

A name is written unchanged, except that unprintable characters, quotes, backslashes, percent signs, outer blanks and
the separators that could follow it are percent-encoded UTF-8: `a/b` becomes `a%2Fb`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args
from urllib.parse import quote, unquote

import numpy as np

from exactstate.automata.io.common import DFA_OUTPUTS, Kind, Reading, State, Step, assemble, kind_of, one_of, shown
from exactstate.automata.io.dot_parser import Graph, Node
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.errors import InvalidMachine

Dialect = Literal["learnlib", "aalpy"]


def to_dot(machine: Semiautomaton, *, dialect: Dialect = "learnlib") -> str:
    """The machine as DOT text.

    The dialects differ for Moore machines only: LearnLib writes the label `name / output`, AALpy and AutomataWiki
    the record `name|output`.
    """
    one_of("dialect", dialect, get_args(Dialect))
    lines = ["digraph machine {", *_header(machine)]
    lines += [f"\ts{q} [{look}];" for q, look in enumerate(_looks(machine, dialect))]
    lines += _edges(machine)
    if isinstance(machine, Moore | Mealy):
        lines += ['\t__start0 [label="" shape="none" width="0" height="0"];', f"\t__start0 -> s{machine.start};"]
    return "\n".join([*lines, "}", ""])


def _header(machine: Semiautomaton) -> Iterator[str]:
    """The mark of our own files, and the orders that the order of lines does not give."""
    yield f'\texactstate_machine="{kind_of(machine)}";'
    if isinstance(machine, Moore | Mealy) and kind_of(machine) != "dfa":
        # states, and for Mealy the symbols within a state, in the order in which the lines come
        readout = np.ravel(machine.readout.T)
        _, first = np.unique(readout, return_index=True)
        if readout[np.sort(first)].tolist() != list(range(len(machine.outputs))):
            yield f'\texactstate_outputs="{"|".join(escape(name, "|") for name in machine.outputs)}";'


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


def _edges(machine: Semiautomaton) -> Iterator[str]:
    """One line per transition; states in order, symbols in order."""
    symbols = [escape(name, "/" if isinstance(machine, Mealy) else "") for name in machine.symbols]
    labels = [symbols] * machine.n_states
    if isinstance(machine, Mealy):
        outputs = [escape(name) for name in machine.outputs]
        labels = [[f"{a}/{outputs[b]}" for a, b in zip(symbols, row, strict=True)] for row in machine.readout.T]
    for q, (row, row_labels) in enumerate(zip(machine.tables.T.tolist(), labels, strict=True)):
        for target, label in zip(row, row_labels, strict=True):
            yield f'\ts{q} -> s{target} [label="{label}"];'


_MARKER = "__start0"


def own_machine(reading: Reading, graph: Graph) -> Semiautomaton:
    kind = graph.attributes["exactstate_machine"]
    if kind not in get_args(Kind):
        raise reading.error(f"exactstate_machine={shown(kind)} is not one of {', '.join(get_args(Kind))}.")
    if reading.kind not in (None, kind):
        raise reading.error(f'the file says it is a {kind}; it cannot be read with kind="{reading.kind}".')
    nodes = graph.ordered(without=(_MARKER,))
    number = {node.name: q for q, node in enumerate(nodes)}
    starts = [edge for edge in graph.edges if edge.source == _MARKER]
    if len(starts) != (kind != "semiautomaton"):
        raise reading.error(f"a {kind} has {int(kind != 'semiautomaton')} start arrows; this file has {len(starts)}.")
    if starts and starts[0].target == _MARKER:
        raise reading.error("the start marker points at itself, which is not a state.", starts[0].line)
    states = [_state(reading, node, kind) for node in nodes]
    _refuse_twins(reading, states)
    steps = []
    for edge in graph.edges:
        if edge.source == _MARKER:
            continue
        if edge.target == _MARKER or "label" not in edge.attributes:
            raise reading.error(f"the edge {shown(edge.source)} -> {shown(edge.target)} is no transition.", edge.line)
        for label in edge.attributes["label"].split("\\n"):
            symbol, output = _cut(reading, label, "/", edge.line) if kind == "mealy" else (label, None)
            steps.append(
                Step(
                    number[edge.source], _name(reading, symbol, edge.line), number[edge.target], edge.line,
                    None if output is None else _name(reading, output, edge.line),
                )
            )  # fmt: skip
    return assemble(
        reading, states, steps,
        start=number[starts[0].target] if starts else None,
        symbols=_list(reading, graph, "exactstate_symbols"),
        outputs=DFA_OUTPUTS if kind == "dfa" else _list(reading, graph, "exactstate_outputs"),
    )  # fmt: skip


def _state(reading: Reading, node: Node, kind: str) -> State:
    label, output = node.attributes.get("label", node.name), None
    if kind == "moore":
        label, output = _cut(reading, label, "|" if node.attributes.get("shape") == "record" else "/", node.line)
        output = _name(reading, output, node.line)
    elif kind == "dfa":
        output = DFA_OUTPUTS[node.attributes.get("shape") == "doublecircle"]
    return State(_name(reading, label, node.line), node.line, output)


def _refuse_twins(reading: Reading, states: list[State]) -> None:
    seen: dict[str, State] = {}
    for state in states:
        twin = seen.setdefault(state.name, state)
        if twin is not state:
            sentence = f"two states are named {shown(state.name)} (the other on line {twin.line})."
            raise reading.error(sentence, state.line)


def _cut(reading: Reading, label: str, at: str, line: int) -> tuple[str, str]:
    before, found, after = label.partition(at)
    if not found:
        raise reading.error(f"the label {shown(label)} lacks its '{at}' and output.", line)
    return before, after


def _list(reading: Reading, graph: Graph, attribute: str) -> list[str]:
    written = graph.attributes.get(attribute)
    return [] if written is None else [_name(reading, name, 1) for name in written.split("|")]


def _name(reading: Reading, written: str, line: int) -> str:
    try:
        return unescape(written)
    except UnicodeDecodeError:
        raise reading.error(f"{shown(written)} is not percent-encoded UTF-8.", line) from None


_ORDINARY = re.compile(r"[\w!$&'()*+,\-.:;=?@\[\]^`~#]*", re.ASCII)
_UNSAFE = frozenset('"\\%')


def escape(name: str, separators: str = "") -> str:
    """The name as our own files write it, safe before any of the separators."""
    if _ORDINARY.fullmatch(name):
        return name
    unsafe = _UNSAFE.union(separators)
    try:
        safe = "".join(quote(c, safe="") if c in unsafe or not c.isprintable() else c for c in name)
    except UnicodeEncodeError:
        raise InvalidMachine(f"the name {name!r} holds half a surrogate pair, which no text file can hold.") from None
    inner = safe.strip(" ")
    before = len(safe) - len(safe.lstrip(" "))
    return "%20" * before + inner + "%20" * (len(safe) - before - len(inner))


def unescape(written: str) -> str:
    """The name behind what `escape` wrote; blanks around it are not part of it."""
    return unquote(written.strip(" "), errors="strict") if "%" in written else written.strip(" ")

"""Read the DOT that `writing` wrote, exactly: every name and every order, with nothing to guess.

Such a file says detent_machine=KIND. It may have been edited: lines added, moved or removed are read as they stand.
"""

from __future__ import annotations

from typing import get_args

from detent.automata.files.assembly import State, Step, assemble
from detent.automata.files.dot.graph import Graph, Node
from detent.automata.files.dot.labels import unescape
from detent.automata.files.reading import DFA_OUTPUTS, Kind, Reading, shown
from detent.automata.machine import Semiautomaton

_MARKER = "__start0"


def own_machine(reading: Reading, graph: Graph) -> Semiautomaton:
    kind = graph.attributes["detent_machine"]
    if kind not in get_args(Kind):
        raise reading.error(f"detent_machine={shown(kind)} is not one of {', '.join(get_args(Kind))}.")
    if reading.kind not in (None, kind):
        raise reading.error(f'the file says it is a {kind}; it cannot be read with kind="{reading.kind}".')
    nodes = graph.ordered(without=(_MARKER,))
    number = {node.name: q for q, node in enumerate(nodes)}
    starts = [edge for edge in graph.edges if edge.source == _MARKER]
    if len(starts) != (kind != "semiautomaton"):
        raise reading.error(f"a {kind} has {int(kind != 'semiautomaton')} start arrows; this file has {len(starts)}.")
    if starts and starts[0].target == _MARKER:
        raise reading.error("the start marker points at itself, which is no state.", starts[0].line)
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
        symbols=_list(reading, graph, "detent_symbols"),
        outputs=DFA_OUTPUTS if kind == "dfa" else _list(reading, graph, "detent_outputs"),
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

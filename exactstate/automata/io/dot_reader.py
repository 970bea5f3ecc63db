"""Read DOT: our own files exactly, those of LearnLib, AutomataWiki, AALpy and others by their conventions.

- Start: the edge out of a node named __start...; or out of an unlabeled node without a shape; or the state colored
  red; or the source of the first edge (AutomataWiki's old rule). The last three are ambiguous and noted.
- Kind: every state has an output (`{ A | 0 }`, `A|0` in a record, `A / 0`): Moore. Every edge has `in / out`: Mealy.
  Double circles: DFA. None of these: a DFA that accepts nothing if a start is marked, else a semiautomaton.
  A file that fits two kinds is refused until `kind=` decides.
- Names of states: their labels if those are all different, else the names of their nodes.
- Order: states by their lines, then by first mention; symbols and outputs by first edge.
- Labels: `in / out`, `in/out`, several on lines of their own (`\\n`, `<br/>`), inputs merged as `a | b`, inputs on the
  first line and the output on the second, records `{ name | output }`. Only a bar with blanks around it merges inputs:
  published models have inputs such as `state|0|b`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import get_args

from exactstate.automata.io.common import DFA_OUTPUTS, Kind, Reading, State, Step, assemble, shown
from exactstate.automata.io.dot_parser import Edge, Graph, Html, Node, parse_graph
from exactstate.automata.io.dot_writer import own_machine
from exactstate.automata.io.dot_writer import to_dot as text_of
from exactstate.automata.machine import Semiautomaton

__all__ = ["looks_like", "read", "text_of"]

_SHAPELESS = ("none", "point", "plaintext", "plain")


def read(reading: Reading) -> Semiautomaton:
    """The machine that the DOT text describes."""
    graph = parse_graph(reading)
    if "exactstate_machine" in graph.attributes:
        return own_machine(reading, graph)
    for key, kind in graph.attributes.items():
        if key.endswith("_machine") and kind in get_args(Kind):
            old = f"{shown(key)[1:-1]}={kind} marks a file of another program or an older version"
            raise reading.error(f"{old}; wanted exactstate_machine={kind}, with the same lines.", 1)
    return foreign_machine(reading, graph)


def looks_like(text: str) -> bool:
    """Whether text of an unknown kind is likely to be DOT."""
    words = text[:1000].lstrip().lower()
    return words.startswith(("digraph", "strict", "//", "/*", "#"))


def foreign_machine(reading: Reading, graph: Graph) -> Semiautomaton:
    markers = _start_markers(graph)
    nodes = graph.ordered(without=markers)
    undeclared = [node for node in nodes if node.name not in graph.declared]
    if 0 < len(undeclared) < len(nodes):
        more = f" (nor have {len(undeclared) - 1} more)" if len(undeclared) > 1 else ""
        sentence = f"state {shown(undeclared[0].name)} has no line of its own{more}; it was taken from its edges."
        reading.note(sentence, undeclared[0].line)
    edges = [edge for edge in graph.edges if edge.source not in markers]
    if not edges:
        raise reading.error("there is no transition in it, so there is no machine.")
    labels = [lines_of(edge.attributes.get("label", "")) for edge in edges]
    _refuse_odd_edges(reading, edges, labels, markers)

    marked = _marked_start(reading, graph, markers)
    kind = reading.kind or _kind(reading, nodes, edges, labels, marked is not None)
    states = _states(reading, nodes, kind)
    number = {node.name: q for q, node in enumerate(nodes)}
    steps = steps_of(reading, edges, labels, number, mealy=kind == "mealy")
    if kind == "semiautomaton":
        return assemble(reading, states, steps)
    start = marked if marked is not None else _unmarked_start(reading, nodes, edges)
    return assemble(reading, states, steps, start=number[start], outputs=DFA_OUTPUTS if kind == "dfa" else ())


def _start_markers(graph: Graph) -> set[str]:
    """Nodes that are not states but the tail of the arrow that marks the start."""
    named = {name for name in graph.nodes if name.startswith("__start")}
    if named:
        return named
    labelled = {edge.source for edge in graph.edges if lines_of(edge.attributes.get("label", ""))}
    entered = {edge.target for edge in graph.edges}
    leaving = {edge.source for edge in graph.edges} - labelled - entered
    return {name for name in leaving if _is_shapeless(graph.nodes[name])}


def _is_shapeless(node: Node) -> bool:
    return node.attributes.get("shape") in _SHAPELESS or "invis" in node.attributes.get("style", "")


def _refuse_odd_edges(reading: Reading, edges: list[Edge], labels: list[list[str]], markers: set[str]) -> None:
    for edge, lines in zip(edges, labels, strict=True):
        if lines and edge.target not in markers:
            continue
        reason = (
            "has no label, so no symbol leads along it"
            if not lines
            else "leads into the start marker, which is not a state"
        )
        raise reading.error(f"the edge {shown(edge.source)} -> {shown(edge.target)} {reason}.", edge.line)


def _marked_start(reading: Reading, graph: Graph, markers: set[str]) -> str | None:
    """The state to which the start marker points, if there is one."""
    pointing = [edge for edge in graph.edges if edge.source in markers]
    if not pointing:
        return None
    first, *others = pointing
    if first.target in markers:
        raise reading.error(f"the start marker points at {shown(first.target)}, which is not a state.", first.line)
    for edge in others:
        if edge.target != first.target:
            raise reading.error(
                f"two states are marked as the start: {shown(first.target)} (line {first.line}) and "
                f"{shown(edge.target)} (line {edge.line}); a machine has one.",
                edge.line,
            )
    if not first.source.startswith("__start"):
        sentence = f"the arrow out of {shown(first.source)}, a node without a shape, was taken to mark the start."
        reading.note(sentence, first.line)
    if lines_of(first.attributes.get("label", "")):
        reading.note("the arrow that marks the start has a label, which was ignored.", first.line)
    return first.target


def _unmarked_start(reading: Reading, nodes: list[Node], edges: list[Edge]) -> str:
    red = [node for node in nodes if node.attributes.get("color") == "red"]
    if len(red) == 1:
        reading.note(f"no arrow marks the start; {shown(red[0].name)} is colored red and was taken.", red[0].line)
        return red[0].name
    first = edges[0]
    sentence = f"nothing marks the start; {shown(first.source)}, where the first edge begins, was taken."
    reading.note(sentence, first.line)
    return first.source


def _accepts(node: Node) -> bool:
    return node.attributes.get("shape") == "doublecircle" or node.attributes.get("peripheries") == "2"


def _label(node: Node) -> str:
    return " ".join(lines_of(node.attributes.get("label", ""), node.name))


def _name_and_output(node: Node) -> tuple[str, str] | None:
    label = _label(node)
    if node.attributes.get("shape", "").lower().endswith("record") or (label[:1] == "{" and label[-1:] == "}"):
        return record(label)
    return in_and_out(label)


def _kind(reading: Reading, nodes: list[Node], edges: list[Edge], labels: list[list[str]], has_start: bool) -> Kind:
    double = next((node for node in nodes if _accepts(node)), None)
    has_output = [_name_and_output(node) is not None for node in nodes]
    slashed = [is_slashed(lines) for lines in labels]
    mealy = all(one or is_two_lined(lines) for one, lines in zip(slashed, labels, strict=True))

    if all(slashed) and (all(has_output) or double):
        other = "moore" if all(has_output) else "dfa"
        sign = "a / in every state" if all(has_output) else "double circles"
        raise reading.error(
            f'this may be a Mealy machine (every edge has in/out) or a {other} ({sign}); pass kind="mealy" or '
            f'kind="{other}".'
        )
    if all(has_output):
        if double:
            reading.note("every state has an output, so its double circle was ignored.", double.line)
        return "moore"
    if double:
        return "dfa"
    if mealy:
        return "mealy"
    if any(slashed):
        with_output, without = edges[slashed.index(True)], edges[slashed.index(False)]
        raise reading.error(
            f"the label {shown(without.attributes['label'])} has no output, while line {with_output.line} has "
            f'{shown(with_output.attributes["label"])}; add it, or pass kind="dfa" if / belongs to the symbol.',
            without.line,
        )
    if any(has_output):
        with_node, without_node = nodes[has_output.index(True)], nodes[has_output.index(False)]
        raise reading.error(
            f"state {shown(without_node.name)} has no output, while {shown(with_node.name)} has one (line "
            f'{with_node.line}); add it, or pass kind="dfa" if that is part of the name.',
            without_node.line,
        )
    if has_start:
        reading.note("a start is marked but no output and no double circle; read as a DFA that accepts nothing.")
        return "dfa"
    return "semiautomaton"


def _states(reading: Reading, nodes: list[Node], kind: Kind) -> list[State]:
    """Names from labels if these are distinct, and the outputs of a DFA or Moore machine."""
    names, outputs = [], []
    for node in nodes:
        name, output = _label(node), None
        if kind == "moore":
            both = _name_and_output(node)
            if both is None:
                raise reading.error(f"state {shown(node.name)} has no output; wanted name / output.", node.line)
            name, output = both
        elif kind == "dfa":
            output = DFA_OUTPUTS[_accepts(node)]
        names.append(name or node.name)
        outputs.append(output)
    if len(set(names)) < len(names):
        if any(_label(node) for node in nodes):
            reading.note("two states have the same label, so the states are named after their nodes.")
        names = [node.name for node in nodes]
    return [State(name, node.line, output) for name, node, output in zip(names, nodes, outputs, strict=True)]


def steps_of(
    reading: Reading, edges: Sequence[Edge], labels: list[list[str]], number: dict[str, int], *, mealy: bool
) -> list[Step]:
    """The steps of all edges, in order."""
    steps: list[Step] = []
    notes: dict[str, tuple[Edge, int]] = {}
    for edge, lines in zip(edges, labels, strict=True):
        source, target = number[edge.source], number[edge.target]
        pairs: list[tuple[str, str | None]] = [(line, None) for line in lines]
        stacked = mealy and not is_slashed(lines) and is_two_lined(lines)
        if stacked:
            pairs = [(lines[0], lines[1])]
        elif mealy:
            pairs = [_in_and_out(reading, line, edge) for line in lines]
        for inputs, output in pairs:
            symbols = merged(inputs) if " | " in inputs else [inputs]
            if not all(symbols):
                raise reading.error(f"the label {shown(inputs)} lacks an input.", edge.line)
            steps += [Step(source, symbol, target, edge.line, output) for symbol in symbols]
            if len(symbols) > 1:
                _count(notes, "was read as several inputs, separated by ' | '", edge)
        if stacked:
            _count(notes, "was read as input above, output below", edge)
        elif len(lines) > 1:
            _count(notes, "was read as several transitions, one per line", edge)
    for sentence, (edge, times) in notes.items():
        more = f" ({times - 1} more like it)" if times > 1 else ""
        reading.note(f"the label {shown(edge.attributes['label'])} {sentence}{more}.", edge.line)
    return steps


def _in_and_out(reading: Reading, line: str, edge: Edge) -> tuple[str, str]:
    both = in_and_out(line)
    if both is None:
        raise reading.error(f"the label {shown(line)} has no output; wanted in / out.", edge.line)
    if not both[0]:
        raise reading.error(f"the label {shown(line)} lacks an input; wanted in / out.", edge.line)
    return both


def _count(notes: dict[str, tuple[Edge, int]], sentence: str, edge: Edge) -> None:
    first, times = notes.get(sentence, (edge, 0))
    notes[sentence] = (first, times + 1)


def is_slashed(lines: list[str]) -> bool:
    """Whether every line has `in / out`."""
    return all("/" in line for line in lines)


def is_two_lined(lines: list[str]) -> bool:
    """Whether the first line may be inputs and the second their output."""
    return len(lines) == 2 and "/" not in lines[0]


# no two neighbors may match the same letters: that would take time in proportion to the square of the blanks
_BREAK = re.compile(r"<\s*(?:/\s*)?br\s*(?:/\s*)?>", re.IGNORECASE)
_LONG_NUMBER = re.compile(r"&#(?:0*[1-9]\d{7,}|[xX]0*[1-9a-fA-F][0-9a-fA-F]{6,});?")
"""Entities beyond the last letter of Unicode, some of which are too long for Python to read."""
_TAG = re.compile(r"<[^<>]*>")
_LABEL_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def lines_of(label: str, node: str = "") -> list[str]:
    """The lines of a label as it would be drawn, without outer blanks and empty lines."""
    if isinstance(label, Html):
        lines = [html.unescape(_LONG_NUMBER.sub("\ufffd", _TAG.sub("", line))) for line in _BREAK.split(label)]
    elif "\\" in label:
        lines = _LABEL_ESCAPE.sub(lambda escape: _drawn(escape.group(1), node), label).split("\n")
    else:
        lines = label.split("\n") if "\n" in label else [label]
    return [kept for line in lines if (kept := line.strip())]


def _drawn(after: str, node: str) -> str:
    return "\n" if after in "nlr" else node if after == "N" else after


def in_and_out(label: str) -> tuple[str, str] | None:
    """Cut `in / out` at the first slash with blanks around it, or else at the first slash."""
    before, slash, after = label.partition(" / ")
    if not slash:
        before, slash, after = label.partition("/")
    return (before.strip(), after.strip()) if slash else None


def record(label: str) -> tuple[str, str] | None:
    """Cut `{ name | output }` or `name|output` at the first bar; ports such as <f0> are dropped."""
    inside = label.strip()
    if inside.startswith("{") and inside.endswith("}"):
        inside = inside[1:-1]
    before, bar, after = _TAG.sub("", inside).partition("|")
    return (before.strip(), after.strip()) if bar else None


def merged(inputs: str) -> list[str]:
    """The inputs of `a | b | c`."""
    return [one.strip() for one in inputs.split(" | ")]

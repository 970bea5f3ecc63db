"""The syntax of DOT, and errors with their lines."""

from __future__ import annotations

import pytest

from exactstate.automata.io import parse_dot
from exactstate.automata.io.common import Reading
from exactstate.automata.io.dot_parser import parse_graph
from exactstate.errors import BrokenFile


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("hello\nworld", 1, "a DOT file begins with 'digraph'; this one with 'hello'"),
        ("// only a comment", 1, "a DOT file begins with 'digraph'; this one with nothing"),
        ("graph { a -- b }", 1, "a machine is a digraph; this graph has no directions"),
        ("digraph g\n", 2, "wanted '{', found the end of the file"),
        ("digraph {\n a ->\n}", 3, "wanted the state the arrow leads to, found '}'"),
        ("digraph {\n a -> b [label=x]\n", 3, "the file ends before the closing '}' of the graph"),
        ("digraph {\n a -> b [label=x\n}", 3, "wanted an attribute or ']', found '}'"),
        ("digraph {\n a -> b [label=]\n}", 2, "wanted a value, found ']'"),
        ("digraph {\n a -- b\n}", 2, "'--' has no direction; a machine needs '->'"),
        ('digraph {\n a -> b [label="x]\n}', 2, "the string that begins with '\"' is never closed"),
        ('digraph {\n a -> b [label="x\\"]\n}', 2, "the string that begins with '\"' is never closed"),
        ("digraph {\n a -> b [label=<x<br>]\n}", 2, "the HTML string that begins with '<' is never closed"),
        ("digraph {\n /* a -> b\n}", 2, r"the comment that begins with /\* is never closed"),
        ("digraph {\n a -> b [color=#ff0000]\n}", 2, "'#ff0000]' is not DOT; .* are written in quotes"),
        ("digraph {\n s-1 -> b\n}", 2, "'-1 -> b' is not DOT; .* are written in quotes"),
        ("digraph {\n a/b -> b\n}", 2, "'/b -> b' is not DOT"),
        ("digraph {\n a -> {b c}\n}", 2, "an edge to a group of nodes is not a transition; write one edge per node"),
        ("digraph {\n a -> b [label=x]\n}\ndigraph {}", 4, "the graph is closed, but the file goes on with 'digraph'"),
        ("digraph " + "{" * 500, 1, "groups are nested more than 100 deep"),
        ('digraph {\n a [label="x" + y]\n}', 2, r"wanted a string after '\+'"),
        ("digraph {\n a -> b\n}", 2, "the edge 'a' -> 'b' has no label, so no symbol leads along it"),
        ("digraph {\n __start0 -> a\n a -> __start0 [label=x]\n}", 3, "leads into the start marker"),
        ("digraph {\n __start0 -> __start1\n a -> a [label=x] }", 2, "points at '__start1', which is not a state"),
        ('digraph { exactstate_machine="dfa"\n __start0 -> __start0\n a -> a [label=x] }', 2, "points at itself"),
        ("digraph {\n a -> a [label=x]\n __start0 -> a\n __start1 -> b }", 4,
         r"two states are marked as the start: 'a' \(line 3\) and 'b' \(line 4\)"),
        ('digraph {\n __start0 -> a\n a -> a [label="/1"]\n}', 3, "the label '/1' lacks an input"),
        ('digraph {\n __start0 -> a\n a -> a [label="x/1"]\n a -> a [label="y"]\n}', 4,
         "the label 'y' has no output, while line 3 has 'x/1'"),
        ('digraph {\n a [label="{a|1}"]\n b\n a -> b [label=x]\n b -> a [label=x]\n}', 3,
         "state 'b' has no output, while 'a' has one"),
        ("digraph {\n a -> b [label=x]\n a -> a [label=x]\n}", 3,
         r"state 'a' goes on 'x' to 'b' \(line 2\) and to 'a' \(line 3\); a machine is deterministic"),
        ('digraph {\n a -> a [label="x/0"]\n\n a -> a [label="x/1"]\n}', 4,
         r"to 'a' with output '0' \(line 2\) and to 'a' with output '1' \(line 4\)"),
        ("digraph {\n a\n b\n a -> b [label=x]\n b -> a [label=y]\n a -> a [label=y]\n}", 3,
         'state \'b\' has no transition on \'x\'; add it, or pass missing="sink" .* or missing="loop"'),
        ("digraph {\n a -> b [label=x]\n b -> c [label=x]\n}", 3, "state 'c' has no transition on 'x'"),
    ],
)  # fmt: skip
def test_parse_dot_errors_have_one_sentence_and_the_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(BrokenFile, match=sentence) as caught:
        parse_dot(text, notes=[])
    assert caught.value.line == line
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"text, line {line}: ")


@pytest.mark.parametrize("text", ["digraph {}", "digraph { a b c }", "digraph { __start0 -> a }"])
def test_parse_dot_refuses_a_graph_without_transitions(text: str) -> None:
    with pytest.raises(BrokenFile, match="there is no transition in it, so there is no machine"):
        parse_dot(text)


@pytest.mark.parametrize(
    "text",
    [
        "DiGraph{a->b[label=x]b->a[label=x]}",
        "digraph 7 {a->b[label=x;color=red,weight=2 shape][style=bold]\n\n\tb->a[label=x];;;}",
        'digraph { "a" -> b [label="x"] "b" -> a [label="" + "x"] }',
        "digraph {\r\n a -> b [label=x]\r\n b -> a [label=x] # done\r\n}\r\n",
        "digraph { a -> b -> a [label=x] }",
        'digraph { a:port:ne -> b:sw [label=<x>] b -> a [label="\\\nx"] }',
        "digraph { { a -> b [label=x] } subgraph { } subgraph s { b -> a [label=x] } }",
        "digraph { a -> b [label=x] // b -> b [label=x]\n /* b -> c */ b -> a [label=x] }",
        'digraph { a [label="\\N"] a -> b [label=x] b [label="b"] b -> a [label=x] }',
    ],
)
def test_parse_dot_ways_to_write_the_same_machine(text: str) -> None:
    machine = parse_dot(text, notes=[])
    assert (machine.symbols, machine.states, machine.tables.tolist()) == (("x",), ("a", "b"), [[1, 0]])


@pytest.mark.parametrize("name", ["1", "-2", ".5", "1.5", "1a", "_x", "é", '"a b"', '"a->b"', '"}"', "<b>"])
def test_parse_graph_names_of_nodes(name: str) -> None:
    machine = parse_dot(f"digraph {{ {name} -> {name} [label=x] }}", strict=True)
    assert machine.states == (name.strip('"<>'),)


@pytest.mark.parametrize(
    "text",
    [
        'digraph {\n a -> b [label=x];\n"b" -> "c d" [label="y / z"]b->a[ label = "" ] ;\n\n c -> \n d [label=x]}',
        "digraph { edge [color=red] a -> b [label=x] edge [label=z] b -> c [label=y] }",
        "digraph { a -> b [label=x][style=bold] a -> c [label=x] [style=bold]; c -> c [label=x] }",
        "digraph { node [shape=box] a -> node [label=x]; a -> b [label=x] }",
        "digraph { a -> b [label=x] [label=y] ; { a -> b [label=z] } b }",
    ],
)
def test_parse_graph_fast_path_for_plain_edges_changes_nothing(text: str) -> None:
    """A comment before the arrow sends every edge the long way."""
    short, long = (parse_graph(Reading(text=way)) for way in (text, text.replace("->", "/**/ ->")))
    assert (short.nodes, short.declared, short.edges) == (long.nodes, long.declared, long.edges)
    assert len(short.edges) >= 2


def test_parse_dot_notes_a_repeated_step() -> None:
    notes: list[str] = []
    parse_dot("digraph {\n a -> a [label=x]\n a -> a [label=x]\n}", notes=notes)
    assert notes == ["line 3: the step of state 'a' on 'x' is written twice."]


def test_parse_dot_abbreviates_long_names() -> None:
    with pytest.raises(BrokenFile) as caught:
        parse_dot("digraph { " + "a" * 1_000_000 + " -> b [label=x] }")
    assert len(str(caught.value)) < 300


def test_parse_graph_with_many_defaults_keeps_few() -> None:
    """Every edge had a copy of all defaults: 285 KB of text took 2 GB."""
    defaults = ",".join(f"k{i}=1" for i in range(2_000))
    edges = "".join(f"a -> b:{i} [label=x{i}]; " for i in range(2_000))
    graph = parse_graph(Reading(text=f"digraph {{ node [{defaults}]; edge [{defaults}, color=red]; {edges} }}"))
    assert len(graph.edges) == 2_000
    assert all(edge.attributes == {"color": "red", "label": f"x{i}"} for i, edge in enumerate(graph.edges))
    assert all(node.attributes == {} for node in graph.nodes.values())


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_parse_graph_refuses_a_long_default_label_for_many(kind: str) -> None:
    label, some = "x\\n" * 20_000, "; ".join(f"n{i} -> n{i + 1}" for i in range(2_000))
    with pytest.raises(BrokenFile, match="a default label of 60,000 letters is repeated too often"):
        parse_graph(Reading(text=f'digraph {{ {kind} [label="{label}"]; {some} }}'))
    some = "; ".join(f"n{i} -> n{i + 1}" for i in range(10))
    assert len(parse_graph(Reading(text=f'digraph {{ {kind} [label="{label}"]; {some} }}')).edges) == 10

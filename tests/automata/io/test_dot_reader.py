"""DOT as LearnLib, AutomataWiki, AALpy and others write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, flip_flop, read_machine, to_dot
from exactstate.automata.io import AmbiguousFile, parse_dot
from exactstate.automata.io.dot_parser import Html
from exactstate.automata.io.dot_reader import lines_of
from exactstate.errors import BrokenFile

DIALECTS = Path(__file__).parent / "dialects"


def test_read_dot_learnlib_mealy() -> None:
    assert read_machine(DIALECTS / "learnlib_mealy.dot", strict=True) == Mealy(
        symbols=("push", "wait"), tables=[[1, 0], [0, 1]], outputs=("click", "quiet", "clack"),
        readout=[[0, 2], [1, 1]],
    )  # fmt: skip


def test_read_dot_learnlib_moore() -> None:
    assert read_machine(DIALECTS / "learnlib_moore.dot", strict=True) == Moore(
        symbols=("push", "wait"), tables=[[1, 0], [0, 1]], start=1, outputs=("dark", "bright"), readout=[0, 1]
    )


def test_read_dot_learnlib_dfa() -> None:
    assert read_machine(DIALECTS / "learnlib_dfa.dot", strict=True) == Moore(
        symbols=("a", "b"), tables=[[1, 1], [0, 0]], outputs=("reject", "accept"), readout=[0, 1]
    )


def test_read_dot_wiki_moore_records() -> None:
    assert read_machine(DIALECTS / "wiki_moore.dot", strict=True) == Moore(
        symbols=("x", "y"), tables=[[1, 0], [0, 1]], states=("A", "B"), outputs=("0", "1"), readout=[0, 1]
    )


def test_read_dot_aalpy_mealy() -> None:
    assert read_machine(DIALECTS / "aalpy_mealy.dot", strict=True) == Mealy(
        symbols=("coin", "button"), tables=[[1, 1], [0, 0]], states=("s0", "s1"), outputs=("ok", "beep", "coffee"),
        readout=[[0, 0], [1, 2]],
    )  # fmt: skip


def test_read_dot_aalpy_moore() -> None:
    assert read_machine(DIALECTS / "aalpy_moore.dot", strict=True) == Moore(
        symbols=("a", "b"), tables=[[1, 0], [0, 1]], states=("s0", "s1"), outputs=("0", "1"), readout=[0, 1]
    )


def test_read_dot_aalpy_dfa() -> None:
    assert read_machine(DIALECTS / "aalpy_dfa.dot", strict=True) == Moore(
        symbols=("0", "1"), tables=[[1, 1], [0, 0]], states=("s0", "s1"), outputs=("reject", "accept"),
        readout=[0, 1],
    )  # fmt: skip


def test_read_dot_old_wiki_rule_first_source_is_the_start() -> None:
    notes: list[str] = []
    machine = read_machine(DIALECTS / "wiki_old.dot", notes=notes)
    assert machine == Mealy(
        symbols=("PAY", "ASK"), tables=[[0, 0], [1, 1]], states=("s0", "s1"), start=1,
        outputs=("6D00", "a/b | c & (d) + [e]", "9000", ""), readout=[[2, 0], [3, 1]],
    )  # fmt: skip
    assert notes == ["line 6: nothing marks the start; 's1', where the first edge begins, was taken."]


def test_read_dot_red_state_is_the_start() -> None:
    notes: list[str] = []
    machine = read_machine(DIALECTS / "wiki_red.dot", notes=notes)
    assert isinstance(machine, Mealy)
    assert machine.states[machine.start] == "s1"
    assert notes == ["line 4: no arrow marks the start; 's1' is colored red and was taken."]


def test_read_dot_inputs_above_their_output() -> None:
    notes: list[str] = []
    machine = read_machine(DIALECTS / "stacked_html.dot", notes=notes)
    assert machine == Mealy(
        symbols=("Hello", "Done", "Data"), tables=[[1, 1], [0, 1], [0, 1]],
        outputs=("Welcome / Key", "Alert & Closed", "Empty"), readout=[[0, 2], [1, 2], [1, 2]],
    )  # fmt: skip
    assert notes == [
        "line 8: the arrow that marks the start has a label, which was ignored.",
        "line 5: the label 'Hello<br />Welcome / Key' was read as input above, output below (2 more like it).",
        "line 6: the label 'Done | Data<br />Alert &amp; <b>Closed</b>' was read as several inputs, "
        "separated by ' | ' (1 more like it).",
    ]


def test_read_dot_what_graphviz_allows() -> None:
    notes: list[str] = []
    machine = read_machine(DIALECTS / "by_hand.dot", notes=notes)
    assert machine == Moore(
        symbols=("a", "b", "c"), states=("2", "1"), tables=[[1, 0], [1, 1], [1, 1]], start=1,
        outputs=("reject", "accept"), readout=[1, 0],
    )  # fmt: skip
    assert [note.split(":")[0] for note in notes] == ["line 3", "line 12", "line 6", "line 6", "line 13"]


@pytest.mark.parametrize("name", ["wiki_old", "wiki_red", "stacked_html", "by_hand"])
def test_read_dot_strict_refuses_ambiguities(name: str) -> None:
    with pytest.raises(BrokenFile, match=r"line \d+: strict reading refuses this"):
        read_machine(DIALECTS / f"{name}.dot", strict=True)


def test_read_dot_ambiguities_are_warnings() -> None:
    with pytest.warns(AmbiguousFile, match=r"wiki_red.dot, line 4: no arrow marks the start"):
        read_machine(DIALECTS / "wiki_red.dot")


def test_read_dot_without_start_and_outputs_is_a_semiautomaton() -> None:
    machine = parse_dot("digraph { a -> b [label=x] b -> a [label=x] }", strict=True)
    assert machine == Semiautomaton(symbols=("x",), tables=[[1, 0]], states=("a", "b"))


def test_read_dot_start_alone_makes_a_dfa_that_accepts_nothing() -> None:
    notes: list[str] = []
    machine = parse_dot("digraph { __start0 -> a; a -> a [label=x] }", notes=notes)
    assert machine == Moore(symbols=("x",), tables=[[0]], states=("a",), outputs=("reject", "accept"), readout=[0])
    assert "accepts nothing" in notes[0]


@pytest.mark.parametrize(
    ("label", "cut"),
    [
        ("a / b / c", ("a", "b / c")),
        ("a/b / c", ("a/b", "c")),
        ("a/b/c", ("a", "b/c")),
        ("a /b", ("a", "b")),
        ("state|0|b / |r(TRUE,TRUE)|", ("state|0|b", "|r(TRUE,TRUE)|")),
        ("|Pds(On)| / ||", ("|Pds(On)|", "||")),
        ("a/", ("a", "")),
        ('say \\"hi\\" / a\\\\b', ('say "hi"', "a\\b")),
    ],
)  # fmt: skip
def test_read_dot_where_a_mealy_label_is_cut(label: str, cut: tuple[str, str]) -> None:
    machine = parse_dot(f'digraph {{ __start0 -> a; a -> a [label="{label}"] }}', strict=True)
    assert isinstance(machine, Mealy)
    assert (machine.symbols, machine.outputs) == ((cut[0],), (cut[1],))


@pytest.mark.parametrize("between", ["\\n", "\\l", "\\r", "\n", "<br/>", "<BR  />", "<br>"])
def test_read_dot_several_transitions_on_one_edge(between: str) -> None:
    label = f"<a / 0{between}b / 1>" if "<" in between else f'"a / 0{between}b / 1"'
    notes: list[str] = []
    machine = parse_dot(f"digraph {{ __start0 -> s; s -> s [label={label}] }}", notes=notes)
    assert machine == Mealy(
        symbols=("a", "b"), tables=[[0], [0]], states=("s",), outputs=("0", "1"), readout=[[0], [1]]
    )
    assert "was read as several transitions, one per line" in notes[0]


def test_read_dot_lines_are_symbols_in_a_dfa() -> None:
    notes: list[str] = []
    machine = parse_dot(r'digraph { __start0 -> s; s [shape=doublecircle] s -> s [label="a\nb"] }', notes=notes)
    assert machine.symbols == ("a", "b")


def test_read_dot_kind_resolves_ambiguities() -> None:
    text = 'digraph { __start0 -> s; s [shape=doublecircle] s -> s [label="a/b"] }'
    with pytest.raises(BrokenFile, match=r'Mealy machine .* or a dfa .*; pass kind="mealy" or kind="dfa"'):
        parse_dot(text)
    dfa, mealy = parse_dot(text, kind="dfa"), parse_dot(text, kind="mealy")
    assert isinstance(dfa, Moore)
    assert dfa.symbols == ("a/b",)
    assert isinstance(mealy, Mealy)
    assert (mealy.symbols, mealy.outputs) == (("a",), ("b",))
    with pytest.raises(BrokenFile, match=r'a Mealy machine .* or a moore .*pass kind="mealy" or kind="moore"'):
        parse_dot('digraph { __start0 -> s; s [label="s / 1"] s -> s [label="a / b"] }')


def test_read_dot_names_states_after_labels_unless_two_are_equal() -> None:
    text = 'digraph {{ s0 [label="one"] s1 [label="{}"] s0 -> s1 [label=a] s1 -> s0 [label=a] }}'
    assert parse_dot(text.format("two"), strict=True).states == ("one", "two")
    notes: list[str] = []
    assert parse_dot(text.format("one"), notes=notes).states == ("s0", "s1")
    assert notes == ["two states have the same label, so the states are named after their nodes."]


def test_read_dot_orders_states_by_their_lines() -> None:
    machine = parse_dot("digraph { __start0 -> c; b; a; c; c -> a [label=x] a -> b [label=x] b -> c [label=x] }",
                        kind="dfa")  # fmt: skip
    assert machine.states == ("b", "a", "c")
    assert np.array_equal(machine.tables, [[2, 0, 1]])


def test_read_dot_unreachable_states_stay() -> None:
    machine = parse_dot('digraph { __start0 -> a; a -> a [label="x/0"] b -> a [label="x/1"] }', strict=True)
    assert machine.states == ("a", "b")


def test_read_dot_notes_a_state_without_a_line() -> None:
    notes: list[str] = []
    parse_dot('digraph {\n a\n a -> b [label="x/0"]\n b -> a [label="x/0"]\n __start0 -> a }', notes=notes)
    assert notes == ["line 3: state 'b' has no line of its own; it was taken from its edges."]


def test_read_dot_large_learnlib_file() -> None:
    random = np.random.default_rng(3)
    tables, readout = random.integers(0, 500, (30, 500)), random.integers(0, 7, (30, 500))
    readout[0, :7] = np.arange(7)
    lines = [
        "digraph g {",
        '__start0 [label="" shape="none"];',
        *(f'\ts{q} [shape="circle" label="{q}"];' for q in range(500)),
    ]
    lines += [
        f'\ts{q} -> s{tables[a, q]} [label="Input number {a} / output({readout[a, q]}, TRUE)"];'
        for q in range(500)
        for a in range(30)
    ]
    text = "\n".join([*lines, "__start0 -> s9;", "}"])
    assert len(text) > 600_000
    machine = parse_dot(text, strict=True)
    assert isinstance(machine, Mealy)
    assert machine.start == 9
    assert np.array_equal(machine.tables, tables)
    names = np.array(machine.outputs)
    assert np.array_equal(names[machine.readout], np.char.add(np.char.add("output(", readout.astype(str)), ", TRUE)"))


def test_lines_of_html_takes_time_in_proportion() -> None:
    """20 KB of blanks took 6.5 seconds, and ten times as much takes a hundred times as long in a quadratic search.

    The test would not end in an hour.
    """
    for text in ("<" + " " * 2_000_000, "<" + " " * 500_000 + "/" + " " * 500_000 + "x>", "< " * 200_000):
        assert isinstance(lines_of(Html(text)), list)
    assert lines_of(Html("a<br/>b< br >c< / br >d<BR />e</br>f<brx>g")) == ["a", "b", "c", "d", "e", "fg"]


@pytest.mark.parametrize("digits", ["9" * 5_000, "x" + "f" * 5_000, "0" * 5_000 + "1" * 9, "99999999", "x1000000"])
def test_lines_of_an_entity_with_many_digits(digits: str) -> None:
    assert lines_of(Html(f"a&#{digits};b")) == ["a\ufffdb"]
    assert lines_of(Html("&#65;&#x42;&#000067;&#1114109;")) == ["ABC\U0010fffd"]


def test_a_file_marked_by_an_older_name_is_refused() -> None:
    text = to_dot(flip_flop()).replace("exactstate_machine", "older_machine")
    with pytest.raises(BrokenFile, match="older_machine=moore marks a file of another program or an older version"):
        parse_dot(text)
    assert parse_dot(text.replace('="moore"', '="yes"')).n_states == 3, "an attribute of somebody else"

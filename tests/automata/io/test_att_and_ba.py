"""AT&T text and BA: reading, writing, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, cyclic, tomita
from exactstate.automata.io import machine_text, parse_att, parse_ba
from exactstate.errors import BrokenFile, InvalidMachine

ENDS_IN_B = Moore(symbols=("a", "b"), tables=[[0, 0], [1, 1]], outputs=("reject", "accept"), readout=[0, 1])
DELAY = Mealy(
    symbols=("a", "b"), tables=[[0, 0], [1, 1]], states=("-", "+"), outputs=("x", "y"), readout=[[0, 1], [0, 1]]
)


def test_to_att_of_a_dfa() -> None:
    assert machine_text(ENDS_IN_B, format="att") == "0\t0\ta\ta\n0\t1\tb\tb\n1\t0\ta\ta\n1\t1\tb\tb\n1\n"


def test_to_att_of_a_mealy_machine() -> None:
    assert machine_text(DELAY, format="att") == "-\t-\ta\tx\n-\t+\tb\tx\n+\t-\ta\ty\n+\t+\tb\ty\n-\n+\n"


def test_to_ba_of_a_dfa() -> None:
    assert machine_text(ENDS_IN_B, format="ba") == "0\na,0->0\nb,0->1\na,1->0\nb,1->1\n1\n"


@pytest.mark.parametrize(
    "text",
    [
        "0 0 a\n0 1 b\n1 0 a\n1 1 b\n1",
        "0\t0\ta\ta\n0\t1\tb\tb\n\n1\t0.0\n1\t0\ta\ta\n1\t1\tb\tb\n",
        "  0  0  a  \n 1 1 b \n1 0 a\n0 1 b\n1 0\n\n\n",
    ],
)
def test_parse_att_any_layout(text: str) -> None:
    assert parse_att(text, strict=True) == ENDS_IN_B


def test_parse_att_orders_whole_numbers_and_starts_at_the_first_line() -> None:
    machine = parse_att("10 2 7 7\n2 0 7 7\n0 10 7 7\n")
    assert machine.states == ("0", "2", "10")
    assert isinstance(machine, Moore)
    assert machine.start == 2


def test_parse_ba_without_accepting_states_and_start() -> None:
    machine = parse_ba("some label%,fancy i_d->1\nsome label%,1->1\n")
    assert machine == Moore(
        symbols=("some label%",),
        tables=[[1, 1]],
        states=("fancy i_d", "1"),
        outputs=("reject", "accept"),
        readout=[1, 1],
    )


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("0\n1\n", None, "there is no transition in it"),
        ("0 1 a a\n1 0 a\n", 2, "3 columns here, 4 on line 1"),
        ("0 1 a a 0.5\n", 1, "5 columns; wanted source, target, input and output, and no weight"),
        ("0 0 a a\n0 0.5\n", 2, "the final state '0' has the weight '0.5'; wanted none"),
        ("0 0 a a\n7\n", 2, "the final state '7' is on no transition"),
        ("0 0 a <eps>\n", 1, "'<eps>' is the empty word; a machine reads a symbol at every step"),
        ("0 0 a a\n0 1 a a\n", 2, r"state '0' goes on 'a' to '0' \(line 1\) and to '1' \(line 2\)"),
        ("0 1 a a\n", 1, "state '1' has no transition on 'a'; add it"),
    ],
)
def test_parse_att_refuses(text: str, line: int | None, sentence: str) -> None:
    with pytest.raises(BrokenFile, match=sentence) as caught:
        parse_att(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("0\n", None, "there is no transition in it"),
        ("0\n1\na,0->0", 2, "two states before the first transition; the second is '1'"),
        ("0\na,0->0\n0\na,0->0", 4, "a transition after the accepting state on line 3"),
        ("0\na,0->b,c", 2, "'a,0->b,c' is neither a state nor symbol,source->target"),
        ("0\na>b,0->0", 2, "neither a state nor symbol,source->target"),
        ("9\na,0->0", 1, "the state '9' is on no transition"),
        ("0\na,0->0\n9", 3, "the state '9' is on no transition"),
        ("0\na,0->0\na,0->1", 3, "a machine is deterministic"),
    ],
)
def test_parse_ba_refuses(text: str, line: int | None, sentence: str) -> None:
    with pytest.raises(BrokenFile, match=sentence) as caught:
        parse_ba(text)
    assert caught.value.line == line


def test_parse_att_notes_ambiguities() -> None:
    notes: list[str] = []
    parse_att("0 0 a x\n", notes=notes)
    assert notes == ["line 1: state '0' is not final; a Mealy machine has outputs in every state."]
    with pytest.raises(BrokenFile, match="OpenFst without symbol tables takes it for the empty word"):
        parse_att("0 0 0 0\n0 0 1 1\n", strict=True)


def test_parse_att_kind_of_a_mealy_machine_that_repeats_its_input() -> None:
    machine = parse_att("0 0 a a\n0\n", kind="mealy")
    assert isinstance(machine, Mealy)
    with pytest.raises(BrokenFile, match="input 'a' and output 'x' differ in a dfa"):
        parse_att("0 0 a x\n", kind="dfa")
    with pytest.raises(BrokenFile, match='cannot be read with kind="moore"'):
        parse_att("0 0 a x\n", kind="moore")
    with pytest.raises(BrokenFile, match="BA holds a dfa"):
        parse_ba("a,0->0", kind="mealy")


ECHO = Mealy(symbols=("a",), tables=[[0]], outputs=("a",), readout=[[0]])
NOWHERE = replace(ENDS_IN_B, readout=[0, 0])


@pytest.mark.parametrize(
    ("format", "machine", "sentence"),
    [
        (
            "att",
            Semiautomaton(symbols=("a",), tables=[[0]]),
            "Mealy machines and DFAs only, and this is a semiautomaton",
        ),
        ("att", Moore.of(cyclic(3)), "Mealy machines and DFAs only, and this is a moore"),
        ("att", replace(ENDS_IN_B, states=("b", "a"), start=1), "does not keep the order of the states 'b, a'"),
        ("att", replace(ENDS_IN_B, states=("b c", "a")), "the state 'b c' would not be read back in AT&T text"),
        ("att", replace(ENDS_IN_B, symbols=("", "a")), "the symbol '' would not be read back in AT&T text"),
        ("att", replace(ENDS_IN_B, symbols=("ε", "a")), "the symbol 'ε' stands for the empty word in AT&T text"),
        ("att", tomita(1), r"0 is the empty word to OpenFst \(symbol\)"),
        ("att", replace(DELAY, outputs=("y", "x", "z")), "does not keep the order of the outputs 'y, x, z'"),
        ("att", ECHO, "would read this machine back as a Moore"),
        ("ba", DELAY, "BA represents DFAs only, and this is a mealy"),
        ("ba", NOWHERE, "a file without accepting states accepts everywhere"),
        ("ba", replace(ENDS_IN_B, symbols=("a,b", "c")), "the symbol 'a,b' would not be read back in BA"),
        ("ba", replace(ENDS_IN_B, symbols=("2", "1")), "does not keep the order of the symbols '2, 1'"),
    ],
)
def test_machine_text_refuses_what_a_format_cannot_represent(
    format: str, machine: Semiautomaton, sentence: str
) -> None:
    with pytest.raises(InvalidMachine, match=sentence):
        machine_text(machine, format=format)

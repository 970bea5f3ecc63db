"""Machines are born valid, compare by value, and read words however they are written."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, format_word, tomita
from exactstate.errors import InvalidMachine, InvalidWord

SWAP = {"symbols": ("a", "b"), "tables": [[1, 0, 2], [0, 2, 1]]}


def moore(**more):
    return Moore(**{**SWAP, "start": 1, "outputs": ("no", "yes"), "readout": [0, 1, 1], **more})


def mealy(**more):
    return Mealy(**{**SWAP, "outputs": ("x", "y"), "readout": [[0, 1, 0], [1, 1, 0]], **more})


def test_encode_names_numbers_or_strings():
    machine = Semiautomaton(**SWAP)
    for word in ("ab", ["a", "b"], [0, 1], np.array([0, 1], np.uint8), ("a", "b")):
        assert machine.run(word, 0) == 2
        assert machine.trajectory(word, 0).tolist() == [1, 2]
    spoken = Semiautomaton(symbols=("go on", "stop"), tables=[[0], [0]])
    assert spoken.encode(["go on", "stop"]).tolist() == [0, 1]
    assert Semiautomaton(symbols=("one", "two"), tables=[[0], [0]]).encode("two one").tolist() == [1, 0]


def test_trajectory_of_a_batch():
    machine = Semiautomaton(**SWAP)
    assert machine.trajectory(["ab", "ba"], 0).tolist() == [[1, 2], [0, 1]]
    assert machine.trajectory(np.array([[0, 1], [1, 0]]), np.array([0, 1])).tolist() == [[1, 2], [2, 2]]
    assert machine.trajectory(np.empty((0, 5), np.int64), 0).shape == (0, 5)
    assert machine.trajectory(np.empty((3, 0), np.int64), 0).shape == (3, 0)
    assert machine.trajectory([], 0).tolist() == []


def test_run_the_empty_word_changes_nothing():
    machine = Semiautomaton(**SWAP)
    assert machine.run("", 2) == 2
    assert machine.act([]).tolist() == [0, 1, 2]


def test_act_is_the_composite_of_the_tables():
    machine = Semiautomaton(**SWAP)
    assert machine.act("ab").tolist() == [machine.run("ab", q) for q in range(3)] == [2, 0, 1]


def test_output_ids_of_moore_and_mealy():
    assert moore().output_ids("aab").tolist() == [0, 1, 1]
    assert moore().run("ab") == 0
    assert mealy().output_ids("aba").tolist() == [0, 1, 0]
    assert mealy().output_ids(["ab", "ba"]).tolist() == [[0, 1], [1, 0]]
    assert mealy().output_ids("").tolist() == []


def test_moore_of_a_semiautomaton_outputs_its_state():
    said = Moore.of(Semiautomaton(**SWAP, states=("p", "q", "r")), start="q")
    assert said.start == 1
    assert said.outputs == ("p", "q", "r")
    assert said.output_ids("ab").tolist() == [0, 0]


def test_machines_compare_by_value_and_hash():
    assert moore() == moore()
    assert hash(moore()) == hash(moore())
    assert len({moore(), moore(), mealy(), mealy()}) == 2
    for other in (
        moore(start=0),
        moore(readout=[1, 1, 1]),
        moore(outputs=("no", "ja")),
        moore(states=("p", "q", "r")),
        moore(tables=[[1, 0, 2], [0, 1, 2]]),
        moore(symbols=("a", "c")),
        mealy(),
        Semiautomaton(**SWAP),
    ):
        assert moore() != other


def test_machines_are_immutable():
    machine, given = moore(), np.array(SWAP["tables"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine.start = 2
    with pytest.raises(ValueError, match="read-only"):
        machine.tables[0, 0] = 2
    kept = Semiautomaton(symbols=("a", "b"), tables=given)
    given[0, 0] = 2
    assert kept == Semiautomaton(**SWAP)


@pytest.mark.parametrize(
    ("states", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.uint32)]
)
def test_tables_have_the_smallest_dtype(states, dtype):
    machine = Semiautomaton(symbols=("next",), tables=[np.roll(np.arange(states), -1)])
    assert machine.tables.dtype == dtype
    assert machine.run([0] * 3, states - 1) == 2 % states


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Semiautomaton(symbols=("a", "b"), tables=[[0, 1], [0, 7]]), "symbol 'b' sends state '1' to 7, but"),
        (lambda: Semiautomaton(symbols=("a",), tables=[[0, -1]]), "symbol 'a' sends state '1' to -1"),
        (lambda: Semiautomaton(symbols=("a",), tables=[[0], [0]]), "1 symbols need 1 tables; got 2"),
        (lambda: Semiautomaton(symbols=("a", "b"), tables=[[0], [0, 1]]), "rows of different lengths"),
        (lambda: Semiautomaton(symbols=("a",), tables=[[0.0]]), "should hold integers; got float64"),
        (lambda: Semiautomaton(symbols=("a",), tables=[0]), "should have 2 dimensions"),
        (lambda: Semiautomaton(symbols=("a",), tables=[[]]), "at least one state"),
        (lambda: Semiautomaton(symbols=(), tables=[]), "at least one symbol"),
        (lambda: Semiautomaton(symbols=("a", "a"), tables=[[0], [0]]), "every symbol has its own name; 'a' came twice"),
        (lambda: Semiautomaton(symbols=(1,), tables=[[0]]), "symbol names are strings; got 1"),
        (lambda: Semiautomaton(symbols=("a",), tables=[[0]], states=("p", "q")), "2 state names were given for 1"),
        (lambda: moore(start=3), "start state 3 is out of range: there are 3 states"),
        (lambda: moore(start=-1), "start state -1"),
        (lambda: moore(readout=[0, 1]), r"read-out of this Moore has shape \(3,\); got \(2,\)"),
        (lambda: moore(readout=[0, 1, 2]), "state '2' puts out 2, but there are 2 outputs"),
        (lambda: mealy(readout=[[0, 0, 0], [0, 5, 0]]), "state '1' on symbol 'b' puts out 5"),
        (lambda: mealy(readout=[0, 0, 0]), "the readout should have 2 dimensions"),
        (lambda: moore(outputs=()), "at least one output"),
    ],
)
def test_invalid_machine_names_the_culprit(build, sentence):
    with pytest.raises(InvalidMachine, match=sentence):
        build()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: m.run("abc", 0), "unknown symbol 'c'; this machine reads a, b"),
        (lambda m: m.run([0, 2], 0), "symbol 2 at position 1 of word 0 is out of range: this machine has 2 symbols"),
        (lambda m: m.trajectory(np.array([[0, 1], [0, -1]]), 0), "symbol -1 at position 1 of word 1"),
        (lambda m: m.run("a", 3), "state 3 is out of range"),
        (lambda m: m.run("a", "9"), "unknown state '9'"),
        (lambda m: m.trajectory(["ab", "a"], 0), "words of one length; got lengths 1 to 2"),
        (lambda m: m.trajectory(np.zeros((2, 2, 2), int), 0), "got 3 dimensions"),
        (lambda m: m.trajectory(np.zeros((2, 2)), 0), "symbol names or integers; got float64"),
        (lambda m: m.trajectory(np.zeros((2, 2), int), np.array([0])), "wanted 2, got an array of shape"),
        (lambda m: m.trajectory(np.zeros((2, 2), int), np.array([0, 3])), "a start state is out of range"),
    ],
)
def test_invalid_word_names_the_culprit(call, sentence):
    with pytest.raises(InvalidWord, match=sentence):
        call(Semiautomaton(**SWAP))


def test_format_word_abbreviates_long_words() -> None:
    assert format_word(()) == "the empty word"
    assert format_word(("a",) * 24) == f"'{' '.join('a' * 24)}'"
    ends = " ".join(["ab"] * 12)
    assert format_word(("ab",) * 500 + ("cd",) * 500) == f"'{ends} ... {ends.replace('ab', 'cd')}' (1000 symbols)"


def test_to_mealy_gives_the_outputs_of_the_moore_machine() -> None:
    machine, word = tomita(4), np.array([0, 0, 1, 0, 0, 0, 1])
    converted = machine.to_mealy()
    assert isinstance(converted, Mealy)
    assert converted.output_ids(word).tolist() == machine.output_ids(word).tolist()
    assert converted.to_mealy() is converted

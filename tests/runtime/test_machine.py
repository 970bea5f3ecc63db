"""A machine is born valid, compares by value, and means what the automaton means."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, flip_flop, symmetric, tomita
from exactstate.errors import InvalidMachine, InvalidWord
from exactstate.runtime import Heads, Machine
from tests.runtime import examples


@pytest.mark.parametrize("automaton", [tomita(5), tomita(7), flip_flop()], ids=repr)
def test_machine_agrees_with_its_automaton(automaton: Moore) -> None:
    machine = Machine.of(automaton)
    word = np.random.default_rng(0).integers(0, automaton.n_symbols, 500)
    assert machine.run(word) == automaton.run(word)
    assert np.array_equal(machine.trajectory(word), automaton.trajectory(word))
    assert np.array_equal(machine.output_ids(word), automaton.output_ids(word))
    assert machine.run(word, automaton.states[-1]) == automaton.run(word, automaton.states[-1])


def test_machine_of_a_semiautomaton_outputs_its_states() -> None:
    machine = Machine.of(Semiautomaton(symbols=("a",), tables=np.array([[1, 2, 0]]), states=("x", "y", "z")))
    assert machine.outputs("aaaa") == ["y", "z", "x", "y"]


def test_machine_equality_is_by_value() -> None:
    one, other = examples.traffic_light(), examples.traffic_light()
    assert one == other
    assert hash(one) == hash(other)
    assert one != Machine.of(one.automaton, about={"task": "light"})
    assert one != Machine.of(one.automaton, heads=Heads((one.automaton.tables,), (0,)))
    assert one != "a machine"
    assert repr(one).startswith("Machine(2 states, 2 symbols; ")


def test_machine_can_be_copied_after_a_run() -> None:
    machine = examples.m11()
    word = np.random.default_rng(1).integers(0, 4, 1000)
    end = machine.run(word)
    for copied in (copy.copy(machine), copy.deepcopy(machine), pickle.loads(pickle.dumps(machine))):
        assert copied == machine
        assert copied.run(word) == end


def test_machine_about_is_plain_data() -> None:
    about = {"task": "S3", "sizes": (3, 2), "nested": {"sha256": "00"}}
    machine = Machine.of(tomita(1), about=about)
    assert machine.about == {"task": "S3", "sizes": [3, 2], "nested": {"sha256": "00"}}
    about["nested"]["sha256"] = "changed"  # type: ignore[index]
    assert machine.about["nested"]["sha256"] == "00"
    for bad in ({"x": float("nan")}, {"x": object()}, {"x": "\ud800"}, [1]):
        with pytest.raises(InvalidMachine, match="holds plain JSON data"):
            Machine.of(tomita(1), about=bad)  # type: ignore[arg-type]


def test_machine_refuses_what_is_not_a_machine() -> None:
    with pytest.raises(InvalidMachine, match="needs a Moore or a Mealy machine; got 'S3'"):
        Machine(automaton="S3")  # type: ignore[arg-type]
    with pytest.raises(InvalidWord, match="unknown state 'blue'"):
        examples.traffic_light().run(["go"], "blue")


def test_outputs_of_a_mealy_machine() -> None:
    """Says 'again' when a symbol is repeated: by hand."""
    again = Mealy(
        symbols=("a", "b"), states=("start", "a", "b"), tables=np.array([[1, 1, 1], [2, 2, 2]]),
        outputs=("new", "again"), readout=np.array([[0, 1, 0], [0, 0, 1]]),
    )  # fmt: skip
    assert Machine.of(again).outputs("aabba") == ["new", "again", "new", "again", "new"]


@pytest.mark.parametrize("word", [5, None, 1.5, object(), iter([0]), [[0], 5], [1.5]])
def test_run_of_something_else_than_a_word(word: object) -> None:
    machine = Machine.of(symmetric(3))
    for call in (machine.run, machine.outputs, machine.output_ids, machine.stream().push, machine.automaton.run):
        if call == machine.automaton.run and not isinstance(word, int | float | None):
            continue
        with pytest.raises(InvalidWord):
            call(word)  # type: ignore[operator]


@pytest.mark.parametrize("state", [1.5, True, [0], float("nan"), 6, -1, "nowhere"])
def test_run_from_something_else_than_a_state(state: object) -> None:
    machine = Machine.of(symmetric(3))
    for call in (machine.run, machine.automaton.run):
        with pytest.raises(InvalidWord):
            call([0], state)  # type: ignore[operator]

"""AALpy reads what we write, and we read what AALpy writes: the same answers to the same words."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aalpy.automata import Dfa, DfaState, MealyMachine, MealyState, MooreMachine, MooreState
from aalpy.utils import bisimilar, load_automaton_from_file, save_automaton_to_file

from benchmarks.machines import clients, connection, handshake, pairing
from exactstate.automata import Mealy, Moore, read_machine, to_dot, write_machine

SIZES = [(1, 1), (2, 2), (7, 3), (30, 5)]


def answers(automaton: Any, words: list[list[str]]) -> list[list[str]]:
    """What AALpy says to every word, one answer per symbol."""
    said = []
    for word in words:
        automaton.reset_to_initial()
        said.append([{True: "accept", False: "reject"}.get(one, str(one)) for one in map(automaton.step, word)])
    return said


def ours(machine: Moore | Mealy, words: list[list[str]]) -> list[list[str]]:
    return [[machine.outputs[b] for b in machine.output_ids(word)] for word in words]


def random_machine(kind: str, n: int, A: int, seed: int) -> Moore | Mealy:
    random = np.random.default_rng(seed)
    common: dict[str, Any] = {
        "symbols": tuple(f"in_{a}" for a in range(A)), "states": tuple(f"q{i}" for i in range(n)),
        "tables": random.integers(0, n, (A, n)), "start": int(random.integers(n)),
    }  # fmt: skip
    if kind == "mealy":
        return Mealy(**common, outputs=("ok", "no way", "a+b"), readout=random.integers(0, 3, (A, n)))
    if kind == "moore":
        return Moore(**common, outputs=("ok", "no way", "a+b"), readout=random.integers(0, 3, n))
    return Moore(**common, outputs=("reject", "accept"), readout=random.integers(0, 2, n))


def random_words(machine: Moore | Mealy, seed: int) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [[str(a) for a in random.choice(machine.symbols, length)] for length in (1, 2, 5, 50, 200)]


def as_aalpy(machine: Moore | Mealy, kind: str) -> Any:
    state_type: Any = {"dfa": DfaState, "moore": MooreState, "mealy": MealyState}[kind]
    states = [state_type(name) for name in machine.states]
    for q, state in enumerate(states):
        for a, symbol in enumerate(machine.symbols):
            state.transitions[symbol] = states[machine.tables[a, q]]
            if isinstance(machine, Mealy):
                state.output_fun[symbol] = machine.outputs[machine.readout[a, q]]
        if kind == "dfa":
            state.is_accepting = bool(machine.readout[q])
        elif kind == "moore":
            state.output = machine.outputs[machine.readout[q]]
    return {"dfa": Dfa, "moore": MooreMachine, "mealy": MealyMachine}[kind](states[machine.start], states)


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("kind", ["dfa", "moore", "mealy"])
def test_to_dot_is_read_by_aalpy(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    machine = random_machine(kind, *size, seed=1)
    path = tmp_path / "machine.dot"
    path.write_text(to_dot(machine, dialect="aalpy"))
    theirs = load_automaton_from_file(path, kind)
    words = random_words(machine, seed=2)
    assert answers(theirs, words) == ours(machine, words)


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("kind", ["dfa", "moore", "mealy"])
def test_parse_dot_reads_aalpy(tmp_path: Path, kind: str, size: tuple[int, int]) -> None:
    machine = random_machine(kind, *size, seed=3)
    with contextlib.redirect_stdout(io.StringIO()):
        save_automaton_to_file(as_aalpy(machine, kind), tmp_path / "machine", file_type="dot")
    read = read_machine(tmp_path / "machine.dot", kind=kind)  # type: ignore[arg-type]
    assert isinstance(read, Moore | Mealy)
    assert (read.states, read.symbols, read.start) == (machine.states, machine.symbols, machine.start)
    words = random_words(machine, seed=4)
    assert ours(read, words) == ours(machine, words) == answers(as_aalpy(machine, kind), words)


def test_comparison_with_aalpy_detects_a_difference(tmp_path: Path) -> None:
    machine = random_machine("mealy", 7, 3, seed=1)
    path = tmp_path / "machine.dot"
    path.write_text(to_dot(machine).replace("/ok", "/no way"))
    words = random_words(machine, seed=2)
    assert answers(load_automaton_from_file(path, "mealy"), words) != ours(machine, words)


PROTOCOLS = [handshake(7), connection(), clients(), pairing()]


@pytest.mark.parametrize("machine", PROTOCOLS, ids=lambda machine: machine.symbols[0])
def test_aalpy_finds_a_machine_that_it_reads_back_equivalent(tmp_path: Path, machine: Mealy) -> None:
    write_machine(machine, tmp_path / "machine.dot")
    theirs = load_automaton_from_file(tmp_path / "machine.dot", "mealy")
    assert bisimilar(theirs, as_aalpy(machine, "mealy"))
    other = machine.readout.copy()
    other[0, 0] = (other[0, 0] + 1) % len(machine.outputs)
    changed = Mealy(symbols=machine.symbols, tables=machine.tables, outputs=machine.outputs, readout=other)
    assert not bisimilar(theirs, as_aalpy(changed, "mealy"))


EDGE = re.compile(r'^\s*(\w+) -> (\w+)(?: \[label="([^"]*)"\])?;$')


def read_as_learnlib(text: str) -> tuple[str, dict[tuple[str, str], tuple[str, str]]]:
    """(start, (state, input) -> (state, output)): by the rules of AutomataLib's DOTParsers.mealy().

    The initial node has an edge from the node __start0; a label is cut at its slashes, of which
    there is one, and blanks around both parts are removed.
    """
    starts, transitions = [], {}
    for line in text.splitlines():
        edge = EDGE.match(line)
        if edge is None:
            continue
        if edge[1] == "__start0":
            starts.append(edge[2])
            continue
        symbol, output = (part.strip() for part in edge[3].split("/"))
        assert (edge[1], symbol) not in transitions
        transitions[edge[1], symbol] = (edge[2], output)
    (start,) = starts
    return start, transitions


@pytest.mark.parametrize("machine", PROTOCOLS, ids=lambda machine: machine.symbols[0])
def test_a_mealy_machine_follows_the_rules_of_learnlib(tmp_path: Path, machine: Mealy) -> None:
    write_machine(machine, tmp_path / "machine.dot")
    start, transitions = read_as_learnlib((tmp_path / "machine.dot").read_text())
    assert len(transitions) == machine.tables.size
    states = {start: machine.start}
    queue = [start]
    for name in queue:
        for a, symbol in enumerate(machine.symbols):
            after, output = transitions[name, symbol]
            q = states[name]
            assert output == machine.outputs[machine.readout[a, q]]
            if after not in states:
                queue.append(after)
            assert states.setdefault(after, machine.tables[a, q]) == machine.tables[a, q]

"""Certify says yes to the target and to nothing else, and names a shortest word that goes wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, cyclic, flip_flop, minimize, symmetric, tomita
from exactstate.certify import Verdict, certify
from exactstate.errors import BudgetExceeded, InvalidInput, InvalidMachine


def saying_states(machine: Moore, **changes: object) -> Mealy:
    """The machine that says its next state, as a perfect model does."""
    fields = {"symbols": machine.symbols, "tables": machine.tables, "states": machine.states, "start": machine.start,
              "outputs": machine.states, "readout": machine.tables}  # fmt: skip
    return Mealy(**(fields | changes))


def shortest_wrong(machine: Mealy, target: Moore, longest: int) -> int | None:
    """The length of a shortest word on which the two part, by trying all words."""
    for length in range(1, longest + 1):
        words = np.array(list(product(range(machine.n_symbols), repeat=length)))
        said = np.array(machine.outputs)[machine.output_ids(words)[:, -1]]
        wanted = np.array(target.states)[target.trajectory(words)[:, -1]]
        if (said != wanted).any():
            return length
    return None


def goes_wrong(verdict: Verdict, machine: Mealy, target: Moore) -> bool:
    """Whether the word says what it is said to say, and everything before its last symbol is right."""
    failure = verdict.failure
    said = [machine.outputs[i] for i in machine.output_ids(list(failure.word))]
    wanted = [target.states[q] for q in target.trajectory(list(failure.word))]
    return said[:-1] == wanted[:-1] and (said[-1], wanted[-1]) == (failure.output, failure.wanted)


@pytest.mark.parametrize("target", [cyclic(2), cyclic(7), symmetric(4), flip_flop(), tomita(5)])
def test_certify_accepts_the_target_itself(target: Moore) -> None:
    verdict = certify(saying_states(target), target)
    assert verdict
    assert verdict.bijection
    assert (verdict.configurations, verdict.task_states) == (target.n_states, target.n_states)
    assert verdict.explain().startswith("certified: the output after every word of any length equals the target's; ")
    assert f"each of {target.n_states} target states has one configuration" in verdict.explain()


@pytest.mark.parametrize("target", [symmetric(3), flip_flop(), cyclic(5), tomita(7)])
def test_certify_finds_one_wrong_label_as_a_read_out_error(target: Moore) -> None:
    rng = np.random.default_rng(7)
    for a, q in product(range(target.n_symbols), range(target.n_states)):
        readout = target.tables.copy()
        readout[a, q] = (readout[a, q] + rng.integers(1, target.n_states)) % target.n_states
        machine = saying_states(target, readout=readout)
        verdict = certify(machine, target)
        assert not verdict
        assert verdict.failure.kind == "read-out"
        assert len(verdict.failure.word) == shortest_wrong(machine, target, 5)
        assert verdict.failure.word[-1] == target.symbols[a]
        assert goes_wrong(verdict, machine, target)
        assert "a read-out error: the configuration belongs to this one state of the target" in verdict.explain()


@pytest.mark.parametrize("target", [symmetric(3), flip_flop(), cyclic(5), tomita(7)])
def test_certify_finds_one_wrong_transition_as_a_conflict(target: Moore) -> None:
    rng = np.random.default_rng(8)
    for a, q in product(range(target.n_symbols), range(target.n_states)):
        tables = target.tables.copy()
        tables[a, q] = (tables[a, q] + rng.integers(1, target.n_states)) % target.n_states
        machine = saying_states(target, tables=tables)  # what it says at the step is right, where it goes is not
        verdict = certify(machine, target)
        length = shortest_wrong(machine, target, 7)
        if length is None:  # the wrong state goes on as the right one would
            assert verdict
            continue
        failure = verdict.failure
        assert len(failure.word) == length
        assert goes_wrong(verdict, machine, target)
        if failure.kind == "conflict":
            other = target.run(list(failure.other_word))
            assert machine.run(list(failure.other_word)) == machine.run(list(failure.word))
            assert target.states[other] == failure.other_state != failure.wanted
            assert "a conflict: " in verdict.explain()


def test_certify_refuses_random_machines_with_a_shortest_word() -> None:
    rng = np.random.default_rng(9)
    kinds = set()
    for _ in range(300):
        n, m = rng.integers(1, 6, 2)
        target = Moore.of(random_tables(rng, int(n)))
        labels = rng.integers(0, n, (2, m)) if rng.random() < 0.5 else None
        machine = Mealy(
            symbols=("a", "b"), tables=rng.integers(0, m, (2, m)), start=int(rng.integers(m)),
            outputs=target.states, readout=rng.integers(0, n, (2, m)) if labels is None else labels,
        )  # fmt: skip
        verdict, length = certify(machine, target), shortest_wrong(machine, target, 8)
        assert bool(verdict) == (length is None)
        if length is not None:
            assert len(verdict.failure.word) == length
            assert goes_wrong(verdict, machine, target)
            kinds.add(verdict.failure.kind)
    assert kinds == {"read-out", "conflict"}


def random_tables(rng: np.random.Generator, n: int) -> Moore:
    return Moore(
        symbols=("a", "b"), tables=rng.integers(0, n, (2, n)), outputs=tuple(map(str, range(n))), readout=np.arange(n)
    )


def test_certify_accepts_several_configurations_for_a_state() -> None:
    target = cyclic(3)
    twice = saying_states(cyclic(6), symbols=target.symbols, tables=cyclic(6).tables[:3], outputs=target.states,
                          readout=cyclic(6).tables[:3] % 3)  # fmt: skip
    verdict = certify(twice, target)
    assert verdict
    assert not verdict.bijection
    assert (verdict.configurations, verdict.task_states, len(verdict.matching)) == (6, 3, 6)
    assert "they represent 3 target states, some of them by several configurations" in verdict.explain()


def test_certify_accepts_one_configuration_for_equivalent_states() -> None:
    """The state is the last letter: a model that repeats what it reads needs no memory at all."""
    target = Moore.of(Moore(symbols=("a", "b"), tables=[[1] * 3, [2] * 3], outputs=("?",), readout=[0] * 3))
    echo = Mealy(symbols=("a", "b"), tables=[[0], [0]], outputs=target.states, readout=[[1], [2]])
    verdict = certify(echo, target)
    assert verdict
    assert (verdict.configurations, verdict.task_states, len(verdict.matching)) == (1, 3, 3)
    assert "they represent 3 target states, some configurations several equivalent ones" in verdict.explain()


def test_certify_outputs_compares_behavior() -> None:
    target = tomita(4)
    model = minimize(Mealy(symbols=target.symbols, tables=target.tables, outputs=target.outputs,
                           readout=target.readout[target.tables]))  # fmt: skip
    verdict = certify(model, target, labels="outputs")
    assert verdict
    assert verdict.bijection
    readout = model.readout.copy()
    readout[0, -1] ^= 1
    wrong = certify(replace(model, readout=readout), target, labels="outputs")
    word = list(wrong.failure.word)
    assert replace(model, readout=readout).output_ids(word)[-1] != target.output_ids(word)[-1]
    assert np.array_equal(replace(model, readout=readout).output_ids(word)[:-1], target.output_ids(word)[:-1])
    # a target with states that behave alike is no harder to be than the smallest one
    padded = replace(
        target, tables=np.pad(target.tables, ((0, 0), (0, 1))), states=(), readout=np.append(target.readout, 0)
    )
    assert certify(model, padded, labels="outputs").bijection


def test_certify_finds_a_rare_transition_in_a_large_machine() -> None:
    """One wrong move in a counter of 2000, where only a word of 2000 symbols gets to: the walk finds it."""
    n = 2000
    ticks = Moore.of(Moore(symbols=("tick",), tables=(np.arange(n)[None] + 1) % n, outputs=("?",), readout=[0] * n))
    machine = saying_states(ticks)
    assert certify(machine, ticks).bijection
    tables = ticks.tables.copy()
    tables[0, n - 1] = 5
    verdict = certify(saying_states(ticks, tables=tables), ticks)
    assert verdict.failure.word == ("tick",) * (n + 1)
    assert verdict.failure.other_word == ("tick",) * 6
    assert "... tick" in verdict.explain()
    assert "(2001 symbols)" in verdict.explain()


def test_certify_matches_names() -> None:
    target = symmetric(3)
    machine = saying_states(target)
    turned = replace(machine, outputs=machine.outputs[::-1], readout=5 - machine.readout.astype(int))
    assert certify(turned, target)
    assert certify(replace(machine, outputs=tuple("012345"), symbols=("0", "1")), target)
    with pytest.raises(
        InvalidMachine, match=r"the machine reads 'x', 'y' and the target '\(0 1\)', '\(1 2\)'; they must read"
    ):
        certify(replace(machine, symbols=("x", "y")), target)
    with pytest.raises(
        InvalidMachine, match=r"the labels of the machine are 'a', 'b', 'c', 'd', ... \(6\), and the states of the"
    ):
        certify(replace(machine, outputs=tuple("abcdef")), target)
    with pytest.raises(InvalidMachine, match=r"pass these names to .*, or compare with"):
        certify(saying_states(tomita(4)), tomita(4), labels="outputs")
    with pytest.raises(InvalidInput, match="labels must be 'states' or 'outputs' of the target; got 'letters'"):
        certify(machine, target, labels="letters")


def test_certify_stops_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["exactstate.certify.certify"], "MAX_EXTRA_PAIRS", 3)
    names = tuple(map(str, range(9)))
    target = Moore.of(Moore(symbols=names, tables=[[q] * 9 for q in range(9)], outputs=("?",), readout=[0] * 9))
    echo = Mealy(symbols=names, tables=[[0]] * 9, outputs=names, readout=[[q] for q in range(9)])
    with pytest.raises(BudgetExceeded, match="configurations represent more than 3 further states of the target"):
        certify(echo, target)

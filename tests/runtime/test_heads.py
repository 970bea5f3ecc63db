"""Heads side by side: the joint machine is the reachable part of the product; heads that do not tell are refused."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, canonical, cyclic, distinguishing_word, mathieu11, parallel
from exactstate.errors import BudgetExceeded, InvalidMachine
from exactstate.runtime import Heads, Machine, heads
from tests.runtime import examples


def test_joint_machine_is_the_reachable_product() -> None:
    rng = np.random.default_rng(1)
    for sizes in ((4,), (2, 3), (3, 3, 2), (5, 1, 4)):
        side_by_side = examples.counters(sizes, 3, rng)
        machine = examples.joint_machine(side_by_side, np.arange(side_by_side.joint.tables.shape[1]) % 2)
        product = reduce(
            parallel,
            [Semiautomaton(symbols=("a", "b", "c"), tables=table) for table in side_by_side.tables],
        )
        start = reduce(lambda number, pair: number * pair[1] + pair[0], zip(side_by_side.starts, sizes, strict=True), 0)
        for _ in range(50):
            word = rng.integers(0, 3, int(rng.integers(0, 40)))
            indices = tuple(side_by_side.joint.indices[machine.run(word)].tolist())
            end = product.run(word, start)
            assert indices == np.unravel_index(end, sizes)


def test_joint_of_m11_reaches_7920_of_14641() -> None:
    machine = examples.m11(np.random.default_rng(2))
    assert machine.heads is not None
    assert machine.heads.joint.tables.shape == (4, 7920)
    alone = examples.joint_machine(machine.heads, np.zeros(7920, np.int64))
    states = np.unique(heads.states_of(machine.heads, mathieu11(), 0))
    assert len(states) == 7920
    assert alone.n_states == 7920


def test_joint_numbers_breadth_first_and_word_to_is_shortest() -> None:
    joint = examples.counters((4, 5), 3, np.random.default_rng(3)).joint
    lengths = [len(joint.word_to(q)) for q in range(len(joint.indices))]
    assert lengths == sorted(lengths)
    for q in range(len(joint.indices)):
        state = 0
        for symbol in joint.word_to(q):
            state = int(joint.tables[symbol, state])
        assert state == q


def test_states_of_redundant_heads() -> None:
    """Several tuples may mean the same state: Z12 and beside it Z4, of which it knows already."""
    twelve, four = cyclic(12), cyclic(4)
    quarter = four.tables[np.arange(12) % 4]
    third = cyclic(3).tables[np.arange(12) % 3]
    rng = np.random.default_rng(5)
    machine = Machine.of(twelve, heads=Heads((quarter, third, twelve.tables), (0, 0, 0)))
    word = rng.integers(0, 12, 20_000)
    for strategy in machine.strategies:
        assert machine.run(word, strategy=strategy) == word.sum() % 12
        assert np.array_equal(machine.output_ids(word, strategy=strategy), np.cumsum(word) % 12)


def test_with_heads_runs_the_same_machine() -> None:
    machine = Machine.of(cyclic(30))
    factored = machine.with_heads()
    assert factored.heads is not None
    assert np.prod(factored.heads.sizes) == 30
    word = np.random.default_rng(6).integers(0, 30, 9999)
    assert factored.run(word, strategy="heads" if "heads" in factored.strategies else "numpy") == word.sum() % 30
    assert Machine.of(cyclic(7)).with_heads().heads is None


def test_states_of_refuses_heads_that_do_not_determine_the_state() -> None:
    six = cyclic(6)
    parity = cyclic(2).tables[np.arange(6) % 2]
    with pytest.raises(
        InvalidMachine, match=r"'the empty word' and '2' lead them to the same indices \(0,\), but the"
    ) as e:
        Machine.of(six, heads=Heads((parity,), (0,)))
    assert "states '0' and '2'" in str(e.value)


def test_states_of_finds_a_single_wrong_entry() -> None:
    machine = examples.m11(np.random.default_rng(7))
    assert machine.heads is not None
    tables = [table.copy() for table in machine.heads.tables]
    tables[2][1, [4, 7]] = tables[2][1, [7, 4]]
    with pytest.raises((InvalidMachine, BudgetExceeded), match="the heads do not determine the state"):
        Machine.of(machine.automaton, heads=Heads(tuple(tables), machine.heads.starts))


def test_states_of_refuses_states_that_are_never_reached() -> None:
    machine = examples.traffic_light().automaton
    tables = np.concatenate([machine.tables, [[2], [2]]], axis=1)
    lonely = type(machine)(
        symbols=machine.symbols, tables=tables, states=(*machine.states, "blue"), outputs=machine.outputs,
        readout=np.array([0, 1, 0]),
    )  # fmt: skip
    carrying = Heads((machine.tables,), (0,))
    with pytest.raises(InvalidMachine, match=r"state 'blue' is never reached.*automata.canonical"):
        Machine.of(lonely, heads=carrying)
    assert distinguishing_word(canonical(lonely), machine) is None
    Machine.of(canonical(lonely), heads=carrying)


@pytest.mark.parametrize(
    ("tables", "starts", "sentence"),
    [
        ((), (), "at least one; got 0 tables and 0 starts"),
        (([[0]],), (0, 0), "got 1 tables and 2 starts"),
        (([[0, 2]],), (0,), "head 0: symbol 0 sends index 1 to 2, but the head has 2 indices"),
        (([[0, -1]],), (0,), "sends index 1 to -1"),
        (([[0]], [[0.0]]), (0, 0), "the table of head 1 holds an integer for every symbol and index; got float64"),
        (([[0]], [[0], [0]]), (0, 0), r"heads read the same symbols; these have tables for \[1, 2\]"),
        (([[0, 1]],), (2,), "head 0 starts at index 2, but it has 2 indices"),
        (([[]],), (0,), "the table of head 0"),
    ],
)
def test_heads_refuse_invalid_tables(tables: tuple, starts: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InvalidMachine, match=sentence):
        Heads(tables, starts)


def test_states_of_refuses_other_symbols() -> None:
    with pytest.raises(InvalidMachine, match="the heads read 2 symbols, the machine 3"):
        Machine.of(cyclic(3), heads=Heads((np.array([[0], [0]]),), (0,)))


def test_joint_refuses_too_many_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "MAX_TUPLES", 10)
    with pytest.raises(BudgetExceeded, match="the heads reach more than 10 tuples of indices"):
        examples.points_of_m11().joint  # noqa: B018


def test_heads_compare_by_value() -> None:
    one, other = examples.points_of_m11(), examples.points_of_m11()
    assert one == other
    assert hash(one) == hash(other)
    assert one != examples.points_of_m11(np.random.default_rng(8))
    assert repr(one) == "Heads(11 11 11 11; 4 symbols)"

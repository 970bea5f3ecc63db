"""What is counted along a stream, and what is said when labels are not states."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate._types import MISSING
from exactstate.automata import Moore
from exactstate.errors import InvalidInput
from exactstate.nn.heads import run_tables
from exactstate.tasks import Batch
from exactstate.tasks import task as get_task
from exactstate.train.codes import (
    TransitionCounts,
    codes_of_counts,
    codes_of_machine,
    codes_of_tables,
    collect_rows,
    complete,
    count_transitions,
    is_function_of,
    unique_rows,
)


def test_count_transitions_are_the_machines():
    for name in ("Z5", "S3", "A5", "FF", "Tomita4"):
        task = get_task(name)
        seen = count_transitions(task, np.random.default_rng(1), batch=256, length=64)
        assert seen.start == task.machine.start
        known = seen.tables != MISSING
        assert np.array_equal(seen.tables[known], task.machine.tables[known])
        reached = np.isin(np.arange(task.machine.n_states), seen.seen)
        assert known[:, reached].all(), name


def test_count_transitions_ends_where_the_grammar_forbids_some():
    """TSO's grammar forbids most moves; watching ends all the same."""
    seen = count_transitions(get_task("TSO3"), np.random.default_rng(1), batch=64, length=100)
    assert len(seen.seen) == 44
    assert 0 < seen.coverage < 1


def test_codes_of_counts_refuses_labels_that_are_outputs():
    s3 = get_task("S3")
    transitions = TransitionCounts(2, 2)
    batch = s3.sample(64, 20, np.random.default_rng(0))
    colours = np.array([0, 0, 1, 1, 0, 1])
    transitions.add(Batch(inputs=batch.inputs, states=colours[batch.states], before=colours[batch.before]))
    assert transitions.conflict is not None
    with pytest.raises(
        InvalidInput, match=r"the labels are not states: label . and symbol . led to label . and to label"
    ):
        codes_of_counts(transitions, seed=0)


def test_transition_counts_refuse_two_starts():
    transitions = TransitionCounts(1, 2)
    step = np.zeros((2, 1), np.int64)
    with pytest.raises(InvalidInput, match="words begin in different states"):
        transitions.add(Batch(inputs=step, states=step, before=np.array([0, 1])))


@pytest.mark.parametrize(
    ("name", "heads", "wanted"),
    [
        ("Z16", None, (16,)),
        ("S3", None, (3, 2)),
        ("S4", None, (4, 3, 2)),
        ("A5", (5, 12), (5, 12)),
        ("A5", (60,), (60,)),
        ("S3", (4, 3), (4, 3)),
        ("FF", (3,), (3,)),
    ],
)
def test_codes_of_counts_carry_the_labels(name, heads, wanted):
    """Along fresh words the indices that the tables give are those of the label, in the rows."""
    task = get_task(name)
    generator = np.random.default_rng(2)
    codes = codes_of_counts(count_transitions(task, generator, batch=256, length=64), heads, seed=0)
    assert codes is not None
    assert codes.heads == (wanted,)
    fresh, r = task.sample(64, 200, generator), len(wanted)
    inputs = fresh.inputs.astype(np.int64)
    paths = [run_tables(table, inputs, k) for table, k in zip(codes.tables, codes.starts[0], strict=True)]
    along = {
        (MISSING, *row, MISSING)
        for row in np.column_stack([
            inputs.ravel(), *(path[:, :-1].ravel() for path in paths), *(path[:, 1:].ravel() for path in paths),
            fresh.states.astype(np.int64).ravel(),
        ]).tolist()
    }  # fmt: skip
    assert along <= {tuple(row) for row in codes.rows.tolist()}
    pairs = {(row[-2], *row[2 + r : 2 + 2 * r]) for row in codes.rows.tolist()}
    assert len(pairs) == len({label for label, *_ in pairs}) == len({tuple(code) for _, *code in pairs})


def test_codes_of_machine_are_those_of_its_reachable_states():
    tables = np.array([[1, 0, 0], [1, 1, 2]])  # nothing leads to the third state
    machine = Moore(symbols=("a", "b"), tables=tables, outputs=("x", "y", "z"), readout=np.arange(3))
    codes = codes_of_machine(machine, 0, (3,), seed=0, label_of=np.array([7, 8, 9]))
    assert codes is not None
    rows = {tuple(row[1:5]) for row in codes.rows.tolist()}
    code = {0: codes.starts[0][0]}
    code[1] = int(codes.tables[0][0, code[0]])
    assert rows == {(a, code[q], code[tables[a, q]], 7 + tables[a, q]) for a in (0, 1) for q in (0, 1)}


def test_codes_of_tables_keep_the_start_index_apart_from_that_of_its_label():
    """Index 2 holds the label of the start before the first symbol, and index 0 whenever it is met again."""
    task = get_task("Z2")
    tables = [np.array([[0, 1, 0], [1, 0, 1]])]  # symbol 0 stays, symbol 1 adds one
    codes = codes_of_tables(tables, (2,), task, np.random.default_rng(0), batch=8, length=8)
    assert codes.starts == ((2,),)
    met_again = {(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 1)}
    assert {tuple(row[2:5]) for row in codes.rows.tolist()} == {(2, 0, 0), (2, 1, 1)} | met_again


def test_collect_rows_ends_when_nothing_new_comes():
    batches = [np.array([[k % 3]], np.int32) for k in range(20)]
    assert collect_rows(iter(batches), patience=4).tolist() == [[0], [1], [2]]


def test_codes_of_counts_is_none_for_heads_that_are_too_small():
    generator = np.random.default_rng(4)
    observed = count_transitions(get_task("S4"), generator, batch=256, length=64)
    assert codes_of_counts(observed, (3, 3), seed=0) is None
    assert codes_of_counts(observed, (5, 5), seed=0) is None  # large enough by count, but S4 has no such quotients


def test_codes_of_counts_of_a_machine_without_quotients_is_one_head():
    from exactstate.tasks import Task

    tables = np.random.default_rng(5).integers(0, 9, (2, 9))
    machine = Moore(symbols=("a", "b"), tables=tables, outputs=tuple(map(str, range(9))), readout=np.arange(9))
    task = Task.of(machine, name="random")
    observed = count_transitions(task, np.random.default_rng(6), batch=64, length=64)
    codes = codes_of_counts(observed, None, seed=0)
    assert codes is not None
    assert codes.heads == ((len(observed.seen),),)


def test_is_function_of() -> None:
    keys = np.array([[0, 1], [0, 2], [0, 1]])
    assert is_function_of(keys, np.array([5, 6, 5]))
    assert not is_function_of(keys, np.array([5, 6, 7]))


def test_complete_fills_entries_that_were_not_seen() -> None:
    table = np.array([[1, 1, 0], [2, 2, 2], [0, 2, 1], [0, 1, 1]])
    seen = np.array([[True, True, False], [False, False, False], [True, True, True], [False, True, False]])
    assert complete(table, seen).tolist() == [
        [1, 1, 2],  # one of those seen stays where it is: nothing else moves
        [0, 1, 2],  # nothing seen, nothing moved
        [0, 2, 1],
        [0, 1, 2],
    ]
    away = np.array([[1, 0, 0], [2, 2, 0]])
    assert complete(away, np.array([[True, False, False], [True, True, False]])).tolist() == [[1, 1, 1], [2, 2, 2]]


def test_unique_rows() -> None:
    rows = np.array([[3, -1], [0, 2], [3, -1], [0, 3]], np.int16)
    assert sorted(unique_rows(rows).tolist()) == [[0, 2], [0, 3], [3, -1]]

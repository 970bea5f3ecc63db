"""What is counted along a stream, and what is said when labels are not states."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate._types import MISSING
from exactstate.automata import Moore
from exactstate.errors import InvalidInput
from exactstate.tasks import Batch
from exactstate.tasks import task as get_task
from exactstate.train.state_codes import TransitionCounts, count_transitions, find_codes


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


def test_find_codes_refuses_labels_that_are_outputs():
    s3 = get_task("S3")
    transitions = TransitionCounts(2, 2)
    batch = s3.sample(64, 20, np.random.default_rng(0))
    colours = np.array([0, 0, 1, 1, 0, 1])
    transitions.add(Batch(inputs=batch.inputs, states=colours[batch.states], before=colours[batch.before]))
    assert transitions.conflict is not None
    with pytest.raises(
        InvalidInput, match=r"the labels are not states: label . and symbol . led to label . and to label"
    ):
        find_codes(transitions, None, seed=0)


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
def test_find_codes_carry_the_labels(name, heads, wanted):
    task = get_task(name)
    generator = np.random.default_rng(2)
    codes = find_codes(count_transitions(task, generator, batch=256, length=64), heads, seed=0)
    assert codes is not None
    assert codes.heads == wanted
    fresh = task.sample(64, 200, generator)
    assert codes.holds_on(fresh)
    paths = codes.trajectories(fresh.inputs)
    assert np.array_equal(paths[:, 1:], codes.of_label[fresh.states.astype(np.int64)])


def test_holds_on_notices_a_wrong_code():
    """The judge barks: one wrong move, and the joint index no longer tells the label."""
    task = get_task("S3")
    generator = np.random.default_rng(3)
    codes = find_codes(count_transitions(task, generator, batch=256, length=64), None, seed=0)
    assert codes is not None
    codes.tables[0][0, 0] = (codes.tables[0][0, 0] + 1) % codes.heads[0]
    assert not codes.holds_on(task.sample(64, 64, generator))


def test_find_codes_is_none_for_heads_that_are_too_small():
    generator = np.random.default_rng(4)
    observed = count_transitions(get_task("S4"), generator, batch=256, length=64)
    assert find_codes(observed, (3, 3), seed=0) is None
    assert find_codes(observed, (5, 5), seed=0) is None  # large enough by count, but S4 has no such quotients


def test_find_codes_of_a_machine_without_quotients_is_one_head():
    from exactstate.tasks import Task

    tables = np.random.default_rng(5).integers(0, 9, (2, 9))
    machine = Moore(symbols=("a", "b"), tables=tables, outputs=tuple(map(str, range(9))), readout=np.arange(9))
    task = Task.of(machine, name="random")
    observed = count_transitions(task, np.random.default_rng(6), batch=64, length=64)
    codes = find_codes(observed, None, seed=0)
    assert codes is not None
    assert codes.heads == (len(observed.seen),)

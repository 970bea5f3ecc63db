"""Machines inferred from outputs: compared on all short words with a loop of our own, refused where it must fail."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, tomita
from exactstate.errors import InvalidConfig, NotLearned
from exactstate.learning.passive_learning import PassiveLearningConfig, infer_machine
from exactstate.tasks import OutputTask, Task, task


def random_moore(n, A, seed):
    generator = np.random.default_rng(seed)
    tables, readout = generator.integers(0, n, (A, n)), generator.integers(0, 2, n)
    return Moore(symbols="abc"[:A], tables=tables, outputs=("no", "yes"), readout=readout)


def coloured(name, seed=42):
    """A group seen through one bit."""
    machine = task(name).machine
    readout = np.random.default_rng(seed).integers(0, 2, machine.n_states)
    return Moore(symbols=machine.symbols, tables=machine.tables, outputs=("no", "yes"), readout=readout)


def answers(machine, word):
    """What a machine puts out at every symbol, one step at a time."""
    state, said = machine.start, []
    for symbol in word:
        before, state = state, int(machine.tables[symbol, state])
        number = machine.readout[symbol, before] if isinstance(machine, Mealy) else machine.readout[state]
        said.append(machine.outputs[number])
    return said


def listen(machine, seed=1, settings=None):
    return infer_machine(
        OutputTask.of_task(Task.of(machine, name="m")), np.random.default_rng(seed), settings or PassiveLearningConfig()
    ).task.machine


@pytest.mark.parametrize("k", range(1, 8))
def test_infer_machine_of_tomitas_languages(k):
    machine = tomita(k)
    found = listen(machine)
    assert found.n_states == machine.n_states
    for word in product(range(2), repeat=10):
        assert answers(found, word) == answers(machine, word)


@pytest.mark.parametrize(("n", "A"), [(10, 2), (10, 3), (30, 2), (60, 2)])
def test_infer_machine_of_random_machines(n, A):
    machine = random_moore(n, A, 42)
    found = listen(machine)
    assert found.n_states <= n
    generator = np.random.default_rng(0)
    for word in (*product(range(A), repeat=6), *generator.integers(0, A, (50, 300))):
        assert answers(found, word) == answers(machine, word)


def test_infer_machine_of_a_group_in_two_colors_has_all_its_states():
    machine = coloured("S4")
    found = listen(machine)
    assert found.n_states == 24
    for word in np.random.default_rng(0).integers(0, 3, (50, 300)):
        assert answers(found, word) == answers(machine, word)


def test_infer_machine_of_a_mealy_machine():
    """A Mealy machine whose output depends on where it came from: its states are split by what was said."""
    machine = Mealy(symbols="ab", tables=[[1, 1], [0, 1]], outputs="xyz", readout=[[0, 1], [2, 0]])
    found = listen(machine)
    for word in product(range(2), repeat=9):
        assert answers(found, word) == answers(machine, word)


def test_infer_machine_is_determined_by_the_seed():
    machine = random_moore(12, 2, 3)
    assert listen(machine, 5) == listen(machine, 5)


def test_infer_machine_raises_where_words_are_too_few():
    machine = random_moore(60, 3, 1)
    with pytest.raises(
        NotLearned, match=r"not learned: after 8 words of 8 symbols, merging states gave .* on \d+ of 32"
    ):
        listen(machine, settings=PassiveLearningConfig(words=8, max_words=8, length=8, test_words=32))
    with pytest.raises(NotLearned, match="more than 3 states"):
        listen(machine, settings=PassiveLearningConfig(max_words=64, max_states=3))


def test_output_task_labels_are_outputs():
    heard = OutputTask.of_task(task("Tomita4"))
    batch = heard.sample(3, 20, np.random.default_rng(2))
    for word, said in zip(batch.inputs, batch.states, strict=True):
        assert [heard.labels[k] for k in said] == answers(heard.machine, word)
    assert (heard.label_kind, task("Tomita4").label_kind) == ("outputs", "states")
    with pytest.raises(InvalidConfig, match="task TSO3 needs state labels and answers"):
        OutputTask.of_task(task("TSO3"))

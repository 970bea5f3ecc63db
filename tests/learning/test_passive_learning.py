"""Machines found in their outputs: compared on all short words with a loop of our own, and told where it must fail."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from detent._types import MISSING
from detent.automata import Mealy, Moore, tomita
from detent.errors import InvalidConfig, InvalidInput, NotLearned
from detent.learning.passive_learning import PassiveLearningConfig, infer_machine
from detent.learning.prefix_tree import PrefixTree
from detent.learning.state_merging import merge_states
from detent.tasks import OutputTask, Task, task


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
def test_tomitas_languages(k):
    machine = tomita(k)
    found = listen(machine)
    assert found.n_states == machine.n_states
    for word in product(range(2), repeat=10):
        assert answers(found, word) == answers(machine, word)


@pytest.mark.parametrize(("n", "A"), [(10, 2), (10, 3), (30, 2), (60, 2)])
def test_random_machines(n, A):
    machine = random_moore(n, A, 42)
    found = listen(machine)
    assert found.n_states <= n
    generator = np.random.default_rng(0)
    for word in (*product(range(A), repeat=6), *generator.integers(0, A, (50, 300))):
        assert answers(found, word) == answers(machine, word)


def test_a_group_through_two_colours_has_all_its_states():
    machine = coloured("S4")
    found = listen(machine)
    assert found.n_states == 24
    for word in np.random.default_rng(0).integers(0, 3, (50, 300)):
        assert answers(found, word) == answers(machine, word)


def test_what_is_said_on_the_way():
    """A Mealy machine whose output depends on where it came from: its states are split by what was said."""
    machine = Mealy(symbols="ab", tables=[[1, 1], [0, 1]], outputs="xyz", readout=[[0, 1], [2, 0]])
    found = listen(machine)
    for word in product(range(2), repeat=9):
        assert answers(found, word) == answers(machine, word)


def test_the_same_seed_hears_the_same():
    machine = random_moore(12, 2, 3)
    assert listen(machine, 5) == listen(machine, 5)


def test_a_tree_holds_what_was_heard():
    tree = PrefixTree(2)
    tree.add(np.array([[0, 1], [0, 0]]), np.array([[1, 0], [1, 1]]))
    assert (len(tree), tree.words, tree.output, tree.visits) == (4, 2, [MISSING, 1, 0, 1], [2, 2, 1, 1])
    assert tree.next == [{0: 1}, {1: 2, 0: 3}, {}, {}]
    with pytest.raises(InvalidInput, match="the same word has output 0 and output 1"):
        tree.add(np.array([[0, 1]]), np.array([[1, 1]]))


def test_merging_is_undone_where_it_fails():
    """'a' flips the output: three nodes in a row fold into two states, and a fourth that contradicts is a third."""
    tree = PrefixTree(1)
    tree.add(np.zeros((1, 6), int), np.array([[1, 0, 1, 0, 1, 0]]))
    merged = merge_states(tree, max_states=10, max_comparisons=1000)
    assert merged is not None
    assert (merged.tables.tolist(), merged.output.tolist()) == ([[1, 0]], [0, 1])
    assert merged.count_wrong(np.zeros((2, 4), int), np.array([[1, 0, 1, 0], [1, 0, 1, 1]])) == 1
    tree = PrefixTree(1)
    tree.add(np.zeros((1, 6), int), np.array([[1, 0, 1, 1, 0, 1]]))
    again = merge_states(tree, max_states=10, max_comparisons=1000)
    assert again is not None
    assert (again.tables.tolist(), again.output.tolist()) == ([[1, 2, 0]], [1, 1, 0])
    assert merge_states(tree, max_states=2, max_comparisons=1000) is None
    assert merge_states(tree, max_states=10, max_comparisons=1) is None


def test_what_was_never_heard_is_wrong():
    tree = PrefixTree(2)
    tree.add(np.zeros((1, 4), int), np.zeros((1, 4), int))
    merged = merge_states(tree, max_states=4, max_comparisons=1000)
    assert merged is not None
    assert merged.tables[1].tolist() == [MISSING]
    assert merged.count_wrong(np.array([[0, 1], [0, 0]]), np.zeros((2, 2), int)) == 1


def test_too_little_is_said_so():
    machine = random_moore(60, 3, 1)
    with pytest.raises(
        NotLearned, match=r"not learned: after 8 words of 8 symbols, merging states gave .* on \d+ of 32"
    ):
        listen(machine, settings=PassiveLearningConfig(words=8, max_words=8, length=8, test_words=32))
    with pytest.raises(NotLearned, match="more than 3 states"):
        listen(machine, settings=PassiveLearningConfig(max_words=64, max_states=3))


def test_outputs_as_labels():
    heard = OutputTask.of_task(task("Tomita4"))
    batch = heard.sample(3, 20, np.random.default_rng(2))
    for word, said in zip(batch.inputs, batch.states, strict=True):
        assert [heard.labels[k] for k in said] == answers(heard.machine, word)
    assert (heard.label_kind, task("Tomita4").label_kind) == ("outputs", "states")
    with pytest.raises(InvalidConfig, match="task TSO3 needs state labels and answers"):
        OutputTask.of_task(task("TSO3"))

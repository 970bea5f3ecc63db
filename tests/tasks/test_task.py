"""Tasks: batches are the same in one piece and in chunks, and labels agree with closed formulas."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from exactstate import automata
from exactstate.errors import InvalidConfig
from exactstate.tasks import AnswerTask, BoundedRuns, IidLetters, OutputTask, Task, tracking_shuffled_objects
from tests.cases import pairs

FLIP_FLOP = automata.flip_flop()
TASKS = [
    Task.of(automata.cyclic(16), name="Z16"),
    Task.of(automata.symmetric(4), name="S4"),
    Task(name="FF", machine=FLIP_FLOP, sampler=IidLetters((18, 1, 1))),
    Task(name="DFF5", machine=FLIP_FLOP, sampler=BoundedRuns(3, letter=0, longest=4)),
    tracking_shuffled_objects(3),
]
by_name = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("task", "length", "chunk"), pairs(TASKS, [20, 27, 100, 8192, 20_001], [1, 7, 64, 8192, 10_000, 1 << 20])
)
def test_stream_in_chunks_of_any_size_gives_the_words_of_sample(task: Task, length: int, chunk: int) -> None:
    if chunk == 1 and length > 100:
        return
    whole = task.sample(3, length, generator())
    position, before = 0, np.full(3, task.machine.start)
    parts = list(task.stream(3, length, generator(), chunk=chunk))
    for part in parts:
        assert part.position == position
        assert part.inputs.shape[1] == min(chunk, length - position)
        assert np.array_equal(part.before, before)
        position, before = position + part.inputs.shape[1], part.states[:, -1]
    assert np.array_equal(np.concatenate([part.inputs for part in parts], axis=1), whole.inputs)
    assert np.array_equal(np.concatenate([part.states for part in parts], axis=1), whole.states)
    assert all(part.answers is None for part in parts[:-1])
    if task.question is not None:
        assert np.array_equal(parts[-1].queries, whole.queries)
        assert np.array_equal(parts[-1].answers, whole.answers)


@by_name
def test_sample_depends_on_the_seed_and_advances_the_generator(task: Task) -> None:
    ours = generator()
    first, second = task.sample(4, 64, ours), task.sample(4, 64, ours)
    assert np.array_equal(first.inputs, task.sample(4, 64, generator()).inputs)
    assert not np.array_equal(first.inputs, second.inputs)


@by_name
def test_stream_advances_the_generator_by_the_same_amount(task: Task) -> None:
    after = set()
    for length, chunk in [(20, 1), (64, 64), (9000, 100)]:
        ours = generator()
        next(task.stream(2, length, ours, chunk=chunk))
        after.add(int(ours.integers(1 << 60)))
    assert len(after) == 1


@by_name
def test_stream_is_independent_of_other_draws(task: Task) -> None:
    ours, parts = generator(), []
    for part in task.stream(2, 20_001, ours, chunk=1000):
        ours.random(17)
        parts.append(part.inputs)
    assert np.array_equal(np.concatenate(parts, axis=1), task.sample(2, 20_001, generator()).inputs)


@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("length", [0, 1, 64, 1001])
def test_sample_labels_of_cyclic_groups_are_sums(n: int, length: int) -> None:
    batch = Task.of(automata.cyclic(n), name="Zn").sample(5, length, generator())
    assert np.array_equal(batch.states, np.cumsum(batch.inputs.astype(int), axis=1) % n)


@pytest.mark.parametrize(
    ("machine", "letters"),
    [
        (automata.symmetric(3), [[1, 0, 2], [0, 2, 1]]),
        (automata.symmetric(4), [[1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2]]),
        (automata.alternating(5), [[1, 2, 0, 3, 4], [0, 2, 3, 1, 4], [0, 1, 3, 4, 2]]),
    ],
    ids=["S3", "S4", "A5"],
)
def test_sample_labels_of_groups_are_products_of_permutations(
    machine: automata.Moore, letters: list[list[int]]
) -> None:
    """Two positions have the same label exactly when the products of the letters up to there are equal."""
    batch = Task.of(machine, name="group").sample(20, 200, generator())
    product_of_label: dict[int, tuple[int, ...]] = {}
    for inputs, states in zip(batch.inputs, batch.states, strict=True):
        product = tuple(range(len(letters[0])))
        for letter, state in zip(inputs, states, strict=True):
            product = tuple(letters[letter][k] for k in product)
            assert product_of_label.setdefault(int(state), product) == product
    assert len(set(product_of_label.values())) == len(product_of_label) == machine.n_states


@pytest.mark.parametrize("task", TASKS[2:4], ids=lambda task: task.name)
def test_sample_labels_of_flip_flops_are_the_last_letter_that_is_not_the_identity(task: Task) -> None:
    batch = task.sample(50, 300, generator())
    for inputs, states in zip(batch.inputs, batch.states, strict=True):
        last = 0
        for letter, state in zip(inputs, states, strict=True):
            last = letter or last
            assert state == last


MEALY = automata.Mealy(
    symbols=("a", "b"), tables=[[1, 2, 0], [0, 0, 2]], outputs=("x", "y", "z"), readout=[[0, 1, 2], [2, 1, 0]]
)


@pytest.mark.parametrize("machine", [automata.tomita(4), MEALY], ids=["Moore", "Mealy"])
@pytest.mark.parametrize("chunk", [1, 9, 200])
def test_outputs_are_the_output_ids_of_the_machine(machine: automata.Moore | automata.Mealy, chunk: int) -> None:
    task = Task.of(machine, name="mine")
    parts = list(task.stream(4, 200, generator(), chunk=chunk))
    words = np.concatenate([part.inputs for part in parts], axis=1)
    outputs = np.concatenate([task.outputs(part) for part in parts], axis=1)
    assert np.array_equal(outputs, machine.output_ids(words))
    assert task.outputs(task.sample(2, 0, generator())).shape == (2, 0)


def test_for_length_sweep_uses_the_sweep_sampler() -> None:
    task = Task(name="FF", machine=FLIP_FLOP, sampler=IidLetters((18, 1, 1)), sweep_sampler=IidLetters((198, 1, 1)))
    swept = task.for_length_sweep()
    assert swept.sampler == IidLetters((198, 1, 1))
    assert swept.for_length_sweep() is swept
    assert swept.machine is task.machine
    assert TASKS[0].for_length_sweep() is TASKS[0]


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_sample_empty_and_tiny_batches(batch: int, length: int) -> None:
    for task in TASKS[:4]:
        sample = task.sample(batch, length, generator())
        assert sample.inputs.shape == sample.states.shape == (batch, length)
        assert sample.before.shape == (batch,)


@by_name
def test_sample_of_no_words_has_a_length(task: Task) -> None:
    assert task.sample(0, 64, generator()).states.shape == (0, 64)


@pytest.mark.parametrize(("batch", "length", "chunk"), [(-1, 5, 1), (1, -5, 1), (1, 5, 0)])
def test_stream_refuses_negative_sizes_at_once(batch: int, length: int, chunk: int) -> None:
    with pytest.raises(InvalidConfig, match=f"got batch {batch}, length {length}, chunk {chunk}"):
        TASKS[0].stream(batch, length, generator(), chunk=chunk)


def test_stream_refuses_an_impossible_length_at_once() -> None:
    with pytest.raises(InvalidConfig, match="at least 20 tokens"):
        TASKS[-1].stream(1, 3, generator())


def test_task_refuses_a_sampler_for_other_symbols() -> None:
    with pytest.raises(InvalidConfig, match="the sampler of task odd draws 4 symbols, but its machine reads 3"):
        Task(name="odd", machine=FLIP_FLOP, sampler=IidLetters.uniform(4))


def test_task_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TASKS[0].name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("machine", [automata.tomita(4), MEALY], ids=["Moore", "Mealy"])
def test_output_task_labels_the_same_words_with_outputs(machine: automata.Moore | automata.Mealy) -> None:
    task = Task.of(machine, name="mine")
    hidden = OutputTask.of_task(task)
    batch = hidden.sample(4, 50, generator())
    assert (hidden.label_kind, task.label_kind) == ("outputs", "states")
    assert hidden.labels == machine.outputs
    assert np.array_equal(batch.inputs, task.sample(4, 50, generator()).inputs)
    assert np.array_equal(batch.states, machine.output_ids(batch.inputs))


def test_output_task_refuses_a_task_with_a_question() -> None:
    with pytest.raises(InvalidConfig, match="task TSO3 needs state labels and answers; output labels alone are for"):
        OutputTask.of_task(TASKS[-1])


def test_answer_task_labels_the_same_stories_with_their_answers_alone() -> None:
    story = TASKS[-1]
    hidden = AnswerTask.of_task(story)
    batch, other = hidden.sample(16, 60, generator()), story.sample(16, 60, generator())
    assert (hidden.label_kind, hidden.labels, hidden.registers) == ("outputs", ("unlabeled",), ())
    assert np.array_equal(batch.inputs, other.inputs)
    assert np.array_equal(batch.answers, other.answers)
    assert not batch.states.any()


def test_answer_task_refuses_a_task_without_a_question() -> None:
    with pytest.raises(InvalidConfig, match="Z16 asks no question; answers are labels of tasks that ask one"):
        AnswerTask.of_task(TASKS[0])

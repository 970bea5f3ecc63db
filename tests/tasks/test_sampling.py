"""Words and labels: the same at once and in chunks, and the labels are what closed formulas say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from detent import automata
from detent.errors import InvalidConfig
from detent.tasks import Letters, ShortRuns, Task, tracking_objects

FLIP_FLOP = automata.flip_flop()
TASKS = [
    Task.of(automata.cyclic(16), name="Z16"),
    Task.of(automata.symmetric(4), name="S4"),
    Task(name="FF", machine=FLIP_FLOP, law=Letters((18, 1, 1))),
    Task(name="DFF5", machine=FLIP_FLOP, law=ShortRuns(3, of=0, longest=4)),
    tracking_objects(3),
]
by_name = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@by_name
@pytest.mark.parametrize("length", [20, 27, 100, 8192, 20_001])
@pytest.mark.parametrize("chunk", [1, 7, 64, 8192, 10_000, 1 << 20])
def test_chunks_of_any_size_make_the_same_words(task: Task, length: int, chunk: int) -> None:
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
        assert np.array_equal(parts[-1].asked, whole.asked)
        assert np.array_equal(parts[-1].answers, whole.answers)


@by_name
def test_the_seed_decides_and_the_generator_moves_on(task: Task) -> None:
    ours = generator()
    first, second = task.sample(4, 64, ours), task.sample(4, 64, ours)
    assert np.array_equal(first.inputs, task.sample(4, 64, generator()).inputs)
    assert not np.array_equal(first.inputs, second.inputs)


@by_name
def test_the_generator_moves_on_alike_for_every_length_and_chunk(task: Task) -> None:
    after = set()
    for length, chunk in [(20, 1), (64, 64), (9000, 100)]:
        ours = generator()
        next(task.stream(2, length, ours, chunk=chunk))
        after.add(int(ours.integers(1 << 60)))
    assert len(after) == 1


@by_name
def test_a_stream_is_not_disturbed_by_other_draws(task: Task) -> None:
    ours, parts = generator(), []
    for part in task.stream(2, 20_001, ours, chunk=1000):
        ours.random(17)
        parts.append(part.inputs)
    assert np.array_equal(np.concatenate(parts, axis=1), task.sample(2, 20_001, generator()).inputs)


@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("length", [0, 1, 64, 1001])
def test_cyclic_labels_are_sums(n: int, length: int) -> None:
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
def test_group_labels_are_products_of_permutations(machine: automata.Moore, letters: list[list[int]]) -> None:
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
def test_flip_flop_labels_are_the_last_letter_that_is_not_the_identity(task: Task) -> None:
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
def test_outputs_are_what_the_machine_responds(machine: automata.Moore | automata.Mealy, chunk: int) -> None:
    task = Task.of(machine, name="mine")
    parts = list(task.stream(4, 200, generator(), chunk=chunk))
    words = np.concatenate([part.inputs for part in parts], axis=1)
    said = np.concatenate([task.outputs(part) for part in parts], axis=1)
    assert np.array_equal(said, machine.output_ids(words))
    assert task.outputs(task.sample(2, 0, generator())).shape == (2, 0)


def test_sweeps_may_have_a_law_of_their_own() -> None:
    task = Task(name="FF", machine=FLIP_FLOP, law=Letters((18, 1, 1)), sweep_law=Letters((198, 1, 1)))
    swept = task.for_sweeps()
    assert swept.law == Letters((198, 1, 1))
    assert swept.for_sweeps() is swept
    assert swept.machine is task.machine
    assert TASKS[0].for_sweeps() is TASKS[0]


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_empty_and_tiny_batches(batch: int, length: int) -> None:
    for task in TASKS[:4]:
        sample = task.sample(batch, length, generator())
        assert sample.inputs.shape == sample.states.shape == (batch, length)
        assert sample.before.shape == (batch,)


@by_name
def test_a_batch_of_no_words_has_a_length(task: Task) -> None:
    assert task.sample(0, 64, generator()).states.shape == (0, 64)


@pytest.mark.parametrize(("batch", "length", "chunk"), [(-1, 5, 1), (1, -5, 1), (1, 5, 0)])
def test_sizes_below_nought_are_refused_at_once(batch: int, length: int, chunk: int) -> None:
    with pytest.raises(InvalidConfig, match=f"got batch {batch}, length {length}, chunk {chunk}"):
        TASKS[0].stream(batch, length, generator(), chunk=chunk)


def test_a_length_that_cannot_be_spoken_is_refused_at_once() -> None:
    with pytest.raises(InvalidConfig, match="at least 20 tokens"):
        TASKS[-1].stream(1, 3, generator())


def test_a_law_for_other_symbols_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="task odd draws 4 symbols, but its machine reads 3"):
        Task(name="odd", machine=FLIP_FLOP, law=Letters.uniform(4))


def test_tasks_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TASKS[0].name = "other"  # type: ignore[misc]

"""Free tables: what they learn, that they are exact, how they reach a layer, and what a run with them leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.automata import Mealy, Moore, distinguishing_word, write_machine
from exactstate.errors import InvalidConfig, NotLearned
from exactstate.nn import NFSM
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.task import OutputTask
from exactstate.train import configure, train
from exactstate.train.config import LARGEST_FREE, FreeTablesConfig, TrainConfig
from exactstate.train.free_tables import (
    ENDS,
    FreeTables,
    FreeTablesPhase,
    set_tables,
    transition_words,
)
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Mistakes
from exactstate.train.run import tables_method
from exactstate.train.straight_through import free_size


class Died(Exception):
    pass


DOOR = Mealy(
    symbols=("open", "close", "lock"),
    tables=np.array([[1, 1, 2], [0, 0, 2], [2, 1, 0]]),
    states=("shut", "ajar", "locked"),
    outputs=("ok", "no"),
    readout=np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]]),
)


def phase_of(task: Task, size: int = 16, seed: int = 1, **settings: object) -> FreeTablesPhase:
    config = FreeTablesConfig(**settings)  # type: ignore[arg-type]
    weights = torch.Generator().manual_seed(seed)
    return FreeTablesPhase(task, config, size, 10, (64, 24), np.random.default_rng(seed), weights)


def run(phase: FreeTablesPhase) -> FreeTablesPhase:
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0 or phase.done:
            phase.check()
    return phase


@pytest.mark.parametrize("kind", ["states", "outputs"])
def test_free_tables_learn_a_mealy_machine_from_its_states_and_from_its_outputs(kind: str) -> None:
    task = Task.reaching(DOOR, name="door")
    task = OutputTask.of_task(task) if kind == "outputs" else task
    phase = run(phase_of(task))
    assert phase.learned
    target = DOOR if kind == "outputs" else Moore.of(DOOR).to_mealy()
    assert distinguishing_word(phase.tables.machine(task).to_mealy(), target) is None


def exact_tables(states: bool) -> tuple[FreeTables, Task]:
    """Tables of the door with one spare index, decided by a margin of 9."""
    task = Task.reaching(DOOR, name="door")
    task = task if states else OutputTask.of_task(task)
    tables = FreeTables(3, 4, len(task.labels), states=states, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        tables.logits.zero_()
        tables.readout.zero_()
        for a in range(3):
            for q in range(3):
                tables.logits[a, q, int(DOOR.tables[a, q])] = 9.0
                if states:
                    tables.readout[0, q, q] = 9.0
                else:
                    tables.readout[a, q, int(DOOR.readout[a, q])] = 9.0
    return tables, task


@pytest.mark.parametrize("states", [True, False])
def test_exact_labels_are_those_of_the_target_and_a_changed_entry_is_seen(states: bool) -> None:
    tables, task = exact_tables(states)
    batch = task.sample(32, 17, np.random.default_rng(0))
    words, labels = (torch.from_numpy(np.asarray(part).astype(np.int64)) for part in (batch.inputs, batch.states))
    assert torch.equal(tables.exact(words), labels)
    likelihoods = tables.likelihoods(tables.states_of(words), words, labels)
    assert float(likelihoods.detach().min()) > 0.9
    with torch.no_grad():
        tables.logits[0, 0] = torch.tensor([9.0, 0.0, 0.0, 0.0])
    assert not torch.equal(tables.exact(words), labels)


def test_machine_of_a_wrong_head_is_refused_with_words_that_are_then_trained_on() -> None:
    tables, task = exact_tables(states=True)
    phase = phase_of(task, size=4)
    with torch.no_grad():
        phase.tables.logits.copy_(tables.logits)
        phase.tables.readout.copy_(tables.readout)
        phase.tables.logits[2, 2] = torch.tensor([0.0, 9.0, 0.0, 0.0])  # lock, when locked
    assert phase._ask_verdict() > 0
    assert not phase.learned
    assert ["lock", "lock"] in phase.refused
    with torch.no_grad():
        phase.tables.logits.copy_(tables.logits)
    assert phase._ask_verdict() == 0
    assert phase.learned


def test_split_index_copies_the_disputed_one_and_its_moments() -> None:
    tables, _ = exact_tables(states=True)
    optimizer = Adam(tables.parameters(), 0.0)
    (tables.logits.sum() + tables.readout.sum()).backward()
    optimizer.step()
    optimizer.state[tables.logits]["exp_avg_sq"][:, 1] = 100.0
    tables.use.copy_(torch.tensor([0.4, 0.3, 0.3, 0.0]))
    assert tables.split_indices(optimizer, 2, torch.Generator().manual_seed(0)) == 1
    assert torch.equal(tables.readout[0, 3], tables.readout[0, 1])
    assert float((tables.logits[:, 3, :3] - tables.logits[:, 1, :3]).abs().max().detach()) < 3.0
    assert float(optimizer.state[tables.logits]["exp_avg_sq"][0, 3, 0]) == 100.0
    assert float(optimizer.state[tables.logits]["exp_avg"][:, 3].abs().max()) == 0.0


def test_spare_indices_are_those_that_no_word_reaches_and_twins() -> None:
    tables, _ = exact_tables(states=False)
    assert tables.spare_indices() == ([3], {})  # nothing leads to index 3
    with torch.no_grad():  # index 3 becomes a twin of "ajar" that "open" leads to
        tables.logits[:, 3], tables.readout[:, 3] = tables.logits[:, 1], tables.readout[:, 1]
        tables.logits[0, 0] = torch.tensor([0.0, 0.0, 0.0, 9.0])
    tables.use.copy_(torch.tensor([0.4, 0.3, 0.2, 0.1]))
    assert tables.spare_indices() == ([3], {3: 1})
    with torch.no_grad():  # one label differs: no twin
        tables.readout[2, 3] = torch.tensor([9.0, 0.0])
    assert tables.spare_indices() == ([], {})


def test_unfold_gives_the_end_of_a_wrong_word_a_copy_that_forgets_the_wrong_label() -> None:
    tables, task = exact_tables(states=False)
    optimizer = Adam(tables.parameters(), 0.0)
    (tables.logits.sum() + tables.readout.sum()).backward()
    optimizer.step()
    words = torch.from_numpy(task.sample(64, 12, np.random.default_rng(0)).inputs.astype(np.int64))
    before, logits = tables.exact(words), tables.logits.detach().clone()
    generator = np.random.default_rng(1)
    assert tables.unfold(optimizer, [([0, 1, 2], 0)], 4, generator) == 0  # nothing comes before the first symbol
    assert tables.unfold(optimizer, [([0, 2], 1)], 0, generator) == 0
    assert (
        tables.unfold(optimizer, [([0, 2], 1), ([0, 2], 1)], 4, generator) == 1
    )  # "open lock": ajar, then the wrong label
    moves = tables.logits.detach().argmax(2)
    assert int(moves[0, 0]) == 3
    assert torch.equal(moves[:, 3], moves[:, 1])
    assert torch.equal(tables.logits[:, 3].detach().argmax(1), logits[:, 1].argmax(1))
    assert tables.readout[2, 3].tolist() == [0.0, 0.0]
    assert torch.equal(tables.readout[:2, 3], tables.readout[:2, 1])
    assert float(optimizer.state[tables.logits]["exp_avg"][:, 3].abs().max()) == 0.0
    with torch.no_grad():
        tables.readout[2, 3] = tables.readout[2, 1]
    assert torch.equal(tables.exact(words), before)  # but for the label that it forgets, nothing has changed


def test_covering_words_go_on_with_the_ends_of_wrong_words() -> None:
    tables, task = exact_tables(states=False)
    phase = phase_of(task, size=4)
    with torch.no_grad():
        phase.tables.logits.copy_(tables.logits)
        phase.tables.readout.copy_(tables.readout)
    assert phase._covering_words() == transition_words(DOOR.symbols, phase.tables.logits.detach().argmax(2))
    phase._unfold([[0, 2, 1, 1, 0, 2, 2, 1, 0, 0]], [6], 0)
    (end,) = phase.ends
    assert 1 <= len(end) <= ENDS
    assert end == [0, 2, 1, 1, 0, 2, 2][-len(end) :]
    tail = [DOOR.symbols[a] for a in end]
    assert all(word[-len(tail) :] == tail and len(word) > len(tail) for word in phase._covering_words())


def test_wrong_words_are_repeated_a_few_times_at_most() -> None:
    words, labels = torch.zeros(2, 32, 3, dtype=torch.long)
    wrong = [[[1, 1, 1, 1], [2, 2, 2, 2]]]
    for repeats in (1, 4):
        replayed, wanted = Mistakes(words=wrong).mix(words, labels, 0.25, np.random.default_rng(0), repeats)
        assert int((replayed == 1).all(1).sum()) == repeats
        assert int((wanted == 2).all(1).sum()) == repeats


def test_set_tables_gives_a_layer_these_tables() -> None:
    generator = torch.Generator().manual_seed(3)
    tables, rows = torch.randint(7, (5, 7), generator=generator), torch.randn(5, 16, generator=generator)
    layer = NFSM(16, (7,)).eval()
    set_tables(layer, rows, tables, 8.0)
    (found,) = layer.tables(rows[None])
    assert torch.equal(found[0], tables)


def test_transition_words_take_every_transition_of_the_indices_that_are_reached() -> None:
    words = transition_words(("a", "b"), torch.tensor([[1, 1, 0], [0, 0, 2]]))
    assert words == [["a"], ["b"], ["a", "a"], ["a", "b"]]


def test_free_size_leaves_given_heads_wide_alphabets_and_many_labels_alone(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    name = str(tmp_path / "door.dot")
    config, task = configure(name), get_task(name)
    assert free_size(config, task, 0) == 24
    assert free_size(config, task, 2) == 48
    assert free_size(config, OutputTask.of_task(task), 0) == 96
    assert free_size(replace(config, heads=(4, 4)), task, 0) == 0
    assert free_size(replace(config, width=2), task, 0) == 0
    large = replace(config, free_tables=FreeTablesConfig(size=LARGEST_FREE + 1))
    assert free_size(large, task, 0) == 0
    assert configure("S3").free_tables is None
    with pytest.raises(InvalidConfig, match="batch must be at least 1"):
        FreeTablesConfig(batch=0)


def test_config_with_free_tables_survives_json(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"))
    assert TrainConfig.from_json(config.to_json()) == config


def test_run_of_a_machine_file_is_certified_and_resumes_to_the_same_weights(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"), supervise="outputs")
    config = replace(config, gradient=replace(config.gradient, compress=False))
    whole = train(config)
    assert whole.certified
    assert {"free_tables", "wide"} <= {row["phase"] for row in whole.history}
    assert whole.row()["tables"] == "free tables"
    phases = [row["phase"] for row in whole.history]
    for stop in (phases.index("free_tables") + 1, phases.index("wide") + 1):
        seen: list[object] = []

        def die(row: object, stop: int = stop, seen: list[object] = seen) -> None:
            seen.append(row)
            if len(seen) == stop:
                raise Died

        folder = tmp_path / f"run-{stop}"
        with pytest.raises(Died):
            train(config, die, out=folder, save_every=0.0)
        resumed = train(config, out=folder)
        assert resumed.extracted.weights == whole.extracted.weights
        assert not list(folder.glob("stage-free-tables*"))


def test_free_tables_that_are_not_learned_say_how_far_they_came_and_what_to_try(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"), supervise="outputs", restarts=0)
    config = replace(config, free_tables=FreeTablesConfig(steps=1))
    with pytest.raises(NotLearned, match=r"not learned in 1 steps: .* of fresh words are right.*--supervise states"):
        train(config)


def test_moore_target_is_learned_from_its_outputs() -> None:
    machine = Moore(
        symbols=("0", "1"), tables=np.array([[0, 2, 1], [1, 0, 2]]), outputs=("no", "yes"), readout=np.array([1, 0, 0])
    )
    task = OutputTask.of_task(Task.reaching(machine, name="thirds"))
    phase = run(phase_of(task, size=24))
    assert phase.learned


def test_history_says_why_a_machine_file_is_learned_by_a_wide_layer(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = replace(configure(str(tmp_path / "door.dot"), supervise="states"), width=2, restarts=0)
    config = replace(config, gradient=replace(config.gradient, steps=1, compress=False))
    history: list[Row] = []
    with pytest.raises(NotLearned):
        train(config, history.append)
    assert history[0]["reason"] == "no free tables: 3 symbols exceed the width, 2"
    assert tables_method(history) == "wide layer"
    large = replace(config, width=16, free_tables=FreeTablesConfig(size=LARGEST_FREE + 1))
    history.clear()
    with pytest.raises(NotLearned):
        train(large, history.append)
    assert history[0]["reason"] == "no free tables: a head for 3 labels would exceed 192 indices"


def test_method_is_that_of_the_last_attempt() -> None:
    assert tables_method([]) == "wide layer"
    assert tables_method([{"attempt": 0, "phase": "embed"}, {"attempt": 0, "phase": "wide"}]) == "label embeddings"
    assert tables_method([{"attempt": 0, "phase": "free_tables"}, {"attempt": 1, "phase": "wide"}]) == "wide layer"

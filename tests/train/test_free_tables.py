"""Free tables: what they learn, that they are exact, how they reach a layer, and what a run with them leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from detent.automata import Mealy, Moore, distinguishing_word, write_machine
from detent.errors import InvalidConfig, NotLearned
from detent.nn import NFSM
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.tasks.task import OutputTask
from detent.train import configure, train
from detent.train.config import LARGEST_FREE, FreeTablesConfig, TrainConfig
from detent.train.free_tables import FreeTables, FreeTablesPhase, set_tables, transition_words
from detent.train.gradient import free_size
from detent.train.optimizer import Adam


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

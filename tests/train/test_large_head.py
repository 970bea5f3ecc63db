"""One large head: what it learns, that it is exact, how it splits and unfolds, and what a run with it leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.automata import Mealy, Moore, cyclic, distinguishing_word, write_machine
from exactstate.errors import NotLearned
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.task import OutputTask
from exactstate.train import configure, train
from exactstate.train.config import SearchConfig, TrainConfig
from exactstate.train.large_head import ENDS, LargeHead, LargeHeadSearch, takes_large_head, transition_words
from exactstate.train.optimizer import Adam
from exactstate.train.phases import Mistakes
from exactstate.train.run import tables_method


class Died(Exception):
    pass


DOOR = Mealy(
    symbols=("open", "close", "lock"),
    tables=np.array([[1, 1, 2], [0, 0, 2], [2, 1, 0]]),
    states=("shut", "ajar", "locked"),
    outputs=("ok", "no"),
    readout=np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]]),
)


def phase_of(task: Task, size: int = 16, seed: int = 1, **settings: int) -> LargeHeadSearch:
    weights = torch.Generator().manual_seed(seed)
    return LargeHeadSearch(task, SearchConfig(**settings), size, np.random.default_rng(seed), weights)


def run(phase: LargeHeadSearch) -> LargeHeadSearch:
    while not phase.done:
        phase.step()
        if phase.steps % phase.check_every == 0 or phase.done:
            phase.check()
    return phase


@pytest.mark.parametrize("kind", ["states", "outputs"])
def test_a_large_head_learns_a_mealy_machine_from_its_states_and_from_its_outputs(kind: str) -> None:
    task = Task.reaching(DOOR, name="door")
    task = OutputTask.of_task(task) if kind == "outputs" else task
    phase = run(phase_of(task))
    assert phase.learned
    target = DOOR if kind == "outputs" else Moore.of(DOOR).to_mealy()
    assert distinguishing_word(phase.machine(), target) is None


def exact_head(states: bool) -> tuple[LargeHead, Task]:
    """A head of the door with one spare index, decided by a margin of 9."""
    task = Task.reaching(DOOR, name="door")
    task = task if states else OutputTask.of_task(task)
    head = LargeHead(3, 4, len(task.labels), states=states, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        head.logits.zero_()
        head.readout.zero_()
        for a in range(3):
            for q in range(3):
                head.logits[q, int(DOOR.tables[a, q]), a] = 9.0
                if states:
                    head.readout[q, 0, q] = 9.0
                else:
                    head.readout[int(DOOR.readout[a, q]), a, q] = 9.0
    return head, task


def optimizer_of(head: LargeHead) -> Adam:
    """That has taken a step of length 0, with a gradient of 1 everywhere."""
    optimizer = Adam([head.weight, head.readout], 0.0)
    (head.weight.sum() + head.readout.sum()).backward()
    optimizer.step()
    return optimizer


def let(phase: LargeHeadSearch, head: LargeHead) -> LargeHeadSearch:
    with torch.no_grad():
        phase.head.logits.copy_(head.logits)
        phase.head.readout.copy_(head.readout)
    return phase


@pytest.mark.parametrize("states", [True, False])
def test_exact_labels_are_those_of_the_target_and_a_changed_entry_is_seen(states: bool) -> None:
    head, task = exact_head(states)
    batch = task.sample(32, 17, np.random.default_rng(0))
    words, labels = (np.asarray(part).astype(np.int64) for part in (batch.inputs, batch.states))
    assert np.array_equal(head.exact(words), labels)
    assert float(head.likelihood(torch.from_numpy(words), torch.from_numpy(labels)).detach()) < 0.1
    with torch.no_grad():
        head.logits[0, :, 0] = torch.tensor([9.0, 0.0, 0.0, 0.0])
    assert not np.array_equal(head.exact(words), labels)


def test_machine_of_a_wrong_head_is_refused_with_words_that_are_then_trained_on() -> None:
    head, task = exact_head(states=True)
    phase = let(phase_of(task, size=4), head)
    with torch.no_grad():
        phase.head.logits[2, :, 2] = torch.tensor([0.0, 9.0, 0.0, 0.0])  # lock, when locked
    assert phase._ask_verdict() > 0
    assert not phase.learned
    assert ["lock", "lock"] in phase.refused
    let(phase, head)
    assert phase._ask_verdict() == 0
    assert phase.learned


def test_split_index_copies_the_disputed_one_and_its_moments() -> None:
    head, _ = exact_head(states=True)
    optimizer = optimizer_of(head)
    moments = {name: optimizer.state[head.weight][name].view_as(head.logits) for name in ("exp_avg", "exp_avg_sq")}
    moments["exp_avg_sq"][1] = 100.0
    head.use.copy_(torch.tensor([0.4, 0.3, 0.3, 0.0]))
    assert head.split_indices(optimizer, 2, torch.Generator().manual_seed(0)) == 1
    assert torch.equal(head.readout[..., 3], head.readout[..., 1])
    assert float((head.logits[3, :3] - head.logits[1, :3]).abs().max()) < 3.0
    assert float(moments["exp_avg_sq"][3, 0, 0]) == 100.0
    assert float(moments["exp_avg"][3].abs().max()) == 0.0


def test_spare_indices_are_those_that_no_word_reaches_and_twins() -> None:
    head, _ = exact_head(states=False)
    assert head.spare_indices() == ([3], {})  # nothing leads to index 3
    with torch.no_grad():  # index 3 becomes a twin of "ajar" that "open" leads to
        head.logits[3], head.readout[..., 3] = head.logits[1], head.readout[..., 1]
        head.logits[0, :, 0] = torch.tensor([0.0, 0.0, 0.0, 9.0])
    head.use.copy_(torch.tensor([0.4, 0.3, 0.2, 0.1]))
    assert head.spare_indices() == ([3], {3: 1})
    with torch.no_grad():  # one label differs: no twin
        head.readout[:, 2, 3] = torch.tensor([9.0, 0.0])
    assert head.spare_indices() == ([], {})


def test_unfold_gives_the_end_of_a_wrong_word_a_copy_that_forgets_the_wrong_label() -> None:
    head, task = exact_head(states=False)
    optimizer = optimizer_of(head)
    words = task.sample(64, 12, np.random.default_rng(0)).inputs.astype(np.int64)
    before, logits = head.exact(words), head.logits.clone()
    generator = np.random.default_rng(1)
    assert head.unfold(optimizer, [([0, 1, 2], 0)], 4, generator) == 0  # nothing comes before the first symbol
    assert head.unfold(optimizer, [([0, 2], 1)], 0, generator) == 0
    ends = [([0, 2], 1), ([0, 2], 1)]  # "open lock": ajar, then the wrong label
    assert head.unfold(optimizer, ends, 4, generator) == 1
    moves = head.moves
    assert moves[0, 0] == 3
    assert np.array_equal(moves[:, 3], moves[:, 1])
    assert torch.equal(head.logits[3].argmax(0), logits[1].argmax(0))
    assert head.readout[:, 2, 3].tolist() == [0.0, 0.0]
    assert torch.equal(head.readout[:, :2, 3], head.readout[:, :2, 1])
    assert float(optimizer.state[head.weight]["exp_avg"].view_as(logits)[3].abs().max()) == 0.0
    with torch.no_grad():
        head.readout[:, 2, 3] = head.readout[:, 2, 1]
    assert np.array_equal(head.exact(words), before)  # but for the label that it forgets, nothing has changed


def test_covering_words_go_on_with_the_ends_of_wrong_words() -> None:
    head, task = exact_head(states=False)
    phase = let(phase_of(task, size=4), head)
    assert phase._covering_words() == transition_words(DOOR.symbols, phase.head.moves)
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


def test_transition_words_take_every_transition_of_the_indices_that_are_reached() -> None:
    words = transition_words(("a", "b"), np.array([[1, 1, 0], [0, 0, 2]]))
    assert words == [["a"], ["b"], ["a", "a"], ["a", "b"]]


def test_outputs_and_small_files_take_a_large_head(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    task = get_task(str(tmp_path / "door.dot"))
    assert takes_large_head(task)
    assert takes_large_head(OutputTask.of_task(task))
    assert takes_large_head(OutputTask.of_task(get_task("S3")))
    assert not takes_large_head(get_task("S3"))


def test_larger_files_take_a_large_head_where_some_states_are_met_much_more_often_than_others() -> None:
    even = cyclic(60)
    tables = np.stack([np.minimum(np.arange(60) + 1, 59), np.full(60, 59)])  # one wrong symbol, and it is over
    ending = Moore(symbols=("on", "stop"), tables=tables, outputs=("no",), readout=np.zeros(60, np.int64))
    assert not takes_large_head(Task.reaching(even, name="even"))
    assert takes_large_head(Task.reaching(ending, name="ending"))
    assert not takes_large_head(Task.reaching(cyclic(96), name="larger"))


def test_config_of_a_machine_file_survives_json(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"))
    assert TrainConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize("kind", ["states", "outputs"])
def test_run_of_a_machine_file_is_certified_and_resumes_to_the_same_weights(kind: str, tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"), supervise=kind)
    whole = train(config)
    assert whole.certified
    assert "float32" in whole.certificate().proved
    phases = [row["phase"] for row in whole.history]
    assert set(phases) == {"large_head", "realize", "stage"}
    assert whole.row()["tables"] == "one large head"
    for stop in (1, phases.index("realize") + 1):
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


def test_what_is_not_learned_says_how_far_it_came_and_what_to_try(tmp_path: Path) -> None:
    write_machine(DOOR, tmp_path / "door.dot")
    config = configure(str(tmp_path / "door.dot"), supervise="outputs", restarts=0)
    with pytest.raises(NotLearned, match=r"not learned in 1 steps: .* of fresh words are right.*--supervise states"):
        train(replace(config, search=SearchConfig(steps=1)))


def test_moore_target_is_learned_from_its_outputs() -> None:
    machine = Moore(
        symbols=("0", "1"), tables=np.array([[0, 2, 1], [1, 0, 2]]), outputs=("no", "yes"), readout=np.array([1, 0, 0])
    )
    task = OutputTask.of_task(Task.reaching(machine, name="thirds"))
    phase = run(phase_of(task, size=24))
    assert phase.learned


def test_method_is_that_of_the_last_attempt() -> None:
    assert tables_method([]) == "wide layer"
    assert tables_method([{"attempt": 0, "phase": "embed"}, {"attempt": 0, "phase": "wide"}]) == "label embeddings"
    assert tables_method([{"attempt": 0, "phase": "large_head"}, {"attempt": 1, "phase": "wide"}]) == "wide layer"

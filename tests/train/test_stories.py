"""A stack is taught, certified on all stories, and answers text in any order; through the folder and the verbs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.cli._app import run as command
from exactstate.runtime import load as load_machine
from exactstate.train import Run, TrainConfig, load_run, realize, train
from exactstate.train.build import build_model
from exactstate.train.verify import answer_machine, answers_in_any_order, extract_and_certify


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack") / "run"


@pytest.fixture(scope="module")
def learned(folder: Path) -> Run:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    run = train("TSO2", width=64, out=folder)
    torch.set_num_threads(before)
    return run


def test_train_stack_is_certified_and_recorded_as_distill(learned: Run) -> None:
    assert learned.certified, learned.verdict.explain()
    assert learned.config.recipe == "distill"
    assert learned.heads == (3, 3, 3, 3, 3)
    assert [row["phase"] for row in learned.history][-1] == "realize"
    assert learned.verdict.task_states == 12
    assert "float32" in learned.certificate().proved


def test_train_stack_answers_long_stories(learned: Run) -> None:
    batch = learned.task.sample(8, 2003, np.random.default_rng(0))
    with torch.no_grad():
        h, _ = learned.model.eval().hidden(torch.from_numpy(batch.inputs.astype(np.int64)))
        assert np.array_equal(learned.model.label_logits(h).argmax(-1).numpy(), batch.states)
        assert np.array_equal(learned.model.answer_logits(h[:, -1]).argmax(-1).numpy(), batch.answers)


def test_load_run_of_a_stack(learned: Run, folder: Path) -> None:
    loaded = load_run(folder)
    assert loaded.config == learned.config
    model = loaded.model
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), learned.model.parameters(), strict=True))
    assert load_machine(folder / "machine.json").about["reads"] == "sentences in any order"


def test_check_of_the_certificate_of_a_stack(learned: Run, folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert command(["check", str(folder / "certificate.json")]) == 0
    content = json.loads((folder / "certificate.json").read_text())
    answers = content["question"]["answers"]
    assert answers == ["alice", "bob"]
    capsys.readouterr()


def test_answer_machine_reads_sentences_in_any_order(learned: Run, folder: Path) -> None:
    machine = load_machine(folder / "machine.json")
    text = "bob has the key . bob swaps with alice . . who has the key ? bob has the ring . who has the ring ?"
    assert [said for said in machine.outputs(text) if said] == ["alice", "bob"]


def test_answer_machine_of_a_network_that_is_wrong_on_free_text(learned: Run) -> None:
    """One bent answer at a time: the shortest telling that shows it comes out."""
    bent = build_model(learned.config, learned.task, heads=learned.extracted.heads)
    bent.load_state_dict(learned.model.state_dict())
    with torch.no_grad():
        bent.answer_head.bias[0] += 1e3
    _, _, wrong = answers_in_any_order(bent.eval(), learned.extracted)
    assert wrong is not None
    assert wrong[-1] == "?"
    assert len(wrong) == 10  # bob has something, and who has it?
    _, reads = answer_machine(bent, learned.extracted)
    assert reads == "stories as the task tells them"
    assert extract_and_certify(bent, learned.task)[1].failure.kind == "answer"


def test_extract_of_a_stack_describes_its_heads(learned: Run, folder: Path, tmp_path: Path, capsys) -> None:
    assert command(["extract", str(folder), "-o", str(tmp_path / "tso2.json")]) == 0
    said = capsys.readouterr().out
    assert "layer 0, head 1 (3 indices) tracks the first name, one symbol ago" in said
    assert "layer 1, head 1 (3 indices) tracks the holder of the key" in said
    assert load_machine(tmp_path / "tso2.json") == load_machine(folder / "machine.json")


class Died(Exception):
    pass


def test_train_stack_resumes_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realize, "STEPS", 20)
    monkeypatch.setattr(realize, "CHECK_EVERY", 5)
    hasty = TrainConfig(task="TSO2", width=16, restarts=0)
    undisturbed = train(hasty)
    rows: list[object] = []

    def die(said: object) -> None:
        rows.append(said)
        if len(rows) == 3:
            raise Died

    with pytest.raises(Died):
        train(hasty, die, out=tmp_path / "run", save_every=0.0)
    again = train(hasty, out=tmp_path / "run")
    assert again.extracted.weights == undisturbed.extracted.weights
    assert again.history == undisturbed.history
    assert len(again.history) == 4

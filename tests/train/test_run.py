"""A config in, a certified network out; and the folder and the verb around it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from exactstate.automata import Moore, distinguishing_word, read_machine, write_machine
from exactstate.cli._app import run as command
from exactstate.errors import BrokenFile, InvalidConfig, UnknownName
from exactstate.tasks import task
from exactstate.train import EndToEndConfig, TrainConfig, configure, load_run, train
from exactstate.train.verify import extract_and_certify

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("name", "heads", "recipe"),
    [
        ("Z2", None, "induce"),
        ("S3", None, "induce"),
        ("S3", (6,), "induce"),
        ("FF", None, "induce"),
        ("DFF5", (3,), "induce"),
        ("S4", None, "induce"),
        pytest.param("A5", (5, 12), "induce", marks=pytest.mark.slow),
        ("S4", (4, 3, 2), "distill"),
        ("Tomita7", None, "induce"),
    ],
)
def test_train_learns_tasks_and_the_machine_is_the_target(name, heads, recipe):
    run = train(TrainConfig(task=name, heads=heads, recipe=recipe, width=64))
    assert run.certified, (run.verdict.explain(), run.history[-1])
    fresh = run.task.sample(8, 2000, np.random.default_rng(0))
    with torch.no_grad():
        said, _ = run.model(torch.from_numpy(fresh.inputs.astype(np.int64)))
    assert np.array_equal(said.argmax(-1).numpy(), fresh.states)


def test_train_twice_gives_the_same_weights():
    config = TrainConfig(task="S3", width=32)
    once, twice, other = (train(one).extracted.weights for one in (config, config, replace(config, seed=43)))
    assert once == twice
    assert once != other


def test_train_of_a_machine_file(tmp_path):
    generator = np.random.default_rng(8)
    machine = Moore(
        symbols=("a", "b", "c"), tables=generator.integers(0, 12, (3, 12)), outputs=tuple(map(str, range(12))),
        readout=np.arange(12),
    )  # fmt: skip
    write_machine(machine, tmp_path / "mine.dot")
    run = train(TrainConfig(task=str(tmp_path / "mine.dot"), width=64))
    assert run.certified


def test_extract_and_certify_finds_a_word_on_which_a_network_is_wrong():
    """The judge barks: one transition of one head bent, and the shortest word that shows it comes out."""
    run = train(TrainConfig(task="S3", width=32))
    block = run.model.layers[0].block
    with torch.no_grad():
        block.bias[0:3] += torch.tensor([0.0, 0.0, 1e4])  # head 0, from index 0: everything goes to 2
    _, verdict = extract_and_certify(run.model, run.task)
    assert not verdict
    assert verdict.failure is not None
    assert 1 <= len(verdict.failure.word) <= 3


def test_train_by_the_paper_recipe_stops_uncertified_after_its_steps():
    short = EndToEndConfig(batch=8, length=8, steps=4, check_every=2, check_words=8)
    run = train(TrainConfig(task="S4", recipe="paper", width=16, end_to_end=short, restarts=1))
    assert not run.certified
    assert run.restarts == 1
    assert run.steps == 8
    assert [row["attempt"] for row in run.history if row["phase"] != "counterexample"] == [0, 0, 1, 1]


def test_load_run_of_a_folder(tmp_path):
    config = TrainConfig(task="S3", width=32, heads=(3, 2))
    run = train(config, out=tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert again.config == config
    model = again.model
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), run.model.parameters(), strict=True))
    machine = read_machine(tmp_path / "run" / "machine.json")
    assert distinguishing_word(machine, task("S3").machine) is None
    assert sorted(machine.states) == sorted(task("S3").machine.states)
    (tmp_path / "run" / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(BrokenFile, match="these are not the weights of this run"):
        load_run(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("{}")
    with pytest.raises(BrokenFile, match="this is not the configuration of a run"):
        load_run(tmp_path / "run")


def test_train_verb_writes_the_run_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["train", "S3", "--recipe", "induce", "--seed", "5", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["certified"] is True
    assert row["heads"] == [3, 2]
    folder = tmp_path / "runs" / "S3-5-induce"
    assert sorted(path.name for path in folder.iterdir()) == [
        "certificate.json", "config.json", "history.jsonl", "machine.json", "model.safetensors", "report.html",
    ]  # fmt: skip
    assert command(["check", str(folder / "certificate.json")]) == 0
    assert "float32" in capsys.readouterr().out
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"start"', '"strat"', 1))
    assert command(["check", str(folder / "certificate.json")]) in (1, 2)
    capsys.readouterr()
    assert command(["train", "S3", "--recipe", "induce", "--seed", "6", "--out", str(folder)]) == 2
    assert "holds a run already, with seed 5, not 6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "S33"], "there is no task S33"),
        (["train", "S3", "--heads", "2;3"], "--heads takes numbers separated by commas"),
        (["train", "S3", "--recipe", "induce", "--heads", "2,2"], "fit into heads (2, 2); leave the heads out"),
        (["train", "S3", "--recipe", "papper"], "Did you mean 'paper'"),
        (["train", "TSO3", "--heads", "4,4"], "their sizes are given; got heads (4, 4)"),
    ],
)
def test_train_verb_wrong_calls(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_train_refuses_unknown_recipes():
    with pytest.raises(UnknownName, match="unknown recipe 'indcue'"):
        train("S3", recipe="indcue")
    with pytest.raises(UnknownName, match="unknown recipe 'indcue'"):
        train(TrainConfig(task="S3", recipe="indcue"))
    with pytest.raises(InvalidConfig, match="restarts must be at least 0"):
        TrainConfig(task="S3", restarts=-1)
    assert task("S3").name == "S3"


def test_train_keeps_the_outputs_of_a_mealy_machine(tmp_path):
    """A Mealy machine is learned from its outputs by default, and what is extracted is a Mealy machine again."""
    from exactstate.automata import Mealy
    from exactstate.runtime import load
    from tests.learning.machines import handshake

    run = train(handshake(), recipe="induce", out=tmp_path / "run")
    assert run.task.label_kind == "outputs"
    assert run.certified
    machine = load(tmp_path / "run" / "machine.json").automaton
    assert isinstance(machine, Mealy)
    assert distinguishing_word(machine, handshake()) is None
    assert run.row()["words"].startswith("shortest paths to random states")
    assert train(handshake(), recipe="induce", supervise="states").task.label_kind == "states"


def test_row_counts_the_rounds_of_repair() -> None:
    run = train(configure("Z2", recipe="gradient"))
    assert run.row()["repairs"] == 0
    run.history.extend({"phase": "repair", "step": step, "counterexamples": 1} for step in (1, 2))
    assert run.row()["repairs"] == 2

"""Networks trained on outputs alone, certified by behavior; and the verb that trains them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from exactstate.automata import write_machine
from exactstate.certify.check import check
from exactstate.cli._app import run as command
from exactstate.errors import InvalidConfig, UnknownName
from exactstate.tasks import Task, task
from exactstate.train import EndToEndConfig, TrainConfig, train
from tests.learning.test_passive_learning import answers, coloured, random_moore

MACHINES = {
    "Tomita3": task("Tomita3").machine,
    "10 states": random_moore(10, 2, 42),
    "30 states": random_moore(30, 2, 42),
    "S4 in two colours": coloured("S4"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_induce_from_outputs_is_certified(name, tmp_path):
    machine = MACHINES[name]
    run = train(Task.of(machine, name=name), recipe="induce", supervise="outputs", width=64, out=tmp_path / "run")
    assert run.certified, run.verdict.explain()
    assert run.model.labels == 2
    assert run.certificate().content["target"]["says"] == "outputs"
    assert check(tmp_path / "run" / "certificate.json")
    words = np.random.default_rng(0).integers(0, machine.n_symbols, (4, 500))
    with torch.no_grad():
        said = run.model(torch.from_numpy(words))[0].argmax(-1).numpy()
    for word, numbers in zip(words, said, strict=True):
        assert [machine.outputs[k] for k in numbers] == answers(machine, word)


def test_train_verb_with_supervise_outputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_machine(random_moore(7, 2, 4), tmp_path / "mine.json")
    assert command(["train", "mine.json", "--recipe", "induce", "--supervise", "outputs", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["folder"] == "runs/mine-42-induce-outputs"
    assert command(["certify", row["folder"]]) == 0
    assert "mine from outputs, induce, seed 42: compared with a target of" in capsys.readouterr().out
    assert command(["certify", f"{row['folder']}/machine.json", "--against", "mine.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == "outputs"
    assert command(["train", "mine.json", "--recipe", "induce", "--supervise", "outputs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["weights"] == row["weights"]


def test_train_verb_says_when_infer_machine_fails(tmp_path, monkeypatch, capsys):
    from exactstate.learning import passive_learning as hearing

    monkeypatch.setattr(hearing, "merge_states", lambda tree, **settings: None)
    monkeypatch.chdir(tmp_path)
    assert command(["train", "Tomita4", "--recipe", "induce", "--supervise", "outputs"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("not learned: after 4096 words of 64 symbols, merging states gave more than 512 states")
    assert err == ""
    assert command(["train", "Tomita4", "--recipe", "induce", "--supervise", "outputs", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["certified"] is False


def test_induce_from_outputs_refuses_what_it_cannot_do():
    with pytest.raises(InvalidConfig, match="the recipe 'distill' is given states"):
        TrainConfig(task="Tomita4", supervise="outputs", recipe="distill")
    with pytest.raises(UnknownName, match=r"unknown supervision 'output'\. Did you mean 'outputs'"):
        TrainConfig(task="Tomita4", supervise="output")
    with pytest.raises(InvalidConfig, match="needs state labels and answers"):
        train("TSO3", recipe="induce", supervise="outputs")
    with pytest.raises(InvalidConfig, match=r"inferred from the outputs of Tomita4 fit into heads \(2,\)"):
        train("Tomita4", recipe="induce", supervise="outputs", heads=(2,))


def test_paper_recipe_from_outputs():
    short = EndToEndConfig(batch=8, length=8, steps=4, check_every=2, check_words=8)
    run = train("Tomita4", supervise="outputs", recipe="paper", end_to_end=short, restarts=0, width=16)
    assert run.model.labels == 2
    assert run.verdict.target.label_kind == "outputs"

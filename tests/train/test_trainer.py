"""A run that was killed, stopped or repeated ends with the weights of one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import torch

from exactstate.automata import Moore, cyclic, write_machine
from exactstate.cli._app import run as command
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, Interrupted, Phase, TrainConfig, Trainer, train
from exactstate.train.build import build_model
from exactstate.train.run_dir import RunDir

LAST = "checkpoint.safetensors"
SHORT = EndToEndConfig(batch=8, length=8, steps=12, check_every=3, check_words=8)
CONFIGS = {
    "induce": TrainConfig(task="S3", width=16),
    "paper": TrainConfig(task="S3", width=16, recipe="paper", end_to_end=SHORT, restarts=1),
}


pytestmark = pytest.mark.usefixtures("one_thread")


def stopped_at(row: int, how):
    """A watcher that stops the run, as asked, at this row of its history."""
    seen = []

    def watch(said):
        seen.append(said)
        if len(seen) == row:
            how()

    return watch


@cache
def alone(name):
    """The run that nobody disturbs."""
    return train(CONFIGS[name])


class Died(Exception):
    pass


def die():
    raise Died


@pytest.mark.parametrize(("name", "row"), [("induce", 1), ("induce", 3), ("induce", 5), ("paper", 2), ("paper", 6)])
def test_trainer_resumes_a_killed_run_to_the_same_weights(name, row, tmp_path):
    """Checkpoints after every step; dying at a row loses the step before it."""
    config, folder, whole = CONFIGS[name], tmp_path / "run", alone(name)
    with pytest.raises(Died):
        train(config, stopped_at(row, die), out=folder, save_every=0.0)
    assert (folder / LAST).exists()
    run = train(config, out=folder)
    assert run.extracted.weights == whole.extracted.weights
    assert (run.steps, run.restarts, run.certified) == (whole.steps, whole.restarts, whole.certified)
    assert run.history == whole.history
    assert [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()] == whole.history
    assert not (folder / LAST).exists()
    assert run.seconds > 0


def test_trainer_resumes_a_run_killed_twice(tmp_path):
    config, folder = CONFIGS["paper"], tmp_path / "run"
    for row in (3, 4):
        with pytest.raises(Died):
            train(config, stopped_at(row, die), out=folder, save_every=0.0)
    assert train(config, out=folder).extracted.weights == alone("paper").extracted.weights


def test_run_phase_leaves_a_checkpoint_on_sigint(tmp_path):
    folder = tmp_path / "run"
    ask = stopped_at(2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match="stopped after step 6 of the phase 'end_to_end'"):
        train(CONFIGS["paper"], ask, out=folder, save_every=1e9)
    assert (folder / LAST).exists()
    run = train(CONFIGS["paper"], out=folder)
    assert run.extracted.weights == alone("paper").extracted.weights
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


PROGRAM = """
import os, signal, sys, torch
from exactstate.train import EndToEndConfig, TrainConfig, train

torch.set_num_threads(1)
rows = []
def watch(row):
    rows.append(row)
    if len(rows) == int(sys.argv[2]):
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))

settings = EndToEndConfig(batch=8, length=8, steps=12, check_every=3, check_words=8)
config = TrainConfig(task="S3", width=16, recipe="paper", end_to_end=settings, restarts=1)
train(config, watch, out=sys.argv[1], save_every=0.0)
"""


@pytest.mark.slow
def test_trainer_resumes_after_sigkill(tmp_path):
    folder = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", PROGRAM, folder, "3", "SIGKILL"])
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "model.safetensors").exists()
    assert train(CONFIGS["paper"], out=folder).extracted.weights == alone("paper").extracted.weights


KILLED = """
import os, signal, sys
from exactstate.cli import main
from exactstate.train.run_dir import RunDir

append = RunDir.append_history
RunDir.append_history = lambda *given: (append(*given), os.kill(os.getpid(), signal.SIGKILL))
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_train_verb_resumes_after_sigkill(tmp_path, capsys):
    """As a person would: `exactstate train` killed once its history has begun, and the same command again."""
    arguments = ["train", "S3", "--recipe", "induce", "--seed", "7", "--out", str(tmp_path / "killed"), "--json"]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], stdout=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "killed" / "history.jsonl").stat().st_size
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    assert command(arguments) == 0
    killed = json.loads(capsys.readouterr().out)
    assert (
        command(["train", "S3", "--recipe", "induce", "--seed", "7", "--out", str(tmp_path / "alone"), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["weights"] == killed["weights"]
    # and once more: it is over, and says the same again
    assert command(arguments) == 0
    assert json.loads(capsys.readouterr().out) == killed


def test_train_verb_interrupted_says_how_to_resume(tmp_path, monkeypatch, capsys):
    from exactstate import train as recipes

    monkeypatch.chdir(tmp_path)
    whole = recipes.train

    def asked(config, watch, **call):
        return whole(config, stopped_at(1, lambda: os.kill(os.getpid(), signal.SIGINT)), **call)

    monkeypatch.setattr(recipes, "train", asked)
    assert command(["train", "S3", "--recipe", "induce"]) == 130
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "exactstate: stopped after step 10 of the phase 'realize'; repeat the command to resume runs/S3-42-induce.\n",
    )
    monkeypatch.setattr(recipes, "train", whole)
    assert command(["train", "S3", "--recipe", "induce", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    # once more: it is over, and says the same again
    assert command(["train", "S3", "--recipe", "induce", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == done


def test_train_refuses_folders_of_others(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Died):
        train("S3", stopped_at(1, die), out=folder, recipe="induce", width=16)
    with pytest.raises(InvalidConfig, match=r"holds a run already, with width 16, not 128; name another folder"):
        train("S3", recipe="induce", out=folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "history.jsonl").write_text("{}\n")
    for other in ("other", "run/config.json"):
        with pytest.raises(InvalidConfig, match="holds something else than a run"):
            train("S3", recipe="induce", out=tmp_path / other)
    assert (tmp_path / "other" / "history.jsonl").read_text() == "{}\n"
    (folder / LAST).write_bytes(b"half a checkp")
    with pytest.raises(BrokenFile, match=r"not a checkpoint of this run .*; remove it to start anew"):
        train("S3", out=folder, recipe="induce", width=16)


def test_train_refuses_a_target_that_has_changed(tmp_path):
    mine, folder = tmp_path / "mine.json", tmp_path / "run"
    write_machine(cyclic(3), mine)
    with pytest.raises(Died):
        train(mine, stopped_at(1, die), out=folder, width=16)
    write_machine(cyclic(4), mine)
    with pytest.raises(InvalidConfig, match="has changed since"):
        train(mine, out=folder, width=16)


def test_best_weights_are_restored(tmp_path):
    """Accuracies are made up: the weights of the best check come back, from disk too."""
    from exactstate.train.trainer import BestWeights

    model = torch.nn.Linear(2, 2)
    best, wanted = BestWeights(model, tmp_path / "best", 0), None
    for accuracy in (0.1, 0.7, 0.3):
        torch.nn.init.constant_(model.weight, accuracy)
        best.update({"accuracy": accuracy, "first_error": 1.0})
        wanted = model.weight.detach().clone() if accuracy == 0.7 else wanted
    best.restore()
    assert torch.equal(model.weight, wanted)
    torch.nn.init.zeros_(model.weight)
    BestWeights(model, tmp_path / "best", 1).restore()
    assert not model.weight.any()
    BestWeights(model, tmp_path / "best", 0).restore()
    assert torch.equal(model.weight, wanted)


def test_train_tasks_of_your_own(tmp_path):
    from exactstate.tasks import Task

    generator = np.random.default_rng(5)
    machine = Moore(symbols="ab", tables=generator.integers(0, 4, (2, 4)), outputs="wxyz", readout=np.arange(4))
    run = train(Task.of(machine, name="S3"), width=32, out=tmp_path / "run")
    assert run.certified
    assert (tmp_path / "run" / "target.json").exists()
    assert command(["certify", str(tmp_path / "run")]) == 0
    assert train(machine, width=32).certified


def test_run_phase_leaves_a_checkpoint_on_sigterm(tmp_path):
    folder = tmp_path / "run"
    ask = stopped_at(2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted, match="stopped after step 6"):
        train(CONFIGS["paper"], ask, out=folder, save_every=1e9)
    assert (folder / LAST).exists()
    assert train(CONFIGS["paper"], out=folder).extracted.weights == alone("paper").extracted.weights
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("name", CONFIGS)
def test_trainer_pauses_at_a_step_and_when_time_is_up(name, tmp_path):
    """The paused run has no machine, and resumes to the same weights; `induce` is paused in both of its phases."""
    folder, whole = tmp_path / "run", alone(name)
    paused = train(CONFIGS[name], out=folder, until=5)
    assert (paused.finished, paused.steps, paused.certified) == (False, 5, False)
    with pytest.raises(InvalidConfig, match="this run is not finished; there is no machine"):
        paused.extracted  # noqa: B018
    late = train(CONFIGS[name], out=folder, max_seconds=0.0)
    assert (late.finished, late.steps, late.resumed_at) == (False, 6, 5)
    run = train(CONFIGS[name], out=folder)
    assert run.resumed_at == 6
    assert run.extracted.weights == whole.extracted.weights
    assert run.history == whole.history


class Halves(Phase):
    """A phase without randomness: every step halves the weights."""

    def __init__(self, name, model, steps):
        optimizer = torch.optim.SGD(model.parameters(), 1.0)
        super().__init__(name, model, optimizer, np.random.default_rng(0), check_every=1)
        self.last = steps

    @property
    def done(self):
        return self.steps >= self.last

    def step(self):
        with torch.no_grad():
            for parameter in self.module.parameters():
                parameter.mul_(0.5)
        self.steps += 1

    def check(self):
        return {"scale": 0.5**self.steps}


def pruned_between_phases(trainer):
    """Two phases with a smaller model in the second."""
    config, s3 = TrainConfig(task="S3", width=8), get_task("S3")
    model = build_model(config, s3, heads=((6, 6),), generator=torch.Generator().manual_seed(1))
    trainer.run_phase(Halves("wide", model, 3))

    def prune():
        small = build_model(config, s3, heads=((3,),), generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            small.embedding.weight.copy_(model.embedding.weight)
        return small

    small = trainer.transform("pruned", config, s3, prune)
    trainer.run_phase(Halves("narrow", small, 3))
    return small


@pytest.mark.parametrize("row", range(1, 7))
def test_transform_is_saved_as_a_stage_and_resumed(row, tmp_path):
    whole = pruned_between_phases(Trainer())
    run_dir = RunDir(tmp_path)
    with pytest.raises(Died):
        pruned_between_phases(Trainer(run_dir, stopped_at(row, die), save_every=0.0))
    assert run_dir.stage_path("pruned").exists() == (row > 3)
    resumed = pruned_between_phases(Trainer(run_dir))
    assert resumed.layers[0].block.heads == (3,)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)

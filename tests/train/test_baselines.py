"""Baselines are trained, put down, taken up, and fail at a finite length; sizes far below what the tasks need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from detent import records
from detent.errors import BrokenFile, InvalidConfig, UnknownName
from detent.evaluate.sweep_run import sweep_run
from detent.nn import Backbone
from detent.tasks import task
from detent.train import Settings
from detent.train.baseline_config import RECIPES
from detent.train.baselines import BaselinePlan, best_accuracy, is_over, load, train
from detent.train.build import BASELINES, Size, block
from detent.train.build import cell_network as network
from paper.experiments.baselines import main


def small(name: str, cell: str, **changes: object) -> BaselinePlan:
    plan = BaselinePlan.named(name, cell)
    settings = replace(plan.settings, batch=4, length=8, steps=6, check_every=2, check_words=8)
    size = Size(layers=2, width=8, channels=4, states=2, dropout=0.1)
    return replace(plan, **{"recipe": "test", "size": size, "settings": settings, **changes})


@pytest.mark.parametrize("cell", BASELINES)
def test_a_run_that_was_put_down_ends_with_the_same_weights(cell: str, tmp_path: Path) -> None:
    """Dropout, words and moments included."""
    plan = small("S3", cell)
    straight = train(plan, tmp_path / "straight")
    assert train(plan, tmp_path / "twice", until=3).steps == 3
    assert is_over(tmp_path / "straight")
    assert not is_over(tmp_path / "twice")
    again = train(plan, tmp_path / "twice")
    assert (straight.resumed_at, again.resumed_at) == (0, 3)
    assert (straight.steps, straight.accuracy) == (again.steps, again.accuracy) == (6, again.accuracy)
    one, other = (load(tmp_path / name)[1].state_dict() for name in ("straight", "twice"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    histories = [
        [row["step"] for row in records.read(tmp_path / name / "history.jsonl")] for name in ("straight", "twice")
    ]
    assert histories == [[2, 4, 6], [2, 4, 6]]


def test_a_run_that_is_over_is_not_trained_again(tmp_path: Path) -> None:
    plan = small("S3", "mamba")
    first = train(plan, tmp_path / "run")
    rows: list[object] = []
    assert train(plan, tmp_path / "run", rows.append) == replace(first, resumed_at=first.steps)
    assert not rows


def test_a_campaign_goes_on_with_what_it_put_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "rows.jsonl"
    plan = small("Z2", "mamba", seed=7, recipe="cpu")
    monkeypatch.setitem(RECIPES, "cpu", lambda name, cell, seed: plan)
    asked = ["campaign", "--rows", str(rows), "--runs", str(tmp_path), "--tasks", "Z2", "--cells", "mamba"]
    for steps in (["--steps", "3"], ["--steps", "4"], [], []):
        monkeypatch.setattr("sys.argv", [*asked, "--seeds", "7", *steps])
        main()
    found = [(row["steps"], row["resumed_at"], row["over"]) for row in records.read(rows)]
    assert found == [(3, 0, False), (4, 3, False), (6, 4, True)]


def test_another_plan_is_refused(tmp_path: Path) -> None:
    train(small("S3", "mamba"), tmp_path / "run", until=2)
    with pytest.raises(InvalidConfig, match="holds a run with another plan; name another folder"):
        train(small("S3", "aussm"), tmp_path / "run")


def test_the_papers_configuration_is_available_by_name() -> None:
    plan = BaselinePlan.named("S4", "mamba", recipe="paper")
    assert plan.size == Size(layers=4, width=128, channels=256, states=16, dropout=0.1)
    assert plan.settings == Settings()
    assert (plan.checks, plan.growing) == (40, False)
    stories = BaselinePlan.named("TSO3", "pdssm", recipe="paper").settings
    assert (stories.batch, stories.length) == (64, 256)


def test_a_task_with_questions_gets_a_convolution_and_answers() -> None:
    model = network("mamba", Size(layers=1, width=8, channels=4, states=2), task("TSO3"))
    assert (model.kernel_size, model.answers) == (2, 3)


def test_unknown_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown baseline 'mambo'\. Did you mean 'mamba'"):
        BaselinePlan.named("S3", "mambo")
    with pytest.raises(UnknownName, match="unknown recipe of a baseline 'default'"):
        BaselinePlan.named("S3", "mamba", recipe="default")
    with pytest.raises(UnknownName, match="unknown baseline 'nfsm'"):
        block("nfsm", Size(layers=1, width=8, channels=4, states=2))
    with pytest.raises(InvalidConfig, match="width must be at least 1; got 0"):
        Size(layers=1, width=0, channels=4, states=2)


def test_weights_of_another_run_are_refused(tmp_path: Path) -> None:
    train(small("S3", "mamba"), tmp_path / "run", until=2)
    (tmp_path / "run" / "model.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(BrokenFile, match="these are not the weights of this run"):
        load(tmp_path / "run")


def test_words_grow_with_the_first_error(tmp_path: Path) -> None:
    plan = small("Z2", "mamba", growing=True)
    plan = replace(plan, settings=replace(plan.settings, length=64))
    train(plan, tmp_path / "run")
    assert [row["length"] for row in records.read(tmp_path / "run" / "history.jsonl")] == [8, 8, 8]


@pytest.mark.parametrize("name", ["FF", "S3"])
def test_a_trained_baseline_fails_at_a_finite_length(name: str, tmp_path: Path) -> None:
    """Trained at length 12 until it is right there; swept far beyond."""
    plan = BaselinePlan.named(name, "mamba")
    settings = replace(plan.settings, length=12, steps=400, check_every=20, check_words=64)
    plan = replace(plan, recipe="test", settings=settings, checks=1)
    outcome = train(plan, tmp_path / name)
    assert outcome.learned
    assert best_accuracy(tmp_path / name) == outcome.accuracy
    swept, row = sweep_run(tmp_path / name, max_length=1 << 14, batch=40)
    assert swept.failing_length is not None
    assert swept.failing_length > 12
    assert swept.accuracies[8] >= 0.9
    assert (row["cell"], row["threshold"], row["path"], row["learned"]) == ("mamba", 0.9, "network", True)
    # training drives some to the ends of (-1, 1), where float32 rounds them to the end itself
    assert largest_eigenvalue(load(tmp_path / name)[1], name) <= 1


@torch.no_grad()
def largest_eigenvalue(model: Backbone, name: str) -> float:
    """Of every step that every layer takes along words of the sweep."""
    moduli: list[float] = []
    for layer in model.layers:
        layer.block.register_forward_pre_hook(
            lambda block, given: moduli.append(float(block.transitions(given[0]).abs().max()))
        )
    words = task(name).for_length_sweep().sample(8, 200, np.random.default_rng(0))
    model(torch.from_numpy(words.inputs.astype(np.int64)))
    assert len(moduli) == len(model.layers)
    return max(moduli)

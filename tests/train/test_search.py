"""Every head alone: what is kept, that it is the layer of the network, and that runs resume."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate.errors import InvalidConfig, NotLearned
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train import realize, train
from exactstate.train.config import SearchConfig, search_heads
from exactstate.train.recipes import configure
from exactstate.train.run import Run
from exactstate.train.search import searches

pytestmark = pytest.mark.usefixtures("one_thread")


@cache
def learned(name: str) -> Run:
    return train(configure(name, recipe="gradient"))


def without_time(history: list[dict]) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in history]


@pytest.mark.parametrize("name", ["Z2", "S3", "DFF5"])
def test_gradient_keeps_heads_alone_and_certifies_the_network_of_them(name: str) -> None:
    run = learned(name)
    assert run.certified
    assert "float32" in run.certificate().proved
    assert run.tables == "every head alone"
    assert run.compressed is None
    assert run.restarts == 0
    assert list(run.heads) == sorted(run.heads) or len(run.heads) > 1
    assert len(run.extracted.reached) <= np.prod(run.heads)
    searched = [row for row in run.history if row["phase"] == "search"]
    assert searched[-1]["open"] == 0.0
    assert sorted(searched[-1]["kept"]) == sorted(run.heads)


def test_gradient_counts_no_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a transition was counted")

    monkeypatch.setattr(realize, "count_transitions", refuse)
    assert train(configure("Z2", recipe="gradient", seed=1)).certified


def test_search_does_not_look_at_the_target_before_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words and labels with other tables behind them give the same network."""
    from dataclasses import replace

    target, stream = get_task("Z2"), Task.stream
    other = replace(target, machine=replace(target.machine, tables=target.machine.tables[::-1]))
    monkeypatch.setattr(type(other), "stream", lambda self, *args, **kwargs: stream(target, *args, **kwargs))
    blind = train(other, recipe="gradient", restarts=0)
    monkeypatch.undo()
    assert not blind.certified
    assert blind.extracted.weights == learned("Z2").extracted.weights


class Died(Exception):
    pass


@pytest.mark.parametrize("row", [1, 2, 3])
def test_search_resumes_to_the_same_weights(row: int, tmp_path) -> None:
    seen: list[dict] = []

    def die(noted: dict) -> None:
        seen.append(noted)
        if len(seen) == row:
            raise Died

    config = configure("S3", recipe="gradient", search=SearchConfig(check_every=40))
    whole = train(config)
    with pytest.raises(Died):
        train(config, die, out=tmp_path / "run", save_every=0.0)
    run = train(config, out=tmp_path / "run")
    assert run.extracted.weights == whole.extracted.weights
    assert without_time(run.history) == without_time(whole.history)


def test_search_says_what_is_kept_what_is_open_and_the_way_out() -> None:
    config = configure("A5", recipe="gradient", restarts=0, search=SearchConfig(steps=2, check_every=2))
    sentence = r"A5 was not learned in 2 steps: no head is kept, which leaves 4\.\d+ nats of the state open: after '.*'"
    with pytest.raises(NotLearned, match=sentence + r" they do not tell '.*' from '.*'. Try --recipe induce"):
        train(config)


def test_attempts_after_those_of_heads_alone_are_straight_through() -> None:
    config = configure("S3", recipe="gradient", search=SearchConfig(steps=2, check_every=2, attempts=1))
    assert searches(config, 0)
    assert not searches(config, 1)
    run = train(config)
    assert run.certified
    assert run.tables == "wide layer"
    assert run.compressed is not None


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """Stories about two people, by gradient."""
    folder = tmp_path_factory.mktemp("stories") / "run"
    return train("TSO2", recipe="gradient", width=64, out=folder), folder


def test_stories_are_certified_by_gradient_in_layers(stories: tuple[Run, Path]) -> None:
    run, folder = stories
    assert run.certified
    assert (run.config.recipe, run.tables, run.compressed) == ("gradient", "every head alone", None)
    assert [row for row in run.history if row["phase"].startswith("search")][-1]["open"] == 0.0
    assert "float32" in run.certificate().proved
    assert (folder / "stage-kept-layers.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["search", "realize"])
def test_stories_that_died_end_in_the_same_weights(phase: str, stories: tuple[Run, Path], tmp_path: Path) -> None:
    def die(row: dict) -> None:
        if row["phase"] == phase:
            raise Died

    with pytest.raises(Died):
        train("TSO2", die, recipe="gradient", width=64, out=tmp_path / "run")
    again = train("TSO2", recipe="gradient", width=64, out=tmp_path / "run")
    for one, other in zip(again.model.parameters(), stories[0].model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_straight_through_searches_nothing() -> None:
    assert configure("A5", recipe="gradient").search is not None
    assert configure("M11", recipe="gradient").search is not None
    assert configure("S5", recipe="straight_through").search is None


def test_no_head_in_training_is_much_larger_than_the_labels() -> None:
    assert set(search_heads(2)) == {4}
    assert max(search_heads(16)) == 24
    assert torch.tensor(search_heads(1000)).sum() == 312


def test_stories_are_given_their_registers_unless_gradient_is_named() -> None:
    assert configure("TSO3").recipe == "distill"
    assert configure("TSO3", recipe="gradient").adapt_to_task(get_task("TSO3")).recipe == "gradient"
    with pytest.raises(InvalidConfig, match="TSO3 takes layers of 4 and 3 heads"):
        train("TSO3", recipe="gradient", heads=(12,) * 16)

"""Configurations are validated, and survive JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.errors import InvalidConfig, UnknownName
from exactstate.tasks import task
from exactstate.train import EndToEndConfig, TrainConfig


def test_end_to_end_config_is_checked() -> None:
    with pytest.raises(InvalidConfig, match="batch must be at least 1; got 0"):
        EndToEndConfig(batch=0)
    with pytest.raises(InvalidConfig, match="lr must be positive"):
        EndToEndConfig(lr=0.0)
    with pytest.raises(InvalidConfig, match="horizon must be at least 1; got 0"):
        EndToEndConfig(horizon=0)
    with pytest.raises(InvalidConfig, match="steps must be at least 1; got 0"):
        EndToEndConfig(steps=0)


def test_train_config_is_checked() -> None:
    with pytest.raises(InvalidConfig, match="restarts must be at least 0"):
        TrainConfig(task="S3", restarts=-1)
    with pytest.raises(InvalidConfig, match="width must be at least 1; got 'wide'"):
        TrainConfig(task="S3", width="wide")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfig, match="width must be at least 1; got 0"):
        TrainConfig(task="S3", cell="mamba", width=0)
    with pytest.raises(InvalidConfig, match="a seed is a number from 0 to"):
        TrainConfig(task="S3", seed=1 << 62)
    with pytest.raises(UnknownName, match="unknown stopping rule"):
        TrainConfig(task="S3", stop="never")


def test_save_writes_what_from_json_reads(tmp_path: Path) -> None:
    config = TrainConfig(task="S3", heads=(3, 2), end_to_end=EndToEndConfig(steps=7))
    config.save(tmp_path / "config.json")
    assert TrainConfig.from_json(json.loads((tmp_path / "config.json").read_text())) == config
    with pytest.raises(TypeError, match="later: no such setting"):
        TrainConfig.from_json({**config.to_json(), "later": 1})


def test_with_attempt_seed_changes_nothing_but_the_seed() -> None:
    config = TrainConfig(task="S3", seed=5)
    assert config.with_attempt_seed(0) == config
    assert config.with_attempt_seed(2) == TrainConfig(task="S3", seed=2_005)


def test_adapt_to_task_gives_stories_their_length_and_names_what_was_given() -> None:
    config = TrainConfig(task="TSO3").adapt_to_task(task("TSO3"))
    assert (config.recipe, config.end_to_end.batch, config.end_to_end.length) == ("distill", 64, 256)
    assert TrainConfig(task="TSO3", recipe="paper").adapt_to_task(task("TSO3")).recipe == "paper"
    short = EndToEndConfig(batch=4, length=24)
    assert TrainConfig(task="TSO3", end_to_end=short).adapt_to_task(task("TSO3")).end_to_end == short
    assert TrainConfig(task="S3").adapt_to_task(task("S3")) == TrainConfig(task="S3")
    with pytest.raises(InvalidConfig, match="TSO3 takes layers of 4 and 3 heads, and their sizes are given"):
        TrainConfig(task="TSO3", heads=(4,)).adapt_to_task(task("TSO3"))

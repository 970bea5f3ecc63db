"""The folder of a run: claimed once, refused to others, read without torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.automata import cyclic
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.tasks import Task, task
from exactstate.train.config import TrainConfig
from exactstate.train.run_dir import RunDir

CONFIG = TrainConfig(task="S3", heads=(3, 2))


def test_claim_writes_the_config_and_refuses_another(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "deep" / "run")
    assert not run_dir.exists
    run_dir.claim(CONFIG, task("S3"))
    run_dir.claim(CONFIG, task("S3"))
    assert run_dir.train_config() == CONFIG
    assert (run_dir.exists, run_dir.finished) == (True, False)
    assert not run_dir.target_path.exists()
    with pytest.raises(InvalidConfig, match="holds a run already, with seed 42, not 43; name another folder"):
        run_dir.claim(TrainConfig(task="S3", heads=(3, 2), seed=43), task("S3"))


def test_claim_refuses_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidConfig, match="holds something else than a run"):
        RunDir(tmp_path).claim(CONFIG, task("S3"))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_task_keeps_a_target_that_the_registry_does_not_know(tmp_path: Path) -> None:
    mine = Task.of(cyclic(3), name="mine")
    run_dir = RunDir(tmp_path / "run")
    run_dir.claim(TrainConfig(task="mine"), mine)
    assert run_dir.target_path.exists()
    assert (run_dir.task().name, run_dir.target()) == ("mine", cyclic(3))


def test_withdraw_removes_a_run_that_learned_nothing(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.claim(CONFIG, task("S3"))
    run_dir.append_history({"step": 1})
    run_dir.withdraw()
    assert run_dir.exists
    run_dir.truncate_history(0)
    run_dir.withdraw()
    assert not run_dir.path.exists()


def test_truncate_history_keeps_the_first_rows(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    for step in range(4):
        run_dir.append_history({"step": step})
    assert run_dir.truncate_history(2) == run_dir.history() == [{"step": 0}, {"step": 1}]


def test_find_lists_runs_by_name(tmp_path: Path) -> None:
    for name in ("b", "a", "other"):
        RunDir(tmp_path / name).claim(CONFIG, task("S3"))
    (tmp_path / "empty").mkdir()
    assert [run_dir.path.name for run_dir in RunDir.find(tmp_path)] == ["a", "b", "other"]
    assert [run_dir.path.name for run_dir in RunDir.find(tmp_path, "[ab]")] == ["a", "b"]


def test_config_refuses_what_is_no_run(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    with pytest.raises(BrokenFile, match="this is not the folder of a run: there is no config\\.json in it"):
        run_dir.config()
    for text, reason in (("[]", "it names no task"), ("{", "this is not the configuration of a run")):
        run_dir.config_path.write_text(text)
        with pytest.raises(BrokenFile, match=reason):
            run_dir.config()
    for old in ({"task": "S3", "arm": "default"}, {"task": "S3", "cell": "mamba", "settings": {}}):
        run_dir.config_path.write_text(json.dumps(old))
        with pytest.raises(
            BrokenFile, match="this run was made by exactstate 0\\.1 and cannot be loaded; train it again"
        ):
            run_dir.config()
    run_dir.config_path.write_text(json.dumps({**CONFIG.to_json(), "width": "wide"}))
    with pytest.raises(BrokenFile, match="width must be at least 1; got 'wide'"):
        run_dir.train_config()

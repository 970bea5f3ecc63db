"""The data of a report, with files missing or changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from exactstate import records
from exactstate.report.data import RunData


def test_run_data_load_of_a_folder_with_a_config_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"task": "S3"}))
    run = RunData.load(tmp_path)
    assert (run.name, run.cell, run.history, run.machine, run.certificate, run.check) == (
        "S3", "NFSM", [], None, None, None,
    )  # fmt: skip
    assert run.target is not None
    assert run.target.n_states == 6
    assert run.verdict() is None


def test_run_data_load_of_a_task_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"task": "gone.dot", "cell": "mamba"}))
    run = RunData.load(tmp_path)
    assert (run.name, run.cell, run.task, run.target) == ("gone.dot", "mamba", None, None)


def test_run_data_sweeps_have_accuracies(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"task": "S3"}))
    records.append(tmp_path / "sweeps.jsonl", {"threshold": 0.9, "accuracies": {"1": 1.0}})
    records.append(tmp_path / "sweeps.jsonl", {"accuracies": {}})
    assert RunData.load(tmp_path).sweeps == [{"threshold": 0.9, "accuracies": {"1": 1.0}}]


def test_run_data_target_is_that_of_the_certificate(s3: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(s3, tmp_path / "run"))
    run = RunData.load(folder)
    assert run.valid_certificate is run.certificate is not None
    assert run.target is not None
    assert run.target.states == tuple(run.certificate["target"]["states"])
    assert run.verdict(), "compared again, from machine.json"

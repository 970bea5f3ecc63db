"""`detent train`: what it prints and saves, exit codes, interrupts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import detent.train as training
from detent.cli._app import run
from detent.errors import NotLearned


def test_train_prints_the_summary_and_writes_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert run(["train", "Z2", "--out", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Z2: heads ")
    assert out.endswith(f"saved to {folder}; report: {folder / 'report.html'}\n")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert run(["train", "Z2", "--out", str(folder), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["task"], row["recipe"], row["seed"], row["certified"]) == ("Z2", "gradient", 42, True)
    assert json.loads((folder / "certificate.json").read_text())["sha256"] == row["certificate"]


def test_train_interrupted_says_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "run"
    monkeypatch.setattr(training, "train", interrupt)
    for cell in ("nfsm", "mamba"):
        assert run(["train", "S3", "--cell", cell, "--out", str(folder)]) == 130
        assert capsys.readouterr() == ("", f"detent: interrupted; repeat the command to resume {folder}.\n")


def test_train_that_did_not_learn_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise NotLearned("the accuracy was 3%.")

    monkeypatch.setattr(training, "train", fail)
    assert run(["train", "S3", "--recipe", "induce", "--out", str(tmp_path / "run")]) == 1
    assert capsys.readouterr() == ("the accuracy was 3%.\n", "")
    assert run(["train", "S3", "--recipe", "induce", "--out", str(tmp_path / "run"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "the accuracy was 3%."


def test_train_of_a_baseline_rejects_options_of_the_nfsm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "S3", "--cell", "mambo"]) == 2
    assert "unknown cell 'mambo'. Did you mean 'mamba'? Known: nfsm, mamba, aussm" in capsys.readouterr().err
    assert run(["train", "S3", "--cell", "mamba", "--supervise", "outputs"]) == 2
    assert "mamba is trained on states; leave out supervision by outputs" in capsys.readouterr().err
    assert run(["train", "S3", "--cell", "mamba", "--heads", "3"]) == 2
    assert "heads belong to the NFSM; mamba has none, leave them out." in capsys.readouterr().err

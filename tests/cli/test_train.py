"""`exactstate train`: what it prints and saves, exit codes, interrupts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import exactstate.train as training
from exactstate.certify import Certificate
from exactstate.cli._app import run
from exactstate.errors import NotLearned
from exactstate.train.run_dir import RunDir
from tests.certify.forgery import forged


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
        assert capsys.readouterr() == ("", f"exactstate: interrupted; repeat the command to resume {folder}.\n")


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


@pytest.mark.parametrize("kind", ["another run", "a changed digit", "a forgery", "not JSON"])
def test_train_of_a_finished_run_checks_its_certificate(
    kind: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in the folder is shown only if it is valid and about the weights there."""
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    path = folder / "certificate.json"
    true = json.loads(path.read_text())
    if kind == "another run":
        shutil.copy("results/certificates/A5-42.json", path)
    elif kind == "a changed digit":
        Certificate({**true, "name": "S4"}).write(path)
    elif kind == "a forgery":
        Certificate(forged(true)).write(path)
    else:
        path.write_text("{")
    command = ["train", "S3", "--recipe", "induce", "--out", str(folder)]
    assert run(["check", str(path), "--weights", str(folder)]) in (1, 2)
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactstate.train.recipes.configure", lambda *_, **__: RunDir(folder).train_config())
        assert run(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    wanted = {
        "another run": "this certificate is not about this run", "a changed digit": "this certificate is not valid: ",
        "a forgery": "the machine of these weights is not certified", "not JSON": "this is not JSON",
    }  # fmt: skip
    assert f"exactstate: {path}" in err
    assert wanted[kind] in err
    assert run(["certify", str(folder), "-o", str(path)]) == 0, "the way out that the message names"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactstate.train.recipes.configure", lambda *_, **__: RunDir(folder).train_config())
        assert run(command) == 0

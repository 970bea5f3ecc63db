"""A folder of a run has one writer; signals, a full disk and a folder that cannot be written end in a sentence."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exactstate import records
from exactstate.cli._app import run as command
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.train import train
from exactstate.train.run_dir import RunDir

Captured = pytest.CaptureFixture[str]


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A training that takes long, once it has begun."""
    process = subprocess.Popen(
        [sys.executable, "-m", "exactstate", "train", "M11", "--out", str(folder), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 600
    while not (folder / ".lock").exists() or not (folder / ".lock").read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_lock_names_the_process_that_trains_there(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "run"
    other = started(folder)
    try:
        config = RunDir(folder).train_config()
        with pytest.raises(InvalidConfig, match=f"is in use: process {other.pid} trains there; wait for it"):
            train(config, out=folder)
        assert (folder / "config.json").exists(), "the other's folder is left alone"
    finally:
        other.send_signal(signal.SIGTERM)
        out, err = other.communicate(timeout=600)
    assert other.returncode == 130
    assert out == ""
    assert f"repeat the command to resume {folder}" in err
    assert not (folder / ".lock").exists()


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("999999\n")
    with RunDir(tmp_path).lock():
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(InvalidConfig, match=f"process {os.getpid()} trains there"), RunDir(tmp_path).lock():
            pass
    with RunDir(tmp_path).lock():
        pass


def test_sigterm_between_phases_leaves_a_run_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extraction is no phase: the signal ended the process there, without a word."""
    import exactstate.train.fit as fitting

    extract = fitting.extract_and_certify
    calls = []

    def killed(*arguments: object) -> object:
        if not calls:
            calls.append(1)
            os.kill(os.getpid(), signal.SIGTERM)
        return extract(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting, "extract_and_certify", killed)
    with pytest.raises(KeyboardInterrupt):
        train("Z2", recipe="induce", width=16, out=tmp_path / "run")
    assert train("Z2", recipe="induce", width=16, out=tmp_path / "run").certified
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_append_on_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "rows.jsonl"
    records.append(path, {"a": 1})
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(BrokenFile, match=r"rows\.jsonl: the row cannot be written: no space left on device"):
        records.append(path, {"a": 2})
    monkeypatch.undo()
    assert list(records.read(path)) == [{"a": 1}]


def test_train_on_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    assert command(["train", "Z2", "--recipe", "induce", "--out", str(tmp_path / "run")]) == 2
    monkeypatch.undo()
    assert f"{tmp_path / 'run' / 'history.jsonl'}: the row cannot be written" in capsys.readouterr().err


def test_train_of_a_finished_run_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    folder = tmp_path / "run"
    arguments = ["train", "Z2", "--recipe", "induce", "--out", str(folder)]
    assert command(arguments) == 0
    before = capsys.readouterr().out
    (folder / "report.html").unlink()

    def read_only(path: object, *_: object) -> None:
        raise BrokenFile(path, "it cannot be written: Read-only file system.")

    monkeypatch.setattr("exactstate.report.page.write_atomically", read_only)
    assert command(arguments) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1:-1] == before.splitlines()[1:-1]
    assert out.endswith(f"saved to {folder}\n")
    assert "note: the report was not written again" in err
    shutil.rmtree(folder)
    assert command(arguments) == 2, "a new run whose report cannot be written says so"

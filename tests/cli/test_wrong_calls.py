"""Mistakes of new users, and the sentence that each one gets: what came, what was expected, the way out."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate import records
from exactstate.cli._app import run

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, and things that are nearly right."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "run")
    Path("empty").mkdir()
    shutil.copytree("run", "cut")
    Path("cut/model.safetensors").write_bytes(Path("run/model.safetensors").read_bytes()[:1000])
    Path("cut.json").write_bytes(Path("run/certificate.json").read_bytes()[:300])
    for kind in ("machine", "certificate"):
        newer = json.loads(Path(f"run/{kind}.json").read_text()) | {"version": 9}
        Path(f"newer-{kind}.json").write_text(json.dumps(newer))
    Path("words.txt").write_text("a b\n")
    Path("empty.json").touch()
    Path("noise.dot").write_bytes(bytes(range(256)))
    Path("foreign").mkdir()
    Path("foreign/notes.txt").write_text("mine")
    Path("gefüge ä.dot").write_text('digraph g { "lös" -> "lös" [label="ß"]; }')
    for name, change in {"wide": {"width": "wide"}, "later": {"colour": 1}, "other": {"task": "S4"}}.items():
        shutil.copytree("run", name)
        plan = json.loads(Path("run/config.json").read_text()) | change
        Path(f"{name}/config.json").write_text(json.dumps(plan))
    others = json.loads(Path("run/machine.json").read_text()) | {"symbols": ["x", "y"]}
    Path("others.json").write_text(json.dumps(others))
    Path("partial.dot").write_text("digraph g { a -> b [label=x]; b -> a [label=y]; }")
    return tmp_path


def sentence(arguments: list[str], captured: Captured) -> str:
    assert run(arguments) == 2
    out, err = captured.readouterr()
    assert out == ""
    assert err.startswith("exactstate: ")
    assert err.endswith((".\n", "?\n"))
    assert err.count("\n") == 1
    return err.removeprefix("exactstate: ").rstrip("\n")


CALLS = {
    "tain S3": "unknown verb 'tain'. Did you mean 'train'? Known: ",
    "train S33": "there is no task S33: this family goes from S2 to S7.",
    "train M13": "unknown task 'M13'. Did you mean 'M11'?",
    "train mine.dot": "mine.dot: there is no such file.",
    "train empty": "empty: it cannot be read: is a directory.",
    "train S3 --heads 3x2": "--heads takes numbers separated by commas, such as 4,3,2; got '3x2'.",
    "train S3 --recipe induce --heads 2,2": "no quotients that distinguish the states of S3 fit into heads (2, 2);",
    "train S3 --recipe papr": "unknown recipe 'papr'. Did you mean 'paper'? Known: gradient, straight_through, induce,",
    "train S3 --cell lsmt": "unknown cell 'lsmt'. Did you mean 'lstm' or 'nfsm'? Known: nfsm, mamba, aussm, pdssm,",
    "train S3 --out run": "run holds a run already, with ",
    "train S3 --seed x": "invalid value for '--seed': 'x' is not a whole number.",
    "train S3 --seed -1": "invalid value for '--seed': -1 is not in the range x>=0.",
    "train S3 --seed 99999999999999999999": "a seed is a number from 0 to 2^62 - 1; got 99999999999999999999.",
    "train S3 --heads -3,2": "heads are one or more sizes of at least 1; got (-3, 2).",
    "train S3 --supervise all": "unknown supervision 'all'. Known: states, outputs, answers.",
    "train S3 --cell mamba --supervise outputs": "mamba is trained on states; leave out supervision by outputs.",
    "train S3 --cell mamba --recipe default2": "unknown recipe 'default2'. Known: paper, cpu, ",
    "train S3 --out foreign": "foreign holds something else than a run; name another folder.",
    "train S3 --cell mamba --out foreign": "foreign holds something else than a run; name another folder.",
    "train S3 --out empty.json": "empty.json holds something else than a run; name another folder.",
    "train S3 --out empty.json/run": "empty.json/run: not a directory.",
    "train empty.json": "empty.json: it is empty.",
    "train noise.dot": "noise.dot, line 2: byte 0x80 is not UTF-8 text.",
    "train partial.dot": "partial.dot, line 1: state 'a' has no transition on 'y' (1 more is missing); add it,",
    "train run/certificate.json": 'run/certificate.json, line 1: wanted a JSON object with "format": "exactstate-',
    "train Z100000": "there is no task Z100000: this family goes from Z2 to Z256.",
    "demo --max-length 1": "invalid value for '--max-length': 1 is not in the range ",
    "demo --out empty.json --json": "empty.json/nfsm: not a directory.",
    "check empty.json": "empty.json, line 1: this is not JSON: expecting value at column 1.",
    "check noise.dot": "noise.dot: this is not UTF-8 text.",
    "check missing.json": "missing.json: there is no such file.",
    "check run": "run: is a directory.",
    "check run/machine.json": 'run/machine.json: wanted a JSON object with "format": "exactstate-certificate"; this is',
    "check cut.json": "cut.json, line 1",
    "check newer-certificate.json": "newer-certificate.json: this is version 9; this program reads version 1.",
    "certify run --against S4": "the machine reads '(0 1)', '(1 2)' and the target '(0 1)', '(1 2)', '(2 3)'; they",
    "certify others.json --against S3": "the machine reads 'x', 'y' and the target '(0 1)', '(1 2)'; they must",
    "certify run -o nowhere/c.json": "nowhere/c.json: it cannot be written: there is no folder ",
    "certify run/machine.json": "run/machine.json does not name its target; add --against TASK or",
    "sweep empty": "empty: this is not the folder of a run: there is no config.json in it.",
    "sweep run --max-length 0": "invalid value for '--max-length': 0 is not in the range 1<=x<=",
    "sweep run --max-length -5": "invalid value for '--max-length': -5 is not in the range 1<=x<=",
    "sweep run --max-length 99999999999999": "invalid value for '--max-length': 99999999999999 is not in the range",
    "sweep run --batch 99999999": "invalid value for '--batch': 99999999 is not in the range 1<=x<=1048576.",
    "sweep run --format float8": "unknown format 'float8'. Did you mean",
    "sweep run/machine.json": "run/machine.json: this is not the folder of a run: there is no config.json in it.",
    "sweep wide": "wide/config.json: this is not the configuration of a run (width must be at least 1; got 'wide'.)",
    "sweep later": "later/config.json: this is not the configuration of a run (colour: no such setting)",
    "sweep other": "other/model.safetensors: these are not the weights of this run (Error(s) in loading state_dict for "
    "Backbone: size mismatch for ",
    "sweep run --rows foreign": "foreign: the row cannot be written: is a directory.",
    "extract run -o s3.xyz": "unknown ending '.xyz'. Known: .json, .exactstate, .dot",
    "extract cut -o s3.json": "cut/model.safetensors: these are not the weights of this run (",
    "report empty": "empty: this is not the folder of a run: there is no config.json in it.",
    "report run -o nowhere/s3.html": "nowhere/s3.html: it cannot be written: there is no folder ",
    "run run/machine.json foreign": "foreign: this is a folder; expected a text file.",
    "run run/machine.json words.txt --strategy warp": "unknown strategy 'warp'. Known: auto, plain",
    "run others.json words.txt": "unknown symbol 'a' on line 1, letter 1. This machine reads x, y.",
    "run run": "run: it cannot be read: is a directory.",
    "run run/machine.json words.txt": "unknown symbol 'a' on line 1, word 1. This machine reads (0 1), (1 2).",
    "run run/machine.json missing.txt": "missing.txt: no such file or directory.",
    "run newer-machine.json words.txt": "newer-machine.json, line 1: the entry version is 9; this exactstate reads",
    "figure machine S3 -o s3.bmp": "unknown ending '.bmp'. Did you mean '.png' or '.pdf'?",
    "figure machine S3 -o s3": "unknown ending 's3'. Known: .svg, .png, .pdf, .dot.",
    "figure drift": "unknown figure 'drift'. Known: machine, tables, sweep.",
    "figure sweep --rows missing.jsonl -o d.svg": "missing.jsonl: there are no sweeps here; `exactstate sweep",
}


@pytest.mark.parametrize("call", CALLS)
def test_wrong_call_gets_a_sentence(call: str, here: Path, capsys: Captured) -> None:
    before = {path.name for path in here.iterdir()} | {"runs"}
    assert sentence(call.split(), capsys).startswith(CALLS[call])
    assert {path.name for path in here.iterdir()} <= before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT], ids=errno.errorcode.__getitem__)
def test_report_on_a_disk_that_cannot_be_written(
    number: int, here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: int) -> None:
        raise OSError(number, os.strerror(number))

    old = Path("run/report.html")
    old.write_text("old")
    monkeypatch.setattr(records.os, "fsync", refuses)
    assert sentence(["report", "run"], capsys) == f"run/report.html: it cannot be written: {os.strerror(number)}."
    assert old.read_text() == "old"
    assert not list(Path("run").glob(".*"))


def test_report_on_a_disk_that_is_full_halfway(here: Path) -> None:
    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, 1 << 12))

    done = subprocess.run(
        [sys.executable, "-m", "exactstate", "report", "run"], preexec_fn=small, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "exactstate: run/report.html: it cannot be written: File too large.\n"
    assert not Path("run/report.html").exists()
    assert not list(Path("run").glob(".*"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_report_into_a_folder_without_permission(here: Path, capsys: Captured) -> None:
    Path("run").chmod(0o555)
    assert sentence(["report", "run"], capsys) == "run/report.html: it cannot be written: Permission denied."


def test_report_interrupted_leaves_the_old_file(here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    Path("run/report.html").write_text("old")
    monkeypatch.setattr(records.os, "replace", stopped)
    assert run(["report", "run"]) == 130
    assert capsys.readouterr() == ("", "exactstate: interrupted.\n")
    assert Path("run/report.html").read_text() == "old"
    assert not list(Path("run").glob(".*"))


def test_certify_against_another_machine_gives_a_word(here: Path, capsys: Captured) -> None:
    bent = json.loads(Path("run/machine.json").read_text())
    bent["tables"][0][0] = 0
    bent.pop("heads", None)
    Path("bent.json").write_text(json.dumps(bent))
    assert run(["certify", "run", "--against", "bent.json"]) == 1
    assert capsys.readouterr().out.startswith("not certified: after '(0 1)")


def test_train_of_a_wrong_call_leaves_no_folder(here: Path, capsys: Captured) -> None:
    assert "fit into heads (2, 2)" in sentence(["train", "S3", "--recipe", "induce", "--heads", "2,2"], capsys)
    assert not Path("runs/S3-42-gradient").exists()


def test_train_leaves_a_foreign_folder_alone(here: Path, capsys: Captured) -> None:
    sentence(["train", "S3", "--out", "foreign"], capsys)
    assert [path.name for path in Path("foreign").iterdir()] == ["notes.txt"]


def test_tasks_with_names_in_any_alphabet(here: Path, capsys: Captured) -> None:
    assert run(["tasks", "gefüge ä.dot", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "gefüge ä"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
def test_report_to_a_device_does_not_replace_it(here: Path, capsys: Captured) -> None:
    full = "/dev/full: it cannot be written: No space left on device."
    assert sentence(["report", "run", "-o", "/dev/full"], capsys) == full
    assert Path("/dev/full").is_char_device()
    assert run(["report", "run", "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_report_without_enough_memory(here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    from exactstate import report

    def needs_more(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(report, "write_report", needs_more)
    assert sentence(["report", "run"], capsys) == "out of memory; use smaller sizes."

"""Wrong calls of every kind get one sentence and exit code 2; nothing half-written is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from detent.automata import cyclic
from detent.automata.io import to_json
from detent.cli._app import app, run

Said = pytest.CaptureFixture[str]
PROGRAM = [sys.executable, "-m", "detent"]


def complaint(arguments: list[str], said: Said) -> str:
    """The one sentence that a wrong call gets."""
    assert run(arguments) == 2
    out, err = said.readouterr()
    assert out == ""
    assert err.startswith("detent: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix("detent: ").rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["taks"], "unknown verb 'taks'. Did you mean 'tasks'?"),
        (["figure", "machin", "S3"], "unknown figure 'machin'. Did you mean 'machine'? Known: machine"),
        (["tasks", "--jsn"], "no such option: --jsn"),
        (["tasks", "M12"], "unknown task 'M12'. Did you mean 'M11'"),
        (["tasks", "S12"], "there is no task S12: this family goes from S2 to S7."),
        (["tasks", "S3", "Z"], "unknown task 'Z'."),
        (["tasks", ""], "unknown task ''."),
        (["tasks", "missing.dot"], "missing.dot: there is no such file."),
        (["figure", "machine"], "missing argument 'TASK|FILE|RUN'. See `detent figure machine --help`."),
        (["figure", "machine", "S3"], "missing option '--output'"),
        (["--nonsense"], "no such option: --nonsense"),
    ],
)
def test_wrong_calls(arguments: list[str], sentence: str, capsys: Said) -> None:
    assert complaint(arguments, capsys).startswith(sentence)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "there is nothing in it"),
        (b"\xff\xfe\x00garbage", "is not UTF-8 text"),
        (b"digraph g { s0 -> s1 [label=a]; s0 -> s0 [label=a]; }", "line 1"),
        (bytes(range(128, 256)) * 80_000, "bad.dot, line 1"),
        (b"digraph g {\n" * 300_000, "bad.dot, line"),
    ],
    ids=["empty", "not text", "nondeterministic", "10 MB of noise", "4 MB of braces"],
)
def test_broken_files(content: bytes, reason: str, tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "bad.dot").write_bytes(content)
    sentence = complaint(["tasks", str(tmp_path / "bad.dot")], capsys)
    assert reason in sentence
    assert len(sentence) < 400


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tables": [[1, 0], [7, 1]]}, "the entry tables[1][0] is 7; wanted an integer from 0 to 1"),
        ({"tables": [[1, 0]]}, "a list of 1; wanted 2 rows"),
        ({"start": 5}, "the entry start is 5"),
        ({"format": "recipe"}, "bad.json, line 1"),
    ],
)
def test_broken_machines(change: dict[str, object], reason: str, tmp_path: Path, capsys: Said) -> None:
    whole = json.loads(to_json(cyclic(2)))
    assert set(change) <= set(whole)
    (tmp_path / "bad.json").write_text(json.dumps(whole | change))
    assert reason in complaint(["tasks", str(tmp_path / "bad.json")], capsys)


def test_a_folder_is_no_machine(tmp_path: Path, capsys: Said) -> None:
    assert "directory" in complaint(["tasks", str(tmp_path)], capsys).lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path, capsys: Said) -> None:
    secret = tmp_path / "secret.dot"
    secret.write_text("digraph g {}")
    secret.chmod(0)
    assert "permission denied" in complaint(["tasks", str(secret)], capsys).lower()


@pytest.mark.parametrize("arguments", [[], ["figure"]])
def test_without_a_verb_the_help_is_shown(arguments: list[str], capsys: Said) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert "Usage: detent" in out
    assert err == ""


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from detent import tasks

    monkeypatch.setattr(tasks, "describe", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run(["tasks", "S3"])


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    from detent import tasks

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "describe", interrupted)
    assert run(["tasks", "S3"]) == 130
    assert capsys.readouterr() == ("", "detent: interrupted.\n")


def test_a_system_error_names_the_file(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    from detent import tasks

    def full(_: object) -> None:
        raise OSError(28, "No space left on device", "s3.svg")

    monkeypatch.setattr(tasks, "describe", full)
    assert complaint(["tasks", "S3"], capsys) == "s3.svg: no space left on device."


def test_doubts_about_a_file_are_notes(tmp_path: Path, capsys: Said) -> None:
    odd = tmp_path / "machine.txt"
    odd.write_text(to_json(cyclic(2)))
    assert run(["tasks", str(odd), "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("[")
    assert err.startswith("detent: note: ")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["tasks", "--help"], ["figure", "machine", "--help"]])
def test_help_teaches_by_example(arguments: list[str], capsys: Said) -> None:
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    assert "  detent " in out


def test_every_verb_is_in_the_guide(capsys: Said) -> None:
    run(["--help"])
    guide = capsys.readouterr().out
    for verb in [*app.registered_commands, *app.registered_groups]:
        assert f"  detent {verb.name} " in guide or f"  detent {verb.name}\n" in guide


def test_the_program_itself() -> None:
    done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("detent ")
    wrong = subprocess.run([*PROGRAM, "tasks", "nope.json"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "detent: nope.json: there is no such file.\n"


def test_a_reader_that_leaves_early_is_no_disaster() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, "tasks", "Z2", "S3"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["tasks", "Z2"], ["tasks", "Z2", "--json"], ["--help"]])
def test_a_full_disk_gets_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "detent: standard output: no space left on device.\n")


def test_an_interrupted_program_says_so_and_stops() -> None:
    program = (
        "import os, signal, time, detent.tasks as tasks\n"
        "tasks.describe = lambda _: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
        "from detent.cli import main; main(['tasks', 'S3'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "detent: interrupted.\n")

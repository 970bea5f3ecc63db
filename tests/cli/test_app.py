"""The program: messages, exit codes, help; wrong calls get one sentence and exit code 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate import cli
from exactstate.automata import cyclic
from exactstate.automata.io import to_json
from exactstate.cli._app import VERBS, run

Captured = pytest.CaptureFixture[str]
PROGRAM = [sys.executable, "-m", "exactstate"]


def error_of(arguments: list[str], captured: Captured) -> str:
    """The one sentence that a wrong call gets."""
    assert run(arguments) == 2
    out, err = captured.readouterr()
    assert out == ""
    assert err.startswith("exactstate: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix("exactstate: ").rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["taks"], "unknown verb 'taks'. Did you mean 'tasks'?"),
        (["figure", "machin", "S3"], "unknown figure 'machin'. Did you mean 'machine'? Known: machine"),
        (["tasks", "--jsn"], "no such option: --jsn"),
        (["tasks", "M13"], "unknown task 'M13'. Did you mean 'M11'?"),
        (["tasks", "S12"], "there is no task S12: this family goes from S2 to S7."),
        (["tasks", "S3", "Z"], "unknown task 'Z'."),
        (["tasks", ""], "unknown task ''."),
        (["tasks", "missing.dot"], "missing.dot: there is no such file."),
        (["figure", "machine"], "missing argument 'TASK|FILE|RUN'. See `exactstate figure machine --help`."),
        (["figure", "machine", "S3"], "missing option '--output'"),
        (["--nonsense"], "no such option: --nonsense"),
    ],
)
def test_run_of_wrong_calls(arguments: list[str], sentence: str, capsys: Captured) -> None:
    assert error_of(arguments, capsys).startswith(sentence)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "bad.dot: it is empty."),
        (b"\xff\xfe\x00garbage", "is not UTF-8 text"),
        (b"digraph g { s0 -> s1 [label=a]; s0 -> s0 [label=a]; }", "line 1"),
        (bytes(range(128, 256)) * 80_000, "bad.dot, line 1"),
        (b"digraph g {\n" * 300_000, "bad.dot, line"),
    ],
    ids=["empty", "not text", "nondeterministic", "10 MB of noise", "4 MB of braces"],
)
def test_run_on_broken_files(content: bytes, reason: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "bad.dot").write_bytes(content)
    sentence = error_of(["tasks", str(tmp_path / "bad.dot")], capsys)
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
def test_run_on_broken_machines(change: dict[str, object], reason: str, tmp_path: Path, capsys: Captured) -> None:
    whole = json.loads(to_json(cyclic(2)))
    assert set(change) <= set(whole)
    (tmp_path / "bad.json").write_text(json.dumps(whole | change))
    assert reason in error_of(["tasks", str(tmp_path / "bad.json")], capsys)


def test_run_on_a_folder(tmp_path: Path, capsys: Captured) -> None:
    assert "directory" in error_of(["tasks", str(tmp_path)], capsys).lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_run_on_a_file_without_permission(tmp_path: Path, capsys: Captured) -> None:
    secret = tmp_path / "secret.dot"
    secret.write_text("digraph g {}")
    secret.chmod(0)
    assert "permission denied" in error_of(["tasks", str(secret)], capsys).lower()


@pytest.mark.parametrize("arguments", [[], ["figure"]])
def test_run_without_a_verb_shows_the_help(arguments: list[str], capsys: Captured) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert "Usage: exactstate" in out
    assert err == ""


def test_exit_code_of_a_bug_is_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from exactstate import tasks

    monkeypatch.setattr(tasks, "describe", lambda _: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run(["tasks", "S3"])


def test_exit_code_of_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from exactstate import tasks

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "describe", interrupted)
    assert run(["tasks", "S3"]) == 130
    assert capsys.readouterr() == ("", "exactstate: interrupted.\n")


def test_exit_code_of_a_system_error_is_2_and_names_the_file(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from exactstate import tasks

    def full(_: object) -> None:
        raise OSError(28, "No space left on device", "s3.svg")

    monkeypatch.setattr(tasks, "describe", full)
    assert error_of(["tasks", "S3"], capsys) == "s3.svg: no space left on device."


def test_exit_code_of_warnings_is_0_and_they_are_notes(tmp_path: Path, capsys: Captured) -> None:
    odd = tmp_path / "machine.txt"
    odd.write_text(to_json(cyclic(2)))
    assert run(["tasks", str(odd), "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("[")
    assert err.startswith("exactstate: note: ")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["tasks", "--help"], ["figure", "machine", "--help"]])
def test_help_has_examples(arguments: list[str], capsys: Captured) -> None:
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    assert "  exactstate " in out


def test_help_guide_has_every_verb(capsys: Captured) -> None:
    run(["--help"])
    guide = capsys.readouterr().out
    for verb in VERBS:
        assert f"  exactstate {verb} " in guide or f"  exactstate {verb}\n" in guide


def test_verbs_are_the_modules_of_the_command_line() -> None:
    modules = {path.stem for path in Path(cli.__file__).parent.glob("[a-z]*.py")}
    assert sorted(VERBS) == sorted(modules)


def test_one_verb_imports_no_other() -> None:
    program = (
        "import sys; from exactstate.cli._app import run; code = run(['tasks', 'Z2', '--json']);"
        "print([name for name in sys.modules if name.startswith('exactstate.cli.') and '._' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "['exactstate.cli.tasks']"


def test_program_in_a_process_of_its_own() -> None:
    done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("exactstate ")
    wrong = subprocess.run([*PROGRAM, "tasks", "nope.json"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "exactstate: nope.json: there is no such file.\n"


def test_program_into_a_closed_pipe() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, "tasks", "Z2", "S3"], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["tasks", "Z2"], ["tasks", "Z2", "--json"], ["--help"]])
def test_program_on_a_full_disk(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "exactstate: standard output: no space left on device.\n")


def test_program_interrupted() -> None:
    program = (
        "import os, signal, time, exactstate.tasks as tasks\n"
        "tasks.describe = lambda _: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
        "from exactstate.cli import main; main(['tasks', 'S3'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "exactstate: interrupted.\n")

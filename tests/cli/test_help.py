"""The help of every verb: examples that fit a narrow terminal and run as written, every option, --json."""

from __future__ import annotations

import glob
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import typer

from exactstate import records
from exactstate.automata import Mealy, Moore, Policy, write_machine
from exactstate.certify.sign import sign
from exactstate.cli._app import GUIDE, program, run
from exactstate.evaluate import sweep_run
from exactstate.learning import learn_monitor
from exactstate.runtime import load
from exactstate.train import train
from exactstate.train.run_dir import RunDir
from tests.certify.certificates import make_key
from tests.learning.agents import sessions
from tests.learning.agents import write as write_sessions
from tests.learning.test_active import PROGRAM

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]
NARROW = 80
SLOW = ("train ", "demo", "figure ", "doctor", "sweep ", "tasks", "table drift", "run s3.json", "run mine.dot",
        "extract runs/S3-42-gradient -o s3.c", "learn noisy.csv --by")  # fmt: skip
QUICK = ("figure machine S3", "tasks S4 DFF5", "tasks mine.dot", "train mine.dot --out")


DESIGNED = {"tasks", "train", "sweep", "extract", "certify", "check", "run", "figure",
            "learn", "monitor", "diff", "convert", "conform", "suite"}  # fmt: skip


def verbs() -> Iterator[tuple[list[str], object]]:
    """Every command with the words that call it."""
    waiting: list[tuple[list[str], object]] = [([], typer.main.get_command(program()))]
    while waiting:
        words, command = waiting.pop()
        inside = getattr(command, "commands", None)
        if inside:
            waiting += [([*words, name], one) for name, one in inside.items()]
        else:
            yield words, command


VERBS = {" ".join(words): command for words, command in verbs()}


def examples_of(name: str) -> list[str]:
    """The lines after `Examples:` in the help of a verb, without the words that say what they do."""
    listed = inspect.cleandoc(VERBS[name].help or "")  # type: ignore[attr-defined]
    _, found, lines = listed.partition("Example")
    assert found, name
    return [re.split(" {3,}", line.strip())[0] for line in lines.splitlines()[1:] if line.strip()]


EXAMPLES = [example for name in VERBS for example in examples_of(name) if "mamba" not in example]
"""A Mamba takes minutes to learn S3, and `tests/cli/test_sweep.py` has one that does not."""


def is_slow(example: str) -> bool:
    called = example.partition("exactstate ")[2]
    return (called.startswith(SLOW) and not called.startswith(QUICK)) or "--cluster" in called


@pytest.mark.parametrize("name", VERBS)
def test_help_examples_fit_on_a_line(name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(NARROW))
    assert run([*name.split(), "--help"]) == 0
    lines = [re.split(" {3,}", line.strip())[0] for line in capsys.readouterr().out.splitlines()]
    assert [example for example in examples_of(name) if example not in lines] == []


def test_help_guide_fits_on_lines(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(NARROW))
    assert run(["--help"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    listed = [line.strip() for line in GUIDE.splitlines() if line.startswith("    ")]
    assert [line for line in listed if line not in lines] == []


def write_logs(folder: Path) -> None:
    """A switch: its machine in two versions, its log in every format, and a program that is one."""
    switch = Mealy(symbols=("push", "wait"), tables=[[1, 0], [0, 1]], outputs=("off", "on"), readout=[[1, 0], [0, 1]])
    for name in ("machine.dot", "machine.json", "old.dot", "new.dot"):
        write_machine(switch, folder / name)
    edges = '__start0 -> s0; s0 -> s1 [label="push/on"]; s1 -> s1 [label="wait/on"];'
    (folder / "partial.dot").write_text(f"digraph g {{ {edges} }}")
    words = [list(word) for word in product(switch.symbols, repeat=5)]
    log = [(word, [switch.outputs[o] for o in switch.output_ids(word).tolist()]) for word in words]
    rows = [f"{i},{a},{b}\n" for i, (word, outputs) in enumerate(log) for a, b in zip(word, outputs, strict=True)]
    for name in ("today.csv", "noisy.csv"):
        (folder / name).write_text("trace,input,output\n" + "".join(rows))
    tokens = [[f"{a}/{b}" for a, b in zip(word, outputs, strict=True)] for word, outputs in log]
    (folder / "traces.txt").write_text("".join(" ".join(line) + "\n" for line in tokens))
    (folder / "blanks.txt").write_text("".join("; ".join(line) + "\n" for line in tokens))
    lines = [json.dumps({"inputs": word, "outputs": outputs}) + "\n" for word, outputs in log]
    (folder / "traces.jsonl").write_text("".join(lines))
    write_sessions(folder / "calls.jsonl", sessions(300))
    write_sessions(folder / "today.jsonl", sessions(3, attacks=0.0))
    (folder / "events.toml").write_text("[call.refund]\namount = [100]\n")
    (folder / "rules.txt").write_text("verify before refund\n")
    monitor = learn_monitor(sessions(300), policies=[Policy.of("verify before refund")])
    for name in ("monitor.json", "strict.json"):
        monitor.save(folder / name)
    (folder / "system").write_text(f"#!{sys.executable}\n{PROGRAM}")
    (folder / "system").chmod(0o755)


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which somebody has read the first pages: a run, a machine of their own, a story."""
    folder = tmp_path_factory.mktemp("examples")
    learned = folder / "runs" / "S3-42-gradient"
    assert train("S3", out=learned).certified
    records.append(RunDir(learned).sweeps_path, sweep_run(learned, max_length=256)[1])  # for `figure sweep`
    load(learned / "machine.json").save(folder / "s3.json")
    outputs = ("no", "yes")
    mine = Moore(symbols=("a", "b"), tables=[[1, 0], [0, 0]], states=("p", "q"), outputs=outputs, readout=[0, 1])
    for name in ("mine.dot", "theirs.json"):
        write_machine(mine, folder / name)
    shutil.copy(ROOT / "results" / "machines" / "TSO3-42.json", folder / "tso3.json")
    (folder / "results").symlink_to(ROOT / "results")
    (folder / "stories.txt").write_text("Bob has the key. Who has the key?\n")
    (folder / "events.log").write_text("a b a\n")
    shutil.copy(learned / "certificate.json", folder)
    if shutil.which("ssh-keygen") is not None:
        sign(folder / "certificate.json", make_key(folder / "key")[0])
    write_logs(folder)
    return folder


@pytest.mark.parametrize(
    "example", [pytest.param(one, marks=[pytest.mark.slow] if is_slow(one) else []) for one in EXAMPLES]
)
def test_help_example_runs(example: str, cast: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.chdir(cast)
    if re.search("[|>&]", example):
        exactstate = f'exactstate() {{ "{sys.executable}" -m exactstate "$@"; }}\n'
        shell = exactstate + example.replace("tail -f", "cat")
        here = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=here)
        assert (done.returncode, done.stderr) == (0, "")
        return
    words = [found for word in shlex.split(example)[1:] for found in (sorted(glob.glob(word)) or [word])]
    code = run(words)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert out


def test_help_lists_all_verbs_of_the_design() -> None:
    assert {name.split()[0] for name in VERBS} >= DESIGNED


@pytest.mark.parametrize("name", VERBS)
def test_help_has_an_example_and_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"(^|\s|\| )exactstate {name}( |$)", out.replace("│", " "), re.MULTILINE)
    assert "--json" in out


@pytest.mark.parametrize("name", VERBS)
def test_help_describes_every_option(name: str) -> None:
    for option in VERBS[name].params:  # type: ignore[attr-defined]
        assert getattr(option, "help", None), f"{name}: {option.name}"


def test_help_names_the_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out

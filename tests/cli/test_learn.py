"""`exactstate learn`: a machine file from a log, sentences for bad logs, exit codes."""

from __future__ import annotations

import json
import sys

import pytest

from exactstate.automata import distinguishing_word, read_machine
from exactstate.cli._app import run
from exactstate.runtime import load
from tests.learning.machines import handshake, traces_of
from tests.learning.test_active import PROGRAM
from tests.learning.test_cluster import in_process  # noqa: F401


def write_log(path, log):
    path.write_text("".join(json.dumps({"inputs": a, "outputs": b}) + "\n" for a, b in log))


def test_learn_writes_a_machine_that_runs_by_name(tmp_path, capsys):
    log, machine = tmp_path / "log.jsonl", tmp_path / "machine.json"
    write_log(log, traces_of(handshake(), 2000, 16, 1))
    assert run(["learn", str(log), "-o", str(machine), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["states"], row["kind"], row["unseen"]) == (6, "mealy", 0)
    assert load(machine).outputs(["hello", "key", "verify", "finish", "data"]) == ["ack"] * 4 + ["echo"]
    assert run(["learn", str(log), "-o", str(tmp_path / "machine.dot")]) == 0
    assert "mealy: 6 states, 5 symbols, from 2,000 traces" in capsys.readouterr().out
    assert distinguishing_word(read_machine(tmp_path / "machine.dot"), handshake()) is None


@pytest.mark.usefixtures("in_process")
def test_learn_and_conform_on_a_cluster_print_and_write_the_same(tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    write_log(log, traces_of(handshake(), 30_000, 16, 1))
    assert log.stat().st_size > 3 << 20  # several partitions
    printed = []
    for cluster in ([], ["--cluster", "local", "--workers", "2", "--partition", "1"]):
        assert run(["learn", str(log), "-o", str(tmp_path / "machine.json"), *cluster]) == 0
        printed.append([capsys.readouterr().out, (tmp_path / "machine.json").read_bytes()])
        assert run(["conform", str(tmp_path / "machine.json"), str(log), "--json", "--transitions", *cluster]) == 0
        printed[-1].append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_learn_says_what_is_wrong(tmp_path, capsys):
    bad = tmp_path / "bad.txt"
    bad.write_text("open/ok close/ok\nopen/no\n")
    for arguments, sentence in [
        ([str(bad)], "after 'open' the output is 'ok' in line 1 and 'no' in line 2"),
        ([], "give a log to learn from, or --ask COMMAND"),
        ([str(bad), "--by", "magic"], "--by is one of merging, gradient; got 'magic'"),
        ([str(bad), "--noise", "much"], "--noise is a share such as 0.05, or auto; got 'much'"),
        ([str(bad), "--kind", "tree"], "tree"),
        ([str(bad), "--missing", "magic"], "magic"),
        ([str(bad), "--by", "gradient", "--cluster", "local"], "it takes LOG and --by merging"),
        (["--ask", "cat", "--symbols", "a", "--cluster", "local"], "it takes LOG and --by merging"),
        (["--ask", "cat"], "--ask needs the inputs of the system"),
        (["--ask", "cat", "--symbols", "a", "--engine", "x"], "--engine is one of lstar, kv, lsharp"),
    ]:
        assert run(["learn", *arguments]) == 2, arguments
        assert sentence in capsys.readouterr().err
    good = tmp_path / "good.txt"
    good.write_text("a/x a/y a/x a/z\n")
    assert run(["learn", str(good), "--max-states", "1"]) == 1
    assert "not learned" in capsys.readouterr().out


def test_learn_asks_a_program(tmp_path, capsys):
    program, cache = tmp_path / "system.py", tmp_path / "answers.jsonl"
    program.write_text(PROGRAM)
    command = ["learn", "--ask", f"{sys.executable} {program}", "--symbols", "push,wait", "--cache", str(cache)]
    assert run([*command, "-o", str(tmp_path / "m.dot")]) == 0
    assert "mealy: 2 states" in capsys.readouterr().out
    assert run(["learn", str(cache)]) == 0  # the cache is a log
    assert "mealy: 2 states" in capsys.readouterr().out

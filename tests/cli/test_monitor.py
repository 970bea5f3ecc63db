"""`exactstate monitor`, `certify --policy`, and `convert` of a monitor, as their users call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.cli._app import run
from exactstate.learning.monitor import Monitor
from tests.learning.agents import sessions, write

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("monitor")
    write(folder / "calls.jsonl", sessions(600))
    write(folder / "good.jsonl", sessions(20, attacks=0.0, seed=8))
    write(folder / "mixed.jsonl", sessions(20, attacks=0.2, seed=8))
    (folder / "rules.txt").write_text("verify before refund\nlogin before *  # first of all\n")
    (folder / "more.txt").write_text("verify before refund\nat most 2 refund\n")
    assert run(["monitor", str(folder / "calls.jsonl"), "-o", str(folder / "m.json")]) == 0
    return folder


def test_monitor_learns_and_says_what(folder: Path, capsys: Captured) -> None:
    capsys.readouterr()
    assert run(["monitor", str(folder / "calls.jsonl"), "--json", "--policy", str(folder / "rules.txt")]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["policies"] == ["verify before refund", "login before *"]
    assert {"login", "<end>", "<other>"} <= set(row["symbols"])
    assert run(["monitor", str(folder / "calls.jsonl")]) == 0
    assert "good held-out traces have a call that is not allowed" in capsys.readouterr().out


def test_monitor_watches_traces(folder: Path, capsys: Captured) -> None:
    assert run(["monitor", str(folder / "good.jsonl"), "--watch", str(folder / "m.json")]) == 0
    assert "0 have calls that are not allowed" in capsys.readouterr().out
    wanted = [str(trace.line) for trace in sessions(20, attacks=0.2, seed=8) if trace.label == "attack"]
    assert run(["monitor", str(folder / "mixed.jsonl"), "--watch", str(folder / "m.json"), "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert list(dict.fromkeys(one["trace"] for one in row["reported"])) == wanted
    assert run(["monitor", str(folder / "mixed.jsonl"), "--watch", str(folder / "m.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(wanted) + 1
    assert "refund is forbidden" in lines[0]


def test_certify_policy_proves_and_refutes(folder: Path, capsys: Captured) -> None:
    assert run(["certify", str(folder / "m.json"), "--policy", str(folder / "rules.txt")]) == 0
    assert capsys.readouterr().out.count("proved: ") == 2
    assert run(["certify", str(folder / "m.json"), "--policy", str(folder / "more.txt"), "--json"]) == 1
    proved, refuted = json.loads(capsys.readouterr().out)["policies"]
    assert (proved["proved"], proved["trace"]) == (True, None)
    assert refuted["trace"].count("refund") == 3
    watch = Monitor.load(folder / "m.json").watch()
    assert {watch(name).verdict for name in refuted["trace"]} == {"allowed"}
    assert run(["certify", str(folder / "m.json"), "--policy", str(folder / "none.txt")]) == 2
    assert run(["certify", str(folder / "m.json"), "--policy", "x", "--against", "S3"]) == 2
    assert "takes neither --against nor --output" in capsys.readouterr().err


def test_convert_makes_grammar_picture_and_program_of_a_monitor(folder: Path, capsys: Captured) -> None:
    for name in ("m.gbnf", "m.lark", "m.svg", "m.c", "m.mjs"):
        assert run(["convert", str(folder / "m.json"), "-o", str(folder / name)]) == 0
    grammar = (folder / "m.gbnf").read_text()
    assert grammar.splitlines()[1].startswith('root ::= "login" s')
    assert "<end>" not in grammar
    assert "forbidden:0.9" in (folder / "m.mjs").read_text()
    assert set(Monitor.load(folder / "m.json").language().outputs) == {"reject", "accept"}
    capsys.readouterr()


def test_monitor_proposes_events(folder: Path, capsys: Captured) -> None:
    calls = [{"name": "pay", "arguments": {"amount": n % 97, "to": ["a", "b"][n % 2]}} for n in range(200)]
    (folder / "paid.jsonl").write_text("".join(json.dumps({"calls": [call]}) + "\n" for call in calls))
    assert run(["monitor", str(folder / "paid.jsonl"), "--propose"]) == 0
    text = capsys.readouterr().out
    assert '"to" = "value"' in text
    (folder / "events.toml").write_text(text)
    assert run(["monitor", str(folder / "paid.jsonl"), "--events", str(folder / "events.toml"), "--json"]) == 0
    assert "pay(amount=<22,to=a)" in json.loads(capsys.readouterr().out)["symbols"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.jsonl"], "there is no such file"),
        (["calls.jsonl", "--watch", "rules.txt"], "rules.txt"),
        (["calls.jsonl", "--watch", "m.json", "--propose"], "nothing to learn with"),
        (["calls.jsonl", "--events", "rules.txt"], "rules.txt"),
        (["calls.jsonl", "--policy", "calls.jsonl"], "is no policy"),
        (["calls.jsonl", "--held-out", "2"], "shares of traces are between 0 and 1"),
        (["calls.jsonl", "--machine", "S3"], "the machine does not read '<end>'"),
    ],
)
def test_monitor_refuses_bad_input(
    arguments: list[str], sentence: str, folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert run(["monitor", *arguments, *([] if "--watch" in arguments else ["-o", "no.json"])]) == 2
    assert sentence in capsys.readouterr().err
    assert not (folder / "no.json").exists()

"""`exactstate diff`, `convert`, `conform`, `suite` and `certify --against`, as their users call them."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from exactstate.automata import Mealy, read_machine, write_machine
from exactstate.cli._app import run
from tests.automata.test_difference import changed, shuffled
from tests.learning.machines import handshake, traces_of

PARTIAL = 'digraph g {\n__start0 -> s0;\ns0 -> s1 [label="a / x"];\ns1 -> s0 [label="b / y"];\n}\n'


@pytest.fixture
def files(tmp_path):
    write_machine(handshake(), tmp_path / "old.dot")
    write_machine(shuffled(handshake(), 3), tmp_path / "same.dot")
    write_machine(changed(handshake(), 4, 4, output=1), tmp_path / "new.dot")
    (tmp_path / "partial.dot").write_text(PARTIAL)
    return tmp_path


def test_diff_exit_codes_and_picture(files, capsys):
    assert run(["diff", str(files / "old.dot"), str(files / "same.dot")]) == 0
    assert "equivalent" in capsys.readouterr().out
    assert run(["diff", str(files / "old.dot"), str(files / "new.dot"), "-o", str(files / "d.svg"), "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert row["word"] == ["hello", "key", "verify", "finish", "data"]
    assert [part[-1] for part in row["outputs"]] == ["echo", "ack"]
    assert [one["symbol"] for one in row["transitions"]] == ["data"]
    assert "They differ after: hello key verify finish data" in (files / "d.svg").read_text()
    assert run(["diff", str(files / "old.dot"), str(files / "partial.dot"), "--missing", "sink"]) == 2
    assert "no symbol in common" in capsys.readouterr().err
    assert run(["diff", "S3", "S3", "-o", "x.gif"]) == 2
    assert "unknown picture format '.gif'" in capsys.readouterr().err


def test_convert_writes_every_format(files, capsys):
    for name in ("m.json", "m.exactstate", "m.gv", "m.c", "m.mjs", "m.svg"):
        assert run(["convert", str(files / "old.dot"), "-o", str(files / name)]) == 0
        assert (files / name).stat().st_size > 0
    assert read_machine(files / "m.json") == read_machine(files / "m.gv") == handshake()
    assert run(["convert", str(files / "partial.dot"), "-o", str(files / "p.json")]) == 2
    assert "no transition" in capsys.readouterr().err
    assert run(["convert", str(files / "partial.dot"), "-o", str(files / "p.json"), "--missing", "sink"]) == 0
    assert read_machine(files / "p.json").states[-1] == "sink"
    assert run(["convert", str(files / "old.dot"), "-o", str(files / "m.xyz")]) == 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles the program; there is no C compiler here")
def test_convert_to_c_answers_as_the_machine(files):
    assert run(["convert", str(files / "old.dot"), "-o", str(files / "m.c")]) == 0
    subprocess.run(["cc", "-O1", str(files / "m.c"), "-o", str(files / "m")], check=True)
    done = subprocess.run(
        [str(files / "m")], input="hello key verify finish data\n", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["ack", "ack", "ack", "ack", "echo"]


def test_conform_and_suite(files, capsys):
    tests = files / "tests.jsonl"
    assert run(["suite", str(files / "old.dot"), "-o", str(tests)]) == 0
    assert "6 of 6 states and 30 of 30 transitions" in capsys.readouterr().out
    assert run(["conform", str(files / "same.dot"), str(tests)]) == 0
    assert "conforms" in capsys.readouterr().out
    assert run(["conform", str(files / "new.dot"), str(tests), "--json", "--transitions"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert (row["first"]["expected"], row["first"]["seen"]) == ("ack", "echo")
    assert len(row["transitions"]) == 30
    assert run(["suite", str(files / "old.dot"), "--method", "x"]) == 2
    assert run(["suite", str(files / "old.dot"), "--extra-states", "40"]) == 2
    assert "Allow fewer extra states" in capsys.readouterr().err


def test_certify_against_compares_by_name(files, capsys):
    write_machine(handshake(), files / "m.json")
    assert run(["certify", str(files / "m.json"), "--against", str(files / "same.dot")]) == 0
    assert "certified" in capsys.readouterr().out
    assert run(["certify", str(files / "m.json"), "--against", str(files / "new.dot")]) == 1
    assert "the machine outputs 'echo', the target 'ack'" in capsys.readouterr().out
    renamed = handshake()
    strange = Mealy(
        symbols=renamed.symbols, tables=renamed.tables, outputs=("closed", "ack", "pong"), readout=renamed.readout
    )
    write_machine(strange, files / "strange.json")
    assert run(["certify", str(files / "strange.json"), "--against", str(files / "same.dot")]) == 1
    assert "the machine outputs 'pong', the target 'echo'" in capsys.readouterr().out


def test_learned_machine_conforms_to_its_log(files, capsys):
    log = files / "log.txt"
    log.write_text(
        "".join(" ".join(f"{a}/{b}" for a, b in zip(*t, strict=True)) + "\n" for t in traces_of(handshake(), 300, 9, 2))
    )
    assert run(["learn", str(log), "-o", str(files / "learned.dot")]) == 0
    assert run(["conform", str(files / "learned.dot"), str(log)]) == 0


def test_convert_writes_a_grammar_that_was_read_back(files, capsys):
    for name in ("m.ebnf", "m.gbnf", "m.lark"):
        assert run(["convert", str(files / "old.dot"), "-o", str(files / name), "--accept", "ack,echo"]) == 0
        assert "read back and compared on words of every length" in capsys.readouterr().out
    assert (files / "m.gbnf").read_text() == (files / "m.ebnf").read_text()
    assert (files / "m.lark").read_text().splitlines()[1].startswith("start: ")
    assert run(["convert", str(files / "old.dot"), "-o", str(files / "no.lark")]) == 2
    assert "say which outputs of this machine end a word" in capsys.readouterr().err
    assert run(["convert", str(files / "old.dot"), "-o", str(files / "no.json"), "--accept", "ack"]) == 2
    assert "are for grammars" in capsys.readouterr().err
    assert not list(files.glob("no.*"))

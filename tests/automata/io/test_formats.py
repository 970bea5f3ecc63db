"""Files as such: extensions, content, doubts, completion, and nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, read_machine, write_machine
from exactstate.automata.io import machine_text, parse_dot, parse_machine
from exactstate.errors import BrokenFile, InvalidConfig, InvalidMachine, UnknownName
from exactstate.records import write_atomically

DFA = Moore(symbols=("a", "b"), tables=[[0, 0], [1, 1]], outputs=("reject", "accept"), readout=[0, 1])


@pytest.mark.parametrize("name", ["m.dot", "m.GV", "m.json"])
def test_read_machine_by_extension(tmp_path: Path, name: str) -> None:
    write_machine(DFA, tmp_path / name)
    assert read_machine(tmp_path / name, strict=True) == DFA
    assert read_machine(str(tmp_path / name), strict=True) == DFA


@pytest.mark.parametrize("format", ["dot", "json"])
def test_read_machine_with_an_unknown_extension_goes_by_content(tmp_path: Path, format: str) -> None:
    path = tmp_path / "machine.txt"
    write_machine(DFA, path, format=format)
    notes: list[str] = []
    assert read_machine(path, notes=notes) == DFA
    assert notes == [f"the extension '.txt' is unknown; the content looks like {format}."]
    with pytest.raises(BrokenFile, match=r"strict reading refuses this: the extension '.txt' is unknown"):
        read_machine(path, strict=True)
    assert read_machine(path, format=format, strict=True) == DFA


def test_read_machine_refuses_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown extension '.jsn'. Did you mean '.json'"):
        write_machine(DFA, tmp_path / "machine.jsn")
    with pytest.raises(UnknownName, match=r"unknown format 'jsonn'. Did you mean 'json'"):
        write_machine(DFA, tmp_path / "machine.json", format="jsonn")
    with pytest.raises(UnknownName, match=r"unknown format 'xml'. Known: dot, json"):
        parse_machine("x", format="xml")
    with pytest.raises(InvalidConfig, match="missing='maybe' is not one of 'error', 'sink', 'loop'"):
        parse_dot("digraph {}", missing="maybe")
    with pytest.raises(InvalidConfig, match="kind='nfa' is not one of None, 'dfa'"):
        parse_dot("digraph {}", kind="nfa")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("extension", ["dot", "json", "bin"])
@pytest.mark.parametrize("garbage", ["empty", "zeros", "bytes", "letters", "lines", "open quote"])
def test_read_machine_refuses_ten_megabytes_of_garbage(tmp_path: Path, extension: str, garbage: str) -> None:
    size = 10_000_000
    letters = np.frombuffer(bytes(range(32, 127)) + b"\n", np.uint8)
    random = np.random.default_rng(7)
    content = {
        "empty": b"",
        "zeros": bytes(size),
        "bytes": random.bytes(size),
        "letters": letters[random.integers(0, len(letters), size)].tobytes(),
        "lines": b"this is no machine at all\n" * (size // 26),
        "open quote": b'digraph { "' + b"\\" * size,
    }[garbage]
    path = tmp_path / f"machine.{extension}"
    path.write_bytes(content)
    with pytest.raises(BrokenFile) as caught:
        read_machine(path, notes=[])
    assert "\n" not in str(caught.value)
    assert len(caught.value.reason) < 250


def test_read_machine_names_the_line_of_a_byte_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "machine.dot"
    path.write_bytes(b"digraph {\n a -> a [label=x] // \xe9t\xe9\n}")
    with pytest.raises(BrokenFile, match=r"machine.dot, line 2: byte 0xe9 is not UTF-8 text") as caught:
        read_machine(path)
    assert caught.value.line == 2


def test_read_machine_with_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(b"\xef\xbb\xbf" + machine_text(DFA, format="json").replace("\n", "\r\n").encode())
    assert read_machine(path) == DFA


def test_read_machine_of_missing_files(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match=r"nowhere.dot: there is no such file"):
        read_machine(tmp_path / "nowhere.dot")
    with pytest.raises(BrokenFile, match="it cannot be read: is a directory"):
        read_machine(tmp_path)
    with pytest.raises(BrokenFile, match=r"it cannot be written: there is no folder .*nowhere"):
        write_machine(DFA, tmp_path / "nowhere" / "machine.dot")


def test_write_machine_refused_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text("precious")
    with pytest.raises(InvalidMachine, match="half a surrogate pair"):
        write_machine(Semiautomaton(symbols=("\ud800",), tables=[[0]]), path, format="json")
    with pytest.raises(InvalidMachine, match="half a surrogate pair"):
        write_machine(Semiautomaton(symbols=("\ud800",), tables=[[0]]), path, format="dot")
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["machine.json"]


def test_write_machine_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "machine.dot"
    path.write_text("precious")

    def interrupted(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(BrokenFile, match="it cannot be written: No space left on device"):
        write_atomically(path, b"new")
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["machine.dot"]


def test_write_machine_follows_links_and_keeps_the_umask(tmp_path: Path) -> None:
    (tmp_path / "link.dot").symlink_to(tmp_path / "real.dot")
    write_machine(DFA, tmp_path / "link.dot")
    (tmp_path / "plain").touch()
    assert (tmp_path / "link.dot").is_symlink()
    assert (tmp_path / "real.dot").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_read_machine_missing_sink() -> None:
    text = 'digraph { __start0 -> a; a -> sink [label="x/0"] sink -> a [label="y/1"] }'
    assert parse_dot(text, missing="sink") == Mealy(
        symbols=("x", "y"), tables=[[1, 2, 2], [2, 0, 2]], states=("a", "sink", "sink_1"),
        outputs=("0", "1", "missing"), readout=[[0, 2, 2], [2, 1, 2]],
    )  # fmt: skip
    dfa = "digraph { __start0 -> a; b [shape=doublecircle] a -> b [label=x] b -> b [label=y] }"
    assert parse_dot(dfa, missing="sink", notes=[]) == Moore(
        symbols=("x", "y"), tables=[[2, 0, 2], [0, 2, 2]], states=("b", "a", "sink"),
        start=1, outputs=("reject", "accept"), readout=[1, 0, 0],
    )  # fmt: skip
    moore = 'digraph { a [label="a/0"] b [label="b/1"] __start0 -> a; a -> b [label=x] }'
    machine = parse_dot(moore, missing="sink")
    assert isinstance(machine, Moore)
    assert (machine.outputs, machine.readout.tolist()) == (("0", "1", "missing"), [0, 1, 2])


def test_read_machine_missing_loop() -> None:
    text = 'digraph { __start0 -> a; a -> b [label="x/missing"] b -> a [label="y/1"] }'
    assert parse_dot(text, missing="loop") == Mealy(
        symbols=("x", "y"), tables=[[1, 1], [0, 0]], states=("a", "b"), outputs=("missing", "1", "missing_1"),
        readout=[[0, 2], [2, 1]],
    )  # fmt: skip
    machine = parse_dot("digraph { a -> b [label=x] b -> a [label=y] }", missing="loop")
    assert machine == Semiautomaton(symbols=("x", "y"), tables=[[1, 1], [0, 0]], states=("a", "b"))


def test_read_machine_missing_has_a_limit() -> None:
    edges = " ".join(f"q{i} -> q{i + 1} [label=x{i}]" for i in range(12_000))
    with pytest.raises(BrokenFile, match="completing 12001 states with 12000 symbols would need 144012000 transitions"):
        parse_dot(f"digraph {{ {edges} }}", missing="sink")
    with pytest.raises(BrokenFile, match=r"state 'q0' has no transition on 'x1' \(143999999 more are missing\)"):
        parse_dot(f"digraph {{ {edges} }}")


@pytest.mark.parametrize("format", ["dot", "json"])
def test_read_machine_damaged_file_is_read_or_refused(format: str) -> None:
    """Cut, doubled and spoiled in random places, a file gives a machine or a BrokenFile, never another error."""
    random = np.random.default_rng(11)
    spoils = ['"', "\\", "{", "}", "[", "->", "/", "|", "%FF", "<br/>", "=", "\n", "\0", "é", "__start0", "-1", "true"]
    whole, refused = machine_text(DFA, format=format), 0
    for _ in range(400):
        text = whole
        for _ in range(random.integers(1, 4)):
            i, j, k = (int(at) for at in random.integers(0, len(text) + 1, 3))
            piece = [str(random.choice(spoils)), text[k : k + 20], ""][random.integers(3)]
            text = text[:i] + piece + text[max(i, min(j, i + 4)) :]
        try:
            machine = parse_machine(text, format=format, notes=[])
        except BrokenFile as error:
            refused += 1
            sentence = str(error)
        else:
            sentence = repr(machine)
        assert "\n" not in sentence
        assert len(sentence) < 420
    assert 100 < refused < 400

"""Logs in every format, and hostile ones: each is read, or refused in a sentence with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exactstate.errors import BrokenFile
from exactstate.learning import logs
from exactstate.learning.logs import Trace, as_traces, read_log


def read(tmp_path, name, content, **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_log(path, **options))


def test_read_log_formats(tmp_path):
    wanted = [(["a", "b"], ["x", "y"]), (["b"], ["x"])]
    for name, content, options in [
        ("l.jsonl", '{"inputs": ["a", "b"], "outputs": ["x", "y"]}\n\n{"inputs": ["b"], "outputs": ["x"]}\n', {}),
        ("l.csv", "trace,input,output\n1,a,x\n1,b,y\n2,b,x\n", {}),
        ("m.csv", "input;output\na;x\nb;y\n\nb;x\n", {"separator": ";"}),
        ("l.txt", "# a comment\na/x b/y\nb/x\n", {}),
        ("aalpy.txt", "a/x,b/y\nb/x\n", {}),
        ("flexfringe.txt", "2 2\n1 2 a/x b/y\n0 1 b/x\n", {}),
        ("crlf.txt", "\ufeffa/x b/y\r\nb/x\r\n", {}),
    ]:
        assert [(list(t.inputs), list(t.outputs)) for t in read(tmp_path, name, content, **options)] == wanted, name


def test_read_log_of_labels_initial_outputs_and_blanks(tmp_path):
    assert read(tmp_path, "l.txt", "2 2\n1 2 0 1\n0 0\n") == [
        Trace(["0", "1"], [None, "1"], None, 2), Trace([], [], "0", 3),
    ]  # fmt: skip
    assert read(tmp_path, "l.jsonl", '{"inputs": ["a"], "accept": true}') == [Trace(["a"], ["true"], None, 1)]
    assert read(tmp_path, "m.jsonl", '{"inputs": [1], "outputs": ["i", "x"]}') == [Trace(["1"], ["x"], "i", 1)]
    assert read(tmp_path, "i.txt", "start,a/x") == [Trace(["a"], ["x"], "start", 1)]
    assert read(tmp_path, "s.txt", "ping one / pong a; ping / no", separator=";") == [
        Trace(["ping one", "ping"], ["pong a", "no"], None, 1)
    ]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("l.txt", b"", "it is empty"),
        ("l.txt", b"\n \n", "it is empty"),
        ("l.txt", b"# only a comment\n", "there is no trace in it"),
        ("l.txt", b"a/x\nb/\xff\n", "line 2: byte 0xff is not UTF-8"),
        ("l.txt", b"a/x b\n", "line 1: a token is input/output, such as open/ok; got 'b'"),
        ("l.jsonl", b'{"inputs": ["a"]', "line 1: this is not JSON"),
        ("l.jsonl", b'{"inputs": ["a"], "inputs": []}', "line 1: this is not JSON: the key 'inputs' came twice"),
        ("l.jsonl", b'{"inputs": ["a"], "outputs": []}', "line 1: 1 inputs go with as many outputs"),
        ("l.jsonl", b'{"inputs": [["a"]], "outputs": ["x"]}', "strings or numbers"),
        ("l.jsonl", b"[" * 100_000, "line 1: this is not JSON"),
        ("l.jsonl", b"[1]", "wanted an object"),
        ("l.csv", b"a,b\n1,2\n", "the header wants the columns input and output"),
        ("l.csv", b"input,output\na\n", "line 2: 2 columns were wanted; got 1"),
        ("l.csv", b'input,output\n"a,b\n', "this is not CSV"),
        ("l.txt", b"3 2\n1 1 0\n", "line 1: the first line says 3 strings; there are 1"),
        ("l.txt", b"1 2\n1 5 0\n", "line 2: wanted a label, the length"),
    ],
)
def test_read_log_refuses_hostile_files(tmp_path, name, content, sentence):
    with pytest.raises(BrokenFile, match=sentence):
        read(tmp_path, name, content)


@pytest.mark.parametrize(
    ("name", "begin"),
    [("l.txt", b"a/x\n"), ("l.csv", b"input,output\n"), ("l.jsonl", b'{"inputs": ["a"], "outputs": ["x"]}\n')],
)
def test_a_line_of_a_gigabyte_is_refused_without_reading_it(name, begin, tmp_path):
    path = tmp_path / name
    path.write_bytes(begin)
    os.truncate(path, 1 << 30)  # a sparse file: zeros without an end of line
    with pytest.raises(BrokenFile, match="line 2: it is longer than 64 MiB; a line holds one trace"):
        list(read_log(path))


def test_read_log_bounds_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MAX_LINE", 1 << 20)
    with pytest.raises(BrokenFile, match="line 2: it is longer than 1 MiB"):
        read(tmp_path, "l.txt", b"a/x\n" + b"a/x " * (1 << 19))
    with pytest.raises(BrokenFile, match="there is no such file"):
        list(read_log(tmp_path / "nowhere.txt"))
    with pytest.raises(BrokenFile, match="it cannot be read: is a directory"):
        list(read_log(tmp_path))


def test_as_traces_from_python():
    assert list(as_traces([("ab", ["x", "y"]), [("a", 1), ("b", 0)], ["i", ("a", 1)], (["a"], True)])) == [
        Trace(["a", "b"], ["x", "y"], None, 1), Trace(["a", "b"], ["1", "0"], None, 2), Trace(["a"], ["1"], "i", 3),
        Trace(["a"], ["True"], None, 4),
    ]  # fmt: skip


def test_csv_with_the_end_of_a_line_inside_quotes(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b'trace,input,output\n1,"x\ny",0\n1,xy,1\n')
    (trace,) = read_log(log)
    assert trace.inputs == ["x\ny", "xy"]
    assert trace.outputs == ["0", "1"]


def test_csv_with_interleaved_traces(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("session,input,output\n1,a,0\n2,a,0\n1,b,1\n\n2,b,1\n1,c,2\n")
    one, two = read_log(log)
    assert (one.inputs, one.outputs, one.line, one.key) == (["a", "b", "c"], ["0", "1", "2"], 2, "1")
    assert (two.inputs, two.outputs, two.line, two.key) == (["a", "b"], ["0", "1"], 3, "2")


@pytest.mark.parametrize("length", ["\u00b2", "9" * 5000, "-2", "1", "x"])
def test_abbadingo_with_a_length_that_is_none(tmp_path: Path, length: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"1 2\n1 {length} a b\n", encoding="utf-8")
    with pytest.raises(BrokenFile, match="line 2: wanted a label, the length and as many symbols"):
        list(read_log(log, format="abbadingo"))

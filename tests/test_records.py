"""Rows survive kills and concurrent writers; files are whole or absent; JSON is strict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate import records
from exactstate.errors import BrokenFile


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return tmp_path / "results" / "rows.jsonl"


def test_append_and_read_in_order(rows: Path) -> None:
    wanted = [{"n": n, "name": "Z\u2082\n\"'", "list": [1, None, 2.5], "deep": {"true": True}} for n in range(20)]
    for row in wanted:
        records.append(rows, row)
    assert list(records.read(rows)) == wanted
    assert [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()] == wanted


def test_read_an_empty_file(rows: Path) -> None:
    rows.parent.mkdir()
    rows.touch()
    assert list(records.read(rows)) == []


@pytest.mark.parametrize("cut", range(1, 14))
def test_read_skips_and_append_removes_an_incomplete_last_row(rows: Path, cut: int) -> None:
    records.append(rows, {"n": 1})
    half = json.dumps({"later": "row"}).encode()[:cut]
    with rows.open("ab") as file:
        file.write(half)
    assert list(records.read(rows)) == [{"n": 1}]
    records.append(rows, {"n": 2})
    assert list(records.read(rows)) == [{"n": 1}, {"n": 2}]
    assert rows.read_bytes() == b'{"n": 1}\n{"n": 2}\n'


def test_append_to_a_file_that_is_half_a_row(rows: Path) -> None:
    rows.parent.mkdir()
    rows.write_bytes(b'{"long": "' + b"x" * 200_000)
    assert list(records.read(rows)) == []
    records.append(rows, {"n": 1})
    assert rows.read_bytes() == b'{"n": 1}\n'


def test_append_keeps_a_last_row_without_newline(rows: Path) -> None:
    rows.parent.mkdir()
    rows.write_bytes(b'{"n": 1}\n{"n": 2}')
    assert list(records.read(rows)) == [{"n": 1}, {"n": 2}]
    records.append(rows, {"n": 3})
    assert list(records.read(rows)) == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("garbage", [b"not json", b"[1, 2]", b"3", b"\xff\xfe", b'{"n": 1'])
def test_read_refuses_garbage_with_its_line(rows: Path, garbage: bytes) -> None:
    rows.parent.mkdir()
    rows.write_bytes(b'{"n": 1}\n' + garbage + b'\n{"n": 2}\n')
    with pytest.raises(BrokenFile, match=r"rows\.jsonl, line 2: a JSON object was wanted; got"):
        list(records.read(rows))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_append_refuses_a_row_that_json_cannot_hold(rows: Path, value: object) -> None:
    with pytest.raises(BrokenFile, match="cannot be written as JSON"):
        records.append(rows, {"value": value})
    assert not rows.exists()


def test_append_from_many_processes(rows: Path) -> None:
    program = (
        "import sys; from exactstate import records\n"
        "for n in range(100): records.append(sys.argv[1], {'who': sys.argv[2], 'n': n, 'pad': 'x' * 5000})"
    )
    crowd = [subprocess.Popen([sys.executable, "-c", program, str(rows), who]) for who in "ab"]
    assert [one.wait() for one in crowd] == [0, 0]
    found = list(records.read(rows))
    for who in "ab":
        assert [row["n"] for row in found if row["who"] == who] == list(range(100))


def test_write_atomically_replaces_the_file(tmp_path: Path) -> None:
    target = tmp_path / "machine.json"
    records.write_atomically(target, "old")
    records.write_atomically(target, b"new \xff")
    assert target.read_bytes() == b"new \xff"
    assert os.listdir(tmp_path) == ["machine.json"]


@pytest.mark.parametrize("culprit", ["os.replace", "os.fsync"])
def test_write_atomically_interrupted_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, culprit: str
) -> None:
    target = tmp_path / "machine.json"
    target.write_text("old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(culprit, interrupted)
    with pytest.raises(KeyboardInterrupt):
        records.write_atomically(target, "new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["machine.json"]


def test_write_atomically_refuses_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="it cannot be written: there is no folder"):
        records.write_atomically(tmp_path / "nowhere" / "file", "data")
    assert os.listdir(tmp_path) == []


def test_write_atomically_respects_the_umask(tmp_path: Path) -> None:
    records.write_atomically(tmp_path / "file", "data")
    (tmp_path / "plain").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_append_undoes_a_short_write(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.append(rows, {"n": 1})
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:3]))
    with pytest.raises(BrokenFile, match="the row cannot be written: no space left on device"):
        records.append(rows, {"n": 2})
    assert rows.read_bytes() == b'{"n": 1}\n'


def test_stamp_says_where_when_and_how() -> None:
    stamp = records.stamp()
    assert json.loads(json.dumps(stamp)) == stamp
    assert stamp["machine"]["cores"] >= 1
    assert stamp["machine"]["cpu"]
    assert stamp["versions"]["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert stamp["versions"]["numpy"]
    assert stamp["date"].endswith("+00:00")


def test_stamp_names_the_command_without_folders() -> None:
    program = "from exactstate import records; print(records.stamp()['command'])"
    said = subprocess.run([sys.executable, "-c", program, "a b"], capture_output=True, text=True, check=True)
    assert said.stdout == "-c 'a b'\n"


def test_write_atomically_writes_into_devices_and_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    records.write_atomically(pipe, "new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()


def test_parse_strict_json_reads_json() -> None:
    text = '{"a": [1, 2.5, null, true], "b": {"a": "x"}}'
    assert records.parse_strict_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "reason", "line", "key"),
    [
        ('{"a": 1,\n "a": 2}', "the key 'a' came twice", None, "a"),
        ('{"b": {"a": 1, "a": 1}}', "the key 'a' came twice", None, "a"),
        ("[NaN]", "NaN is not a number", None, None),
        ("-Infinity", "-Infinity is not a number", None, None),
        ("[1,\n 2", "expecting ',' delimiter at column 3", 2, None),
        ("[" * 200_000, "it is nested too deep", None, None),
        ("9" * 10_000, "a number has too many digits", None, None),
    ],
)
def test_parse_strict_json_refuses(text: str, reason: str, line: int | None, key: str | None) -> None:
    with pytest.raises(records.InvalidJson) as caught:
        records.parse_strict_json(text)
    assert (caught.value.reason, caught.value.line, caught.value.key) == (reason, line, key)

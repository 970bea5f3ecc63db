"""Logs in parts: the tree, the machine file, the messages and the lines of one process, also with a killed worker."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Moore
from exactstate.errors import BrokenFile, BudgetExceeded, ExactstateError, InvalidConfig, InvalidInput
from exactstate.learning import cluster, prefix_tree
from exactstate.learning.cluster import conform_on_cluster, read_tree_on_cluster
from exactstate.learning.conformance import conform
from exactstate.learning.learn import learn
from exactstate.learning.logs import log_layout, part_ends, read_log
from exactstate.learning.trace_tree import TraceTree, read_tree
from exactstate.runtime.cluster import connected as connected_to_ray
from tests.learning.machines import handshake
from tests.runtime.test_cluster import InProcess

SIZES = (1, 40, 333, 1 << 20)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connected(address: str, workers: int | None = None) -> Iterator[type[InProcess]]:
        yield InProcess

    monkeypatch.setattr(cluster, "connected", connected)


def words(count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Words of the handshake machine with its outputs."""
    machine, drawn = handshake().to_mealy(), random.Random(seed)
    found = []
    for _ in range(count):
        inputs = [drawn.choice(machine.symbols) for _ in range(drawn.randint(1, 9))]
        state, outputs = machine.start, []
        for name in inputs:
            a = machine.symbols.index(name)
            outputs.append(machine.outputs[int(machine.readout[a, state])])
            state = int(machine.tables[a, state])
        found.append((inputs, outputs))
    return found


def write_jsonl(path: Path, traces: list[tuple[list[str], list[str]]]) -> None:
    import json

    lines = ["\ufeff", *(json.dumps({"inputs": a, "outputs": b}, ensure_ascii=False) for a, b in traces)]
    path.write_text("\n".join(lines[:1] + lines[1:]) + "\n\n", "utf-8")


def write_text(path: Path, traces: list[tuple[list[str], list[str]]]) -> None:
    rows = [" ".join(f"{a}/{b}" for a, b in zip(*trace, strict=True)) for trace in traces]
    rows[3:3] = ["", "# a comment with ä and 語"]
    path.write_text("\n".join(rows), "utf-8")  # the last line does not end


def write_csv(path: Path, traces: list[tuple[list[str], list[str]]]) -> None:
    rows = [f"{n},{a},{b}" for n, trace in enumerate(traces) for a, b in zip(*trace, strict=True)]
    path.write_text("\ncase,input,output\n" + "\r\n".join(rows) + "\r\n")


def write_csv_with_blank_lines(path: Path, traces: list[tuple[list[str], list[str]]]) -> None:
    parts = ["\n".join(f"{a};{b}" for a, b in zip(*trace, strict=True)) for trace in traces]
    path.write_text("input;output\n" + "\n\n".join(parts))


def write_abbadingo(path: Path, traces: list[tuple[list[str], list[str]]]) -> None:
    rows = [f"{len(b) % 2} {len(a)} {' '.join(a)}" for a, b in traces]
    path.write_text(f"\n{len(traces)} 2\n" + "\n".join(rows) + "\n")


WRITERS: dict[str, tuple[str, str | None, Callable[[Path, list[tuple[list[str], list[str]]]], None]]] = {
    "jsonl": ("a.jsonl", None, write_jsonl), "text": ("a.txt", None, write_text), "csv": ("a.csv", None, write_csv),
    "csv, blank lines": ("b.csv", ";", write_csv_with_blank_lines), "abbadingo": ("a.abb", None, write_abbadingo),
}  # fmt: skip


def assert_same_tree(found: TraceTree, wanted: TraceTree) -> None:
    for field in fields(wanted.tree.arrays):
        ours, theirs = getattr(found.tree.arrays, field.name), getattr(wanted.tree.arrays, field.name)
        assert np.array_equal(ours, theirs), field.name
    assert list(found.symbols.items()) == list(wanted.symbols.items())
    assert list(found.outputs.items()) == list(wanted.outputs.items())
    assert found.tree.words == wanted.tree.words
    assert (found.everywhere, found.observed, found.length) == (wanted.everywhere, wanted.observed, wanted.length)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", WRITERS)
def test_read_tree_on_cluster_is_that_of_one_process(name: str, tmp_path: Path) -> None:
    file, separator, write = WRITERS[name]
    write(tmp_path / file, words(60, 0))
    wanted = read_tree(tmp_path / file, separator=separator)
    for size in SIZES:
        assert_same_tree(read_tree_on_cluster(tmp_path / file, separator=separator, partition=size), wanted)
    ends = list(part_ends(tmp_path / file, log_layout(tmp_path / file, separator=separator), 1))
    assert len(ends) >= 55
    assert ends[-1] == (tmp_path / file).stat().st_size


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["jsonl", "text", "csv"])
def test_learn_on_cluster_writes_the_same_file(name: str, tmp_path: Path) -> None:
    file, separator, write = WRITERS[name]
    write(tmp_path / file, words(60, 1))
    learn(read_tree(tmp_path / file, separator=separator)).save(tmp_path / "one.json")
    learn(read_tree_on_cluster(tmp_path / file, separator=separator, partition=200)).save(tmp_path / "parts.json")
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "one.json").read_bytes()


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["jsonl", "text", "csv"])
def test_learn_on_cluster_names_the_lines_of_a_contradiction(name: str, tmp_path: Path) -> None:
    file, separator, write = WRITERS[name]
    traces = words(60, 2)
    traces.append((traces[7][0], [*traces[7][1][:-1], "something-else"]))
    write(tmp_path / file, [*traces, *words(20, 3)])
    with pytest.raises(InvalidInput, match=r"in line \d+ and .* in line \d+") as one:
        learn(read_tree(tmp_path / file, separator=separator))
    for size in SIZES:
        with pytest.raises(InvalidInput) as parts:
            learn(read_tree_on_cluster(tmp_path / file, separator=separator, partition=size))
        assert str(parts.value) == str(one.value)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", WRITERS)
def test_conform_on_cluster_is_that_of_one_process(name: str, tmp_path: Path) -> None:
    file, separator, write = WRITERS[name]
    traces = words(60, 4)
    traces[41] = (traces[41][0], [*traces[41][1][:-1], "something-else"])
    traces[50] = (["no-such-symbol"], ["x"])
    for log in (words(60, 4), traces):
        write(tmp_path / file, log) if name != "abbadingo" else write(tmp_path / file, words(60, 4))
        wanted = conform(handshake(), read_log(tmp_path / file, separator=separator))
        for size in SIZES:
            found = conform_on_cluster(handshake(), tmp_path / file, separator=separator, partition=size)
            assert found.explain() == wanted.explain()
            assert found.first == wanted.first
            assert found.rows() == wanted.rows()
    assert not wanted


@pytest.mark.usefixtures("in_process")
def test_conform_on_cluster_reads_labels_of_a_dfa(tmp_path: Path) -> None:
    machine = Moore(symbols=("a",), states=("p", "q"), tables=np.array([[1, 0]]), outputs=("accept", "reject"),
                    readout=np.arange(2))  # fmt: skip
    (tmp_path / "a.abb").write_text("3 1\n0 1 a\n1 2 a a\n0 2 a a\n")
    found = conform_on_cluster(machine, tmp_path / "a.abb", partition=1)
    assert found.explain() == conform(machine, read_log(tmp_path / "a.abb")).explain()
    assert "line 4" in found.explain()


BROKEN = {
    "not JSON": ("a.jsonl", '{"inputs": ["a"], "outputs": ["x"]}\n\n{"inputs": ["a"], "outputs": ["x"]}\n{"inputs"\n'),
    "not a token": ("a.txt", "a/x b/y\n# c\na/x b\na/x\n"),
    "columns": ("a.csv", "trace,input,output\n1,a,x\n2,a,x\n2,a\n3,b,x\n"),
    "count": ("a.abb", "4 2\n1 1 a\n0 1 b\n"),
    "length": ("b.abb", "2 2\n1 1 a\n0 2 b\n"),
    "header": ("c.abb", "two 2\n1 1 a\n"),
    "no trace": ("b.txt", "# a\n# b\n"),
    "empty": ("c.txt", "\n\n"),
    "only a header": ("b.csv", "input,output\n"),
}  # fmt: skip


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", BROKEN)
def test_cluster_refuses_a_broken_log_as_one_process_does(name: str, tmp_path: Path) -> None:
    file, text = BROKEN[name]
    (tmp_path / file).write_text(text)
    format = "abbadingo" if file.endswith("abb") else None
    with pytest.raises(ExactstateError) as one:
        read_tree(tmp_path / file, format=format)
    for size in (1, 1 << 20):
        with pytest.raises(type(one.value)) as parts:
            read_tree_on_cluster(tmp_path / file, format=format, partition=size)
        assert str(parts.value) == str(one.value)
        with pytest.raises(type(one.value)) as parts:
            conform_on_cluster(handshake(), tmp_path / file, format=format, partition=size)
        assert str(parts.value) == str(one.value)


@pytest.mark.usefixtures("in_process")
def test_cluster_refuses_bytes_that_are_not_text_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a/x\n" * 5 + b"a/\xff\n" + b"a/x\n")
    with pytest.raises(BrokenFile, match="line 6: byte 0xff is not UTF-8"):
        read_tree_on_cluster(tmp_path / "a.txt", partition=8)


@pytest.mark.usefixtures("in_process")
def test_cluster_reads_quotes_of_csv_in_one_part_only(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('trace,input,output\n1,a,"x\ny"\n2,b,x\n')
    assert_same_tree(read_tree_on_cluster(tmp_path / "a.csv"), read_tree(tmp_path / "a.csv"))
    with pytest.raises(BrokenFile, match="line 2: a CSV log that is read in parts has no quotes"):
        read_tree_on_cluster(tmp_path / "a.csv", partition=1)


@pytest.mark.usefixtures("in_process")
def test_cluster_refuses_a_trace_in_two_parts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("trace,input,output\n1,a,x\n2,a,x\n1,b,y\n")
    assert_same_tree(read_tree_on_cluster(tmp_path / "a.csv"), read_tree(tmp_path / "a.csv"))
    with pytest.raises(BrokenFile, match="the rows of the trace '1' lie in several parts of the log; sort the log"):
        read_tree_on_cluster(tmp_path / "a.csv", partition=1)


@pytest.mark.usefixtures("in_process")
def test_cluster_refuses_folders_missing_files_and_large_trees(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="is a directory"):
        read_tree_on_cluster(tmp_path)
    with pytest.raises(BrokenFile, match="there is no such file"):
        conform_on_cluster(handshake(), tmp_path / "absent")
    (tmp_path / "a.txt").write_text("a/x\nb/y c/z\nd/x e/x\n")
    with pytest.raises(InvalidConfig, match="at least 1 byte; got 0"):
        read_tree_on_cluster(tmp_path / "a.txt", partition=0)
    log = TraceTree(prefix_tree.PrefixTree(max_nodes=3))
    log.merge(_tree_of("a/x", tmp_path))
    with pytest.raises(BudgetExceeded, match="more than 3 nodes; after 2 traces it has 4"):
        log.merge(_tree_of("b/y c/z", tmp_path))


def _tree_of(line: str, folder: Path) -> TraceTree:
    (folder / "line.txt").write_text(line)
    return read_tree(folder / "line.txt")


@pytest.mark.usefixtures("in_process")
def test_read_tree_on_cluster_with_parts_in_another_order_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "a.txt", words(60, 5))
    parts = cluster._parts
    monkeypatch.setattr(cluster, "_parts", lambda *arguments: reversed(list(parts(*arguments))))
    with pytest.raises(AssertionError):
        assert_same_tree(read_tree_on_cluster(tmp_path / "a.txt", partition=300), read_tree(tmp_path / "a.txt"))


def test_cluster_with_a_killed_worker_reads_the_same_log(tmp_path: Path) -> None:
    """On Ray itself: the process of the first part that is done is killed, in both verbs."""
    write_text(tmp_path / "a.txt", words(4000, 6))
    killed: list[int] = []

    def kill(pid: int) -> None:
        if pid not in killed and len(killed) < most:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with connected_to_ray("local", 2):
        most = 1
        tree = read_tree_on_cluster(tmp_path / "a.txt", workers=2, partition=10_000, watch_process=kill)
        most = 2
        found = conform_on_cluster(handshake(), tmp_path / "a.txt", workers=2, partition=10_000, watch_process=kill)
    assert len(killed) == 2
    assert_same_tree(tree, read_tree(tmp_path / "a.txt"))
    wanted = conform(handshake(), read_log(tmp_path / "a.txt"))
    assert (found.explain(), found.rows()) == (wanted.explain(), wanted.rows())

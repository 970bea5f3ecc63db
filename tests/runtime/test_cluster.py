"""A machine over files on a cluster: byte for byte one process, wherever partitions cut, and with killed workers."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactstate.automata import Moore
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig, InvalidWord
from exactstate.runtime import Machine, cluster
from exactstate.runtime.cluster import Span, partitions, run_files
from exactstate.runtime.filter import Filter
from exactstate.tasks import task


class InProcess:
    """The part of Ray that the driver uses, in this process: every task runs when it is submitted."""

    class exceptions:
        class RayTaskError(Exception):
            cause: Exception

    @staticmethod
    def cluster_resources() -> dict[str, float]:
        return {"CPU": 2.0}

    @staticmethod
    def put(value: Any) -> Any:
        return value

    get = put

    @staticmethod
    def wait(refs: list[Any], num_returns: int = 1) -> tuple[list[Any], list[Any]]:
        return refs[-1:], refs[:-1]  # tables first, so that outputs queue up

    @staticmethod
    def remote(num_cpus: int, num_returns: int = 1, max_retries: int = 0) -> Callable[..., Any]:
        assert num_cpus == 1
        assert max_retries > 0

        class Task:
            def __init__(self, function: Callable[..., Any]) -> None:
                self.remote = function

        return Task


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connected(address: str, workers: int | None = None) -> Iterator[type[InProcess]]:
        yield InProcess

    monkeypatch.setattr(cluster, "connected", connected)


def letters() -> Machine:
    """Parity of ä and 語 with a letter that resets; symbols of one to four bytes."""
    tables = np.array([[1, 0, 2], [0, 2, 1], [0, 0, 0]])
    symbols, states, outputs = ("ä", "語", "𝄞"), ("p", "q", "r"), ("0", "", "zwei")
    return Machine.of(Moore(symbols=symbols, states=states, tables=tables, outputs=outputs, readout=np.arange(3)))


def words() -> Machine:
    tables = np.array([[1, 1, 0], [0, 2, 2]])
    symbols, states, outputs = ("go", "stop"), ("a", "b", "c"), ("x", "yy", "")
    return Machine.of(Moore(symbols=symbols, states=states, tables=tables, outputs=outputs, readout=np.arange(3)))


MACHINES: dict[str, Callable[[], Machine]] = {
    "letters": letters, "words": words, "symbols of two words": lambda: Machine.of(task("S3").machine),
}  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"each_line": True}, {"last": True}, {"last": True, "each_line": True}, {"form": "json"}, {"states": True},
    {"form": "json", "last": True}, {"form": "json", "each_line": True, "last": True},
]  # fmt: skip


def text_of(machine: Machine, count: int, separators: list[str], seed: int) -> str:
    drawn = random.Random(seed)
    return "".join(drawn.choice(machine.symbols) + drawn.choice(separators) for _ in range(count))


def one_process(machine: Machine, files: list[Path], **options: Any) -> bytes:
    filter = Filter(machine=machine, **options)
    return b"".join(filter.feed(path.read_bytes()) for path in files) + filter.finish()


def on_cluster(machine: Machine, files: list[Path], **options: Any) -> bytes:
    written: list[bytes] = []
    run_files(machine, files, written.append, **options)
    return b"".join(written)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("partition", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("name", MACHINES)
def test_run_files_is_one_process(name: str, partition: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = MACHINES[name]()
    monkeypatch.setattr("exactstate.runtime.filter.SYMBOLS_PER_PIECE", 5)
    files = [tmp_path / f"{i}.txt" for i in range(4)]
    files[0].write_text(text_of(machine, 30, [" ", "\n", "  \t", "\n\n"], 0), "utf-8")
    files[1].write_text("")
    files[2].write_text(text_of(machine, 30, [" "], 1), "utf-8")  # one line over many partitions
    files[3].write_text(text_of(machine, 9, [" ", "\n"], 2).rstrip(), "utf-8")  # does not end a line
    for options in [
        *OPTIONS,
        {"at": machine.symbols[:1]},
        {"at": machine.symbols[:1], "last": True, "each_line": True},
    ]:
        assert on_cluster(machine, files, partition=partition, **options) == one_process(machine, files, **options), (
            options
        )


@pytest.mark.usefixtures("in_process")
def test_run_files_with_a_wrong_table_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = words()
    (tmp_path / "a").write_text(text_of(machine, 100, [" "], 0))
    composite = cluster._composite
    monkeypatch.setattr(cluster, "_composite", lambda *arguments: (composite(*arguments) + 1) % 3)
    assert on_cluster(machine, [tmp_path / "a"], partition=50) != one_process(machine, [tmp_path / "a"])


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("partition", [5, 1 << 20])
def test_run_files_names_the_line_of_an_unknown_symbol(partition: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("go stop\ngo\nstop go halt go\n")
    written: list[bytes] = []
    with pytest.raises(InvalidWord, match=r"'halt'.*on line 3, word 3"):
        run_files(words(), [tmp_path / "a"], written.append, partition=partition)
    assert b"".join(written).startswith(one_process(words(), [tmp_path / "a"], unknown="skip")[:8])
    filter = run_files(words(), [tmp_path / "a"], written.append, partition=partition, unknown="skip")
    assert filter.tokenizer.skipped == 1


@pytest.mark.usefixtures("in_process")
def test_run_files_refuses_bytes_that_are_not_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("ä語".encode() + b"\xff")
    with pytest.raises(InvalidWord, match="byte 0xff"):
        run_files(letters(), [tmp_path / "a"], lambda text: None)


@pytest.mark.usefixtures("in_process")
def test_run_files_refuses_folders_pipes_and_empty_partitions(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="this is a folder"):
        run_files(words(), [tmp_path], lambda text: None)
    with pytest.raises(BrokenFile, match="this is not one"):
        run_files(words(), [tmp_path / "absent"], lambda text: None)
    with pytest.raises(InvalidConfig, match="at least 1 byte; got 0"):
        run_files(words(), [], lambda text: None, partition=0)


def test_partitions_cover_every_byte_once(tmp_path: Path) -> None:
    machine = letters()
    paths = [tmp_path / "a", tmp_path / "b"]
    for seed, path in enumerate(paths):
        path.write_text(text_of(machine, 30, ["", " "], seed), "utf-8")

    def read(span: Span) -> bytes:
        return Path(span[0]).read_bytes()[span[1] : span[2]]

    for size in (1, 2, 3, 10, 1000):
        pieces = [b"".join(map(read, spans)) for spans in partitions(paths, machine, size)]
        assert b"".join(pieces) == paths[0].read_bytes() + paths[1].read_bytes()
        for piece in pieces:
            piece.decode()  # no character is cut


def test_connected_without_ray_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"pip install ray"), cluster.connected("local"):
        pass


@pytest.fixture(scope="module")
def ray_of_two() -> Iterator[None]:
    """A Ray cluster of two processors of this machine."""
    with cluster.connected("local", 2):
        yield


@pytest.mark.usefixtures("ray_of_two")
def test_cluster_with_a_killed_worker_is_one_process(tmp_path: Path) -> None:
    """On Ray itself: the process of the first task that is done is killed, and once more one later."""
    machine = Machine.of(task("S3").machine)
    (tmp_path / "a").write_text(text_of(machine, 20_000, [" ", "\n"], 0))
    killed: list[int] = []

    def kill(pid: int) -> None:
        if len(killed) < 2 and pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    found = on_cluster(machine, [tmp_path / "a"], partition=10_000, workers=2, watch=kill)
    assert len(killed) == 2
    assert found == one_process(machine, [tmp_path / "a"])


def test_cluster_whose_processes_die_at_the_start_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="needs the extra cluster")

    def init(**_: Any) -> None:
        raise RuntimeError("The node died.\nTraceback and more")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with (
        pytest.raises(BackendUnavailable, match=r"Ray could not be started \(The node died.\); try again"),
        cluster.connected("local"),
    ):
        raise AssertionError("not reached")

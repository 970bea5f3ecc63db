"""A machine over large files on a Ray cluster: the output of one process, byte for byte.

The files are one text, as `cat` would write it, cut into partitions of some megabytes. A task reads a partition, makes
symbols of its text and composes them to one table: where every state leads. As soon as the tables of all partitions
before it are known, so is the state in which a partition starts, and a second task writes its outputs. The driver
combines tables, joins lines that partitions cut, and writes the outputs in order.

Cuts are moved to the next place where symbols cannot be split: between two characters where symbols are letters, after
a blank where they are words, after a line where a symbol has several words. A line may span any number of partitions.
The number of partitions in flight is bounded, and with it the memory of the driver and of every worker. Ray runs a task
again if its worker dies, and rebuilds what was lost. All machines need the files at the same path.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata.run import smallest_dtype
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig, InvalidWord
from exactstate.runtime.filter import Filter, Piece
from exactstate.runtime.io import from_bytes, to_bytes
from exactstate.runtime.machine import Machine
from exactstate.runtime.tokenizer import BLANKS, NEWLINE, TokenChunk, Tokenizer

PARTITION = 32 << 20
"""Bytes of a partition."""
READ = 1 << 20
"""Bytes that a task reads and tokenizes at a time."""
RETRIES = 5
"""How often a task is run again when its worker dies."""

Span = tuple[str, int, int]
"""A file, and the first and last byte offset of a part of it."""


# -- partitions


def partitions(files: Sequence[Path], machine: Machine, size: int = PARTITION) -> Iterator[list[Span]]:
    """Spans of files, in order, cut about every `size` bytes where no symbol is split."""
    sizes = [file_size(path) for path in files]
    ends = np.cumsum([0, *sizes]).tolist()
    begin, total = 0, ends[-1]
    while begin < total:
        end = _safe_cut(files, ends, min(begin + size, total), machine)
        yield [
            (os.path.abspath(path), max(begin - first, 0), min(end, last) - first)
            for path, first, last in zip(files, ends, ends[1:], strict=False)
            if first < end and last > begin and first < last
        ]
        begin = end


def file_size(path: str | os.PathLike[str]) -> int:
    """The bytes of a file that can be read from any place; others are refused."""
    path = Path(path)
    if path.is_dir():
        raise BrokenFile(path, "this is a folder; expected a text file.")
    if not path.is_file():
        raise BrokenFile(path, "a cluster reads files that can be read from any place; this is not one.")
    return path.stat().st_size


def _safe_cut(files: Sequence[Path], ends: list[int], place: int, machine: Machine) -> int:
    """The first offset from `place` on at which the text may be cut."""
    alphabet = machine.alphabet
    separators = (NEWLINE,) if alphabet.most_words > 1 else BLANKS
    while place < ends[-1]:
        number = next(i for i in range(len(files)) if ends[i] <= place < ends[i + 1])
        with open(files[number], "rb") as file:
            file.seek(place - ends[number] - (0 if alphabet.by_letter or place == ends[number] else 1))
            window = np.frombuffer(file.read(1 << 16), np.uint8)
        if not len(window):
            raise BrokenFile(files[number], "the file became shorter while it was read.")
        if alphabet.by_letter:  # not within a character: bytes 10xxxxxx continue one
            found = np.flatnonzero(window & 0xC0 != 0x80)
            if len(found):
                return place + int(found[0])
            place += len(window)
            continue
        back = 0 if place == ends[number] else 1  # a separator just before the place will do
        found = np.flatnonzero(np.isin(window, separators))
        if len(found):
            return place - back + int(found[0]) + 1
        place += len(window) - back
    return ends[-1]


# -- the two tasks


@dataclass(frozen=True)
class Summary:
    """What the driver has to know about a partition before its outputs are written."""

    table: Ints
    """n: where every state leads."""
    symbols: int
    breaks: int
    in_line: int
    """Symbols behind the last end of line."""
    skipped: int
    unknown: str | None
    """The unknown symbol that ended the reading."""
    invalid: str | None
    """Why the text could not be decoded."""
    size: int
    """Bytes of its text."""
    pid: int
    """The process that read it."""


@lru_cache(maxsize=4)
def _machine(content: bytes) -> Machine:
    return from_bytes(content, "the machine of the cluster")


def tokenize(content: bytes, options: dict[str, Any], spans: list[Span]) -> tuple[Summary, tuple[Ints, Ints]]:
    """The table of a partition, and its symbols and ends of lines for `emit`."""
    machine = _machine(content)
    tokenizer = Tokenizer(machine.alphabet, unknown=options["unknown"])
    numbers: list[Ints] = []
    breaks: list[Ints] = []
    count, invalid = 0, None

    def keep(chunk: TokenChunk) -> None:
        nonlocal count
        numbers.append(chunk.numbers.astype(smallest_dtype(machine.n_symbols + 1)))
        breaks.append(chunk.breaks.astype(np.int64) + count)
        count += len(chunk.numbers)

    try:
        for chunk in _chunks(spans):
            keep(tokenizer.feed(chunk))
            tokenizer.refuse_unknown()
        keep(tokenizer.finish())
        tokenizer.refuse_unknown()
    except InvalidWord as error:
        invalid = str(error) if tokenizer.unknown_symbol is None else None
    text = np.concatenate([np.zeros(0, np.uint8), *numbers])
    ends = np.concatenate([np.zeros(0, np.int64), *breaks])
    summary = Summary(
        _composite(machine, text, ends, options["each_line"]), count, len(ends), tokenizer.in_line, tokenizer.skipped,
        tokenizer.unknown_symbol, invalid, sum(end - begin for _, begin, end in spans), os.getpid(),
    )  # fmt: skip
    return summary, (text, ends)


def emit(
    content: bytes, options: dict[str, Any], tokens: tuple[Ints, Ints], state: int, line: int
) -> tuple[Piece, int]:  # fmt: skip
    """(what a partition gives from a state, the process that computed it)."""
    filter = Filter(machine=_machine(content), **options)
    return filter.piece(TokenChunk(*tokens), state, line), os.getpid()


def _chunks(spans: list[Span]) -> Iterator[bytes]:
    for path, begin, end in spans:
        with open(path, "rb") as file:
            file.seek(begin)
            while begin < end:
                chunk = file.read(min(READ, end - begin))
                if not chunk:
                    raise BrokenFile(path, "the file became shorter while it was read.")
                begin += len(chunk)
                yield chunk


def _composite(machine: Machine, numbers: Ints, breaks: Ints, each_line: bool) -> Ints:
    """n: where every state leads; runs of states that have met are one run."""
    states = np.arange(machine.n_states)
    if each_line and len(breaks):
        states, numbers = np.full(machine.n_states, machine.start), numbers[breaks[-1] :]
    for at in range(0, len(numbers), READ):
        word = machine.alphabet.encode(numbers[at : at + READ])
        distinct, where = np.unique(states, return_inverse=True)
        states = np.array([machine.interpreter.run(word, int(state), None)[1] for state in distinct])[where]
    return states


# -- the driver


def why_not() -> str | None:
    """The reason why no cluster can be used here, or None."""
    return None if find_spec("ray") is not None else "ray is not installed; pip install ray"


@contextmanager
def connected(address: str, workers: int | None = None) -> Iterator[Any]:
    """Ray, connected to a cluster, or with `local` to one of this machine's processors that ends with the block."""
    reason = why_not()
    if reason is not None:
        raise BackendUnavailable(f"a cluster cannot be used: {reason}.")
    import ray

    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False, "configure_logging": False}
    already, handler = ray.is_initialized(), signal.getsignal(signal.SIGTERM)
    if not already and address == "local":
        config = {"worker_niceness": 0}  # added to that of this process; 15 by default
        options |= {"num_cpus": workers or os.cpu_count(), "include_dashboard": False, "_system_config": config}
    elif not already:
        options["address"] = address
    try:
        if not already:
            with redirect_stderr(StringIO()):  # notes of Ray about itself
                ray.init(**options)
    except (ConnectionError, ValueError) as error:
        raise InvalidConfig(
            f"there is no Ray cluster at {address!r} ({error}); pass the address of a running one, or local."
        ) from None
    except Exception as error:  # Ray's own processes died while they started: out of memory, disk or ports
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BackendUnavailable(f"Ray could not be started ({reason}); try again, or leave the cluster out.") from None
    try:
        yield ray
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # an error of exactstate in a task is one here
    finally:
        if not already:
            ray.shutdown()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray sets one of its own


def count_workers(ray: Any, workers: int | None) -> int:
    """Tasks at a time: as many as asked for, or as the cluster has processors."""
    return workers or int(ray.cluster_resources().get("CPU", 1))


def in_order(
    ray: Any, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], workers: int | None, *, returns: int = 1
) -> Iterator[Any]:
    """References to the results of a function for every call, in order; two for every worker are computed ahead."""
    task = ray.remote(num_cpus=1, num_returns=returns, max_retries=RETRIES)(function)
    ahead, waiting = 2 * count_workers(ray, workers), deque[Any]()
    for call in calls:
        waiting.append(task.remote(*call))
        if len(waiting) >= ahead:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


def run_files(
    machine: Machine, files: Sequence[Path], write: Callable[[bytes], object], *, address: str = "local",
    workers: int | None = None, partition: int = PARTITION, progress: Callable[[int, int], None] | None = None,
    watch: Callable[[int], None] | None = None, **options: Any,
) -> Filter:  # fmt: skip
    """Write what `Filter(machine, **options)` gives for the files; returns a filter in the state at the end.

    - `workers`: tasks at a time; all processors of the cluster by default.
    - `progress`: called with the bytes done and the bytes of all files.
    - `watch`: called with the process of every task that is done.
    """
    if partition < 1:
        raise InvalidConfig(f"a partition has at least 1 byte; got {partition}.")
    filter = Filter(machine=machine, **options)
    total = sum(file_size(path) for path in files)
    settings = {"each_line": filter.each_line, "last": filter.last, "states": filter.states, "at": filter.at,
                "form": filter.form, "unknown": filter.unknown, "strategy": filter.strategy}  # fmt: skip
    state, line, done = filter.state, 1, 0
    writing: deque[tuple[Any, Summary, int]] = deque()

    def write_first(ray: Any) -> None:
        nonlocal done
        reference, summary, end = writing.popleft()
        piece, pid = ray.get(reference)
        write(filter.append(piece, end))
        _refuse(filter, summary)
        filter.tokenizer.skipped += summary.skipped
        done += summary.size
        if watch is not None:
            watch(pid)
        if progress is not None:
            progress(done, total)

    with connected(address, workers) as ray:
        content = ray.put(to_bytes(machine))
        second = ray.remote(num_cpus=1, max_retries=RETRIES)(emit)
        calls = ((content, settings, spans) for spans in partitions(files, machine, partition))
        for reference, tokens in in_order(ray, tokenize, calls, workers, returns=2):
            summary: Summary = ray.get(reference)
            if watch is not None:
                watch(summary.pid)
            end = int(summary.table[state])
            writing.append((second.remote(content, settings, tokens, state, line), summary, end))
            state, line = end, line + summary.breaks
            if len(writing) > count_workers(ray, workers):
                write_first(ray)
            if summary.unknown or summary.invalid:
                break
        while writing:
            write_first(ray)
    write(filter.finish())
    return filter


def _refuse(filter: Filter, summary: Summary) -> None:
    """Raise the error of a partition as one process would: with the line of the whole text."""
    tokenizer = filter.tokenizer
    if summary.unknown is not None:  # it follows the last symbol that was appended
        raise tokenizer.unknown_at(summary.unknown, tokenizer.line, tokenizer.in_line + 1)
    if summary.invalid is not None:
        raise InvalidWord(f"{summary.invalid} (in the partition that begins on line {tokenizer.line - summary.breaks})")

"""Sweep the length of words: all lengths at once, in one pass over one long stream.

    B  words     L  their length

The first positions of a long word are a word like any other, so whoever knows where the first error of every word is
knows the accuracy at every length: the share of words whose first error comes later. The failing length is then exact
for these words, not refined by bisection: it is the length at which one word too many has gone wrong. Words are read
in chunks, so memory does not grow with the length, and reading stops when that word has been found.

Drawing fresh words for every length, as the paper does, would give every length an independent sample; here the
lengths share their words, so that accuracy never rises with the length.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from detent._types import Ints
from detent.errors import InvalidConfig
from detent.evaluate.accuracy import Bar, first_errors, question_accuracy
from detent.evaluate.predictors import Held, Reader
from detent.records import write_atomically
from detent.tasks import Batch, Task

# -- What came of a length sweep, as a value and as a row.


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Accuracy over lengths, and the first length at which it falls below the bar."""

    task: str
    measure: str
    """`words`, every state right, or `questions`, the answer right."""
    bar: float
    """What accuracy must not fall below."""
    batch: int
    """Words per length."""
    seed: int
    """Of the words."""
    longest: int
    """The greatest length that was asked for."""
    failing: int | None
    """The smallest length tried at which accuracy is below the bar; None when there is none up to `longest`."""
    accuracies: dict[int, float]
    """Accuracy at every length that was tried; of words, at the powers of two."""
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether no failure was found."""
        return self.failing is None

    def row(self) -> dict[str, Any]:
        return {
            "task": self.task, "measure": self.measure, "bar": self.bar, "batch": self.batch, "words_seed": self.seed,
            "longest": self.longest, "failing_length": self.failing,
            "accuracies": {str(length): share for length, share in sorted(self.accuracies.items())},
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def sentence(self) -> str:
        """The answer, in words."""
        kind = "every state" if self.measure == "words" else "the answer"
        share = "all" if self.bar == 1 else f"{self.bar:.0%}"
        if self.failing is None:
            return (
                f"{self.task}: no failure up to length {self.longest:,}, {kind} right in {share} of {self.batch} words"
            )
        return f"{self.task}: fails at length {self.failing:,}, {kind} right in less than {share} of {self.batch} words"


# -- Put a sweep down and take it up where it was: of words within a stream, of questions between two lengths.

EVERY = 10.0
"""Seconds between two times."""


class PutDown:
    """One file that holds a sweep in progress; without a path it holds nothing."""

    def __init__(self, path: Path | None, asked: list[Any]) -> None:
        self.path, self.asked, self.last = path, json.dumps(asked), time.monotonic()

    def taken_up(self) -> tuple[int, Ints, Held | None, float] | None:
        """(length read, first errors, what the reader holds, seconds so far) of the same sweep, if it was put down."""
        if self.path is None or not self.path.exists():
            return None
        # a file of another sweep, or half a file, is as good as none: the sweep begins at the beginning
        with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(self.path) as kept:
            if str(kept["asked"]) == self.asked:
                held = [kept[f"held_{number}"] for number in range(int(kept["count"]))]
                return int(kept["read"]), kept["first"], held, float(kept["seconds"])
        return None

    def now_and_then(self, read: int, first: Ints, held: Held, seconds: float) -> None:
        """Write everything that the rest of the sweep depends on, if it is time."""
        if self.path is None or time.monotonic() - self.last < EVERY:
            return
        written = io.BytesIO()
        arrays = {f"held_{number}": array for number, array in enumerate(held)}
        np.savez(written, asked=self.asked, read=read, first=first, seconds=seconds, count=len(held), **arrays)  # type: ignore[arg-type]
        write_atomically(self.path, written.getvalue())
        self.last = time.monotonic()

    def over(self) -> None:
        """The sweep has its answer."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Scores(dict[int, float]):
    """Accuracies by length, written to a file whenever there is a new one."""

    def __init__(self, path: Path, asked: list[Any]) -> None:
        self.path, self.asked = path, asked
        kept: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(path.read_text(encoding="utf-8"))
        same = isinstance(kept, dict) and kept.get("asked") == asked
        super().__init__({int(length): float(share) for length, share in kept["scores"].items()} if same else {})

    def __setitem__(self, length: int, share: float) -> None:
        super().__setitem__(length, share)
        write_atomically(self.path, json.dumps({"asked": self.asked, "scores": dict(self)}))

    def over(self) -> None:
        """The sweep has its answer."""
        self.path.unlink(missing_ok=True)


CHUNK = 1 << 12
FIRST = 1 << 6
"""Symbols that are read before it is asked for the first time whether that is enough."""
LONGEST = 1 << 20

Progress = Callable[[int, int], None]
"""Called with the length read and the longest asked for."""


def sweep_words(
    reader: Reader, task: Task, *, bar: Bar, batch: int = 64, longest: int = LONGEST, seed: int = 0,
    chunk: int = CHUNK, progress: Progress | None = None, keep: Path | None = None,
) -> Sweep:  # fmt: skip
    """Read words as the task draws them for sweeps until the accuracy falls below the bar or they are at their end.

    `keep` is a file in which the sweep is put down now and then; with the same file it goes on from there.
    """
    if batch < 1 or longest < 1:
        raise InvalidConfig(f"a sweep takes at least one word and length 1; got {batch} words of length {longest}.")
    begun, drawn = time.perf_counter(), task.for_sweeps()
    put_down = PutDown(keep, ["words", task.name, bar.share, batch, longest, seed, chunk])
    read, first, held, before = put_down.taken_up() or (0, np.full(batch, longest, np.int64), None, 0.0)
    enough = bar.errors(batch)
    for position, inputs, states in _pieces(drawn.stream(batch, longest, np.random.default_rng(seed), chunk=chunk)):
        if position < read:
            continue  # read before the sweep was put down
        if np.sum(first < position) >= enough:
            break
        said, held = reader(inputs, held)
        here, width = first_errors(said, states), inputs.shape[1]
        first = np.where((here < width) & (first == longest), position + here, first)
        read = position + width
        if progress is not None:
            progress(read, longest)
        put_down.now_and_then(read, first, held, before + time.perf_counter() - begun)
    put_down.over()
    failing = _failing(first, enough, read)
    return Sweep(
        task=task.name, measure="words", bar=bar.share, batch=batch, seed=seed, longest=longest, failing=failing,
        accuracies=_accuracies(first, read), seconds=before + time.perf_counter() - begun,
    )  # fmt: skip


def _pieces(stream: Iterator[Batch]) -> Iterator[tuple[int, Ints, Ints]]:
    """(position, symbols, states) of every stretch; the first is cut at powers of two, for most failures are early."""
    for part in stream:
        width = part.inputs.shape[1]
        borders = [
            0,
            *(1 << power for power in range(FIRST.bit_length() - 1, width.bit_length()) if 1 << power < width),
        ]
        for begin, end in pairwise([*(borders if part.position == 0 else [0]), width]):
            yield part.position + begin, part.inputs[:, begin:end], part.states[:, begin:end]


def _failing(first: Ints, enough: int, read: int) -> int | None:
    """The smallest length that holds so many first errors."""
    at = int(np.sort(first)[enough - 1])
    return at + 1 if at < read else None


def _accuracies(first: Ints, read: int) -> dict[int, float]:
    """At every power of two that was read."""
    lengths = [1 << power for power in range(read.bit_length()) if 1 << power <= read]
    return {length: float(np.mean(first >= length)) for length in lengths}


# -- Sweep the length of words that end with a question: double until the answers fail, then bisect.

SHORTEST = 64


def sweep_questions(
    reader: Reader, task: Task, *, bar: Bar, batch: int = 64, longest: int = LONGEST, seed: int = 0,
    chunk: int = CHUNK, shortest: int = SHORTEST, progress: Progress | None = None,
    known: dict[int, float] | None = None,
) -> Sweep:  # fmt: skip
    """Ask at lengths `shortest`, twice that, and so on up to `longest`, then between the last two.

    `known` holds accuracies that were taken before, by length, and receives those that are taken now: whoever keeps
    it can stop and go on.
    """
    if task.question is None:
        raise InvalidConfig(f"{task.name} asks no questions; sweep its words.")
    if not 1 <= shortest <= longest:
        raise InvalidConfig(f"lengths run from `shortest` to `longest`; got {shortest} to {longest}.")
    begun, taken = time.perf_counter(), {} if known is None else known

    def fails(length: int) -> bool:
        if length not in taken:
            taken[length] = _accuracy(reader, task, batch, length, seed, chunk, progress, longest)
        return round(batch * (1 - taken[length])) >= bar.errors(batch)

    good, bad = 0, None
    length = shortest
    while bad is None:
        if fails(length):
            bad = length
        else:
            good = length
            if length == longest:
                break
            length = min(2 * length, longest)
    while bad is not None and good and bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return Sweep(
        task=task.name, measure="questions", bar=bar.share, batch=batch, seed=seed, longest=longest, failing=bad,
        accuracies=dict(taken), seconds=time.perf_counter() - begun,
    )  # fmt: skip


def _accuracy(
    reader: Reader, task: Task, batch: int, length: int, seed: int, chunk: int, progress: Progress | None, longest: int
) -> float:  # fmt: skip
    """Of fresh words of one length, named by the seed and the length."""
    held: Held | None = None
    for part in task.for_sweeps().stream(batch, length, np.random.default_rng([seed, length]), chunk=chunk):
        said, held = reader(part.inputs, held)
        if progress is not None:
            progress(part.position + part.inputs.shape[1], longest)
    assert part.answers is not None, "the question comes with the last chunk"
    return question_accuracy(said[:, -1], part.answers)

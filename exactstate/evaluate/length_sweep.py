"""Length sweep: accuracy at growing lengths, and the failing length, the first at which it is below a threshold.

    B  words     L  length

`sweep_words` scores all lengths in one pass over one long stream. Every prefix of a word is a word, so the position
of the first error in every word gives the accuracy at every length: the share of words whose first error comes later.
The failing length is exact for these words; no bisection is needed. Words are read in chunks, so memory does not grow
with the length, and the sweep stops as soon as the answer is known. The paper draws fresh words for every length and
gets independent samples; here the lengths share their words, so accuracy never rises with the length.

`sweep_questions` scores the answer at the end of a word, which a prefix does not have: it draws fresh words at doubling
lengths until the answers fail, then bisects.

Both save their progress to a checkpoint file and resume from it.
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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exactstate._types import Ints
from exactstate.errors import InvalidConfig
from exactstate.evaluate.accuracy import AccuracyThreshold, answer_accuracy, first_errors
from exactstate.records import Row, write_atomically
from exactstate.tasks import Batch, Task

if TYPE_CHECKING:
    from exactstate.evaluate.predictors import PredictorState, SequencePredictor

MAX_LENGTH = 1 << 20
CHUNK = 1 << 12
FIRST_PIECE = 1 << 6
"""Symbols that are read before the first test for failure."""
SHORTEST = 64
"""The length at which a sweep of questions starts."""
SAVE_EVERY = 10.0
"""Seconds between two checkpoints."""

Progress = Callable[[int, int], None]
"""Called with the length read so far and the maximum length."""


@dataclass(frozen=True, kw_only=True)
class LengthSweep:
    """The result: accuracy by length, and the failing length."""

    task: str
    measure: str
    """`words`: every label of a word is correct; or `questions`: its answer is correct."""
    threshold: float
    """Accuracy below this is failure."""
    batch: int
    """Words per length."""
    seed: int
    """Of the words."""
    max_length: int
    failing_length: int | None
    """The smallest length tried at which accuracy is below the threshold; None when there is none."""
    accuracies: dict[int, float]
    """By length: every length tried, or the powers of two in a sweep of words."""
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether no failure was found."""
        return self.failing_length is None

    def row(self) -> Row:
        return {
            "task": self.task, "measure": self.measure, "threshold": self.threshold, "batch": self.batch,
            "words_seed": self.seed, "max_length": self.max_length, "failing_length": self.failing_length,
            "accuracies": {str(length): share for length, share in sorted(self.accuracies.items())},
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def sentence(self) -> str:
        """The result in one sentence."""
        correct = "all labels" if self.measure == "words" else "the answer"
        if self.failing_length is None:
            share = "all" if self.threshold == 1 else f"at least {self.threshold:.0%}"
            return (
                f"{self.task}: no failure up to length {self.max_length:,}; {correct} correct in {share} "
                f"of {self.batch} words"
            )
        share = "not all" if self.threshold == 1 else f"fewer than {self.threshold:.0%}"
        return (
            f"{self.task}: fails at length {self.failing_length:,}; {share} of {self.batch} words have {correct} "
            "correct"
        )


class SweepCheckpoint:
    """A file with the progress of one sweep; without a path it stores nothing.

    `config` identifies the sweep. A checkpoint of another sweep, or a damaged one, is ignored, and the sweep starts
    from the beginning.
    """

    def __init__(self, path: Path | None, config: list[Any]) -> None:
        self.path, self.config, self.last_saved = path, json.dumps(config), time.monotonic()

    def load(self) -> dict[str, NDArray[Any]] | None:
        """The arrays that were saved last."""
        if self.path is None or not self.path.exists():
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, zipfile.BadZipFile), np.load(self.path) as file:
            if str(file["config"]) == self.config:
                return {name: file[name] for name in file.files}
        return None

    def maybe_save(self, **arrays: Any) -> None:
        """Save the arrays if SAVE_EVERY seconds have passed since the last time."""
        if time.monotonic() - self.last_saved >= SAVE_EVERY:
            self.save(**arrays)

    def save(self, **arrays: Any) -> None:
        if self.path is None:
            return
        content = io.BytesIO()
        np.savez(content, config=self.config, **arrays)
        write_atomically(self.path, content.getvalue())
        self.last_saved = time.monotonic()

    def delete(self) -> None:
        """The sweep is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def sweep_words(
    predictor: SequencePredictor, task: Task, *, threshold: AccuracyThreshold, batch: int = 64,
    max_length: int = MAX_LENGTH, seed: int = 0, chunk: int = CHUNK, progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> LengthSweep:  # fmt: skip
    """Read words from the task's sweep distribution until accuracy falls below the threshold or `max_length` is read.

    `checkpoint` is a file in which progress is saved every few seconds; with the same file the sweep resumes.
    """
    if batch < 1 or max_length < 1:
        raise InvalidConfig(f"a sweep needs at least one word of length 1; got {batch} words of length {max_length}.")
    began = time.perf_counter()
    stream = task.for_length_sweep().stream(batch, max_length, np.random.default_rng(seed), chunk=chunk)
    store = SweepCheckpoint(checkpoint, ["words", task.name, threshold.share, batch, max_length, seed, chunk])
    read, errors, state, before = _load_words(store) or (0, np.full(batch, max_length, np.int64), None, 0.0)
    failing_errors = threshold.failing_errors(batch)
    for position, inputs, labels in _pieces(stream):
        if position < read:
            continue  # read before the checkpoint
        if np.sum(errors < position) >= failing_errors:
            break
        predictions, state = predictor(inputs, state)
        here, width = first_errors(predictions, labels), inputs.shape[1]
        errors = np.where((here < width) & (errors == max_length), position + here, errors)
        read = position + width
        if progress is not None:
            progress(read, max_length)
        store.maybe_save(
            read=read, first_errors=errors, seconds=before + time.perf_counter() - began,
            **{f"state_{number}": array for number, array in enumerate(state)},
        )  # fmt: skip
    store.delete()
    return LengthSweep(
        task=task.name, measure="words", threshold=threshold.share, batch=batch, seed=seed, max_length=max_length,
        failing_length=_failing_length(errors, failing_errors, read), accuracies=_accuracies(errors, read),
        seconds=before + time.perf_counter() - began,
    )  # fmt: skip


def _load_words(store: SweepCheckpoint) -> tuple[int, Ints, PredictorState, float] | None:
    """(length read, first errors, predictor state, seconds so far)."""
    saved = store.load()
    if saved is None:
        return None
    state = [saved[f"state_{number}"] for number in range(sum(name.startswith("state_") for name in saved))]
    return int(saved["read"]), saved["first_errors"], state, float(saved["seconds"])


def _pieces(stream: Iterator[Batch]) -> Iterator[tuple[int, Ints, Ints]]:
    """(position, symbols, labels) of every chunk; the first is cut at powers of two, for most failures are early."""
    for part in stream:
        width = part.inputs.shape[1]
        powers = (1 << power for power in range(FIRST_PIECE.bit_length() - 1, width.bit_length()))
        cuts = [0, *(power for power in powers if power < width)] if part.position == 0 else [0]
        for begin, end in pairwise([*cuts, width]):
            yield part.position + begin, part.inputs[:, begin:end], part.states[:, begin:end]


def _failing_length(errors: Ints, failing_errors: int, read: int) -> int | None:
    """The smallest length that contains so many first errors."""
    at = int(np.sort(errors)[failing_errors - 1])
    return at + 1 if at < read else None


def _accuracies(errors: Ints, read: int) -> dict[int, float]:
    """At every power of two that was read."""
    lengths = [1 << power for power in range(read.bit_length()) if 1 << power <= read]
    return {length: float(np.mean(errors >= length)) for length in lengths}


def sweep_questions(
    predictor: SequencePredictor, task: Task, *, threshold: AccuracyThreshold, batch: int = 64,
    max_length: int = MAX_LENGTH, seed: int = 0, chunk: int = CHUNK, shortest: int = SHORTEST,
    progress: Progress | None = None, checkpoint: Path | None = None,
) -> LengthSweep:  # fmt: skip
    """Score answers at lengths `shortest`, twice that, and so on up to `max_length`; then bisect the last interval.

    `checkpoint` is a file in which accuracies are saved; with the same file the sweep resumes.
    """
    if task.question is None:
        raise InvalidConfig(f"{task.name} asks no questions; sweep its words.")
    if not 1 <= shortest <= max_length:
        raise InvalidConfig(f"lengths run from `shortest` to `max_length`; got {shortest} to {max_length}.")
    began = time.perf_counter()
    store = SweepCheckpoint(checkpoint, ["questions", task.name, batch, seed])
    saved = store.load()
    accuracies: dict[int, float] = {}
    before = 0.0
    if saved is not None:
        accuracies = dict(zip(saved["lengths"].tolist(), saved["accuracies"].tolist(), strict=True))
        before = float(saved["seconds"])

    def fails(length: int) -> bool:
        if length not in accuracies:
            accuracies[length] = _accuracy(predictor, task, batch, length, seed, chunk, progress, max_length)
            store.save(
                lengths=[*accuracies], accuracies=[*accuracies.values()], seconds=before + time.perf_counter() - began
            )
        return round(batch * (1 - accuracies[length])) >= threshold.failing_errors(batch)

    good, bad = 0, None
    length = shortest
    while bad is None:
        if fails(length):
            bad = length
        else:
            good = length
            if length == max_length:
                break
            length = min(2 * length, max_length)
    while bad is not None and good and bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    store.delete()
    return LengthSweep(
        task=task.name, measure="questions", threshold=threshold.share, batch=batch, seed=seed, max_length=max_length,
        failing_length=bad, accuracies=accuracies, seconds=before + time.perf_counter() - began,
    )  # fmt: skip


def _accuracy(
    predictor: SequencePredictor, task: Task, batch: int, length: int, seed: int, chunk: int,
    progress: Progress | None, max_length: int,
) -> float:  # fmt: skip
    """Of fresh words of one length; seed and length determine the words."""
    state: PredictorState | None = None
    for part in task.for_length_sweep().stream(batch, length, np.random.default_rng([seed, length]), chunk=chunk):
        predictions, state = predictor(part.inputs, state)
        if progress is not None:
            progress(part.position + part.inputs.shape[1], max_length)
    assert part.answers is not None, "the question comes with the last chunk"
    return answer_accuracy(predictions[:, -1], part.answers)

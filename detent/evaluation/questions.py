"""Sweep the length of words that end with a question: double until the answers fail, then bisect.

The question stands at the end, so every length has words of its own. Accuracy may rise again with the length; the
failing length is the smallest of the lengths tried at which it is below the bar.
"""

from __future__ import annotations

import time

import numpy as np

from detent.errors import InvalidConfig
from detent.evaluation.accuracy import question_accuracy
from detent.evaluation.bar import Bar
from detent.evaluation.reader import Held, Reader
from detent.evaluation.score import Sweep
from detent.evaluation.words import CHUNK, LONGEST, Progress
from detent.tasks import Task

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

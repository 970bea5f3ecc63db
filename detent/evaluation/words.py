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

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from detent.errors import InvalidConfig
from detent.evaluation.accuracy import Ints, first_errors
from detent.evaluation.bar import Bar
from detent.evaluation.putting_down import PutDown
from detent.evaluation.reader import Reader
from detent.evaluation.score import Sweep
from detent.tasks import Batch, Task

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

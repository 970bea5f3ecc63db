"""Lessons for a stack: every different thing that stories show of what its layers read, do and say.

    R  rows     r  heads of a layer     d  indices of a head

With the index of every head known at every symbol, nothing depends on time, and there are few different rows, however
many stories they came from: windows of two symbols for the first layer, windows of two (symbol, first indices) for the
second, and what is to be said at a (symbol, first indices, second indices).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from detent.automata.running import Bools, Ints
from detent.errors import InvalidConfig
from detent.tasks import Batch, Task
from detent.training.counting import NONE, completed, different
from detent.training.staging import Stages

LONGEST = 80
"""Tokens of a story: in short ones everything is frequent, and rows do not tell how long theirs was."""
FURTHER = 16
"""Batches of words without labels, ..."""
SILENT = 4096
"""... and how many of their positions at which nothing is asked are read out, about."""


@dataclass(frozen=True, eq=False)
class Moves:
    """What one head does."""

    table: Ints
    """R d: where every index goes in every window; where no story says so, see `completed`."""
    seen: Bools
    """R d: whether a story says so."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is taught."""

    windows: tuple[Ints, Ints]
    """R 2 for both layers: symbols, or numbers of inputs; NONE before the word began."""
    moves: tuple[tuple[Moves, ...], tuple[Moves, ...]]
    """For every head of both layers."""
    inputs: Ints
    """R (1 + r): a symbol, and the indices that the first layer has moved to."""
    reads: Ints
    """R (1 + r): the number of an input, and the indices that the second layer has moved to ..."""
    parts: Ints
    """R k: ... the value of every register there ..."""
    answers: Ints
    """R: ... and the answer, NONE where nothing is asked."""


def stories(speaker: Task, generator: np.random.Generator, *, batch: int = 256) -> Iterator[Batch]:
    """Batches of short stories without end, each batch of one length."""
    lengths = [length for length in range(2, LONGEST + 1) if _told(speaker, length)]
    while True:
        yield speaker.sample(batch, int(generator.choice(lengths)), generator)


def _told(speaker: Task, length: int) -> bool:
    try:
        speaker.law.refuse_length(length)
    except InvalidConfig:
        return False
    return True


def learn_from(
    told: Iterator[Batch], stages: Stages, further: Iterator[Ints] | None = None, *, patience: int = 8
) -> Lessons:
    """Read stories until nothing new came for long: `patience` batches, or half as many as it took so far.

    `further` are batches of words without labels, of other kinds than the stories: their registers follow from the
    rules that were counted. `FURTHER` batches of them are read.
    """
    seen = different(labelled(next(told), stages))
    batches = last_new = 1
    while batches - last_new < max(patience, last_new // 2):
        met = different(np.concatenate([seen, labelled(next(told), stages)]))
        batches += 1
        last_new = batches if len(met) > len(seen) else last_new
        seen = met
    more = [unlabelled(words, stages) for words in islice(further or (), FURTHER)]
    return lessons_of(seen, different(np.concatenate([seen, *more])), stages)


def unlabelled(words: Ints, stages: Stages) -> Ints:
    """The positions of words whose registers are worked out by the rules."""
    values = stages.values(words)
    return positions(words, values, stages.answers(words, values), stages)


def labelled(batch: Batch, stages: Stages) -> Ints:
    """The positions of stories with their labels."""
    states = np.concatenate([batch.before[:, None], batch.states], axis=1)
    answers = np.full(batch.inputs.shape, NONE)
    if batch.answers is not None:
        answers[:, -1] = batch.answers
    return positions(batch.inputs, stages.parts[states], answers, stages)


def positions(inputs: Ints, values: Ints, answers: Ints, stages: Stages) -> Ints:
    """One row for every symbol of every word.

    Columns: symbol, lower indices, upper indices (before it); the same (after it); registers; answer or NONE.
    """
    lower, upper = stages.heads_along(inputs, values)
    B, L = inputs.shape
    symbols = np.concatenate([np.full((B, 1), NONE), inputs.astype(np.int64)], axis=1)
    whole = np.concatenate([symbols[..., None], lower, upper], axis=2)
    said = np.concatenate([values[:, 1:], answers[..., None]], axis=2)
    return np.concatenate([whole[:, :-1], whole[:, 1:], said], axis=2).reshape(B * L, -1).astype(np.int16)


def lessons_of(labelled: Ints, rows: Ints, stages: Stages) -> Lessons:
    """The lessons in different rows of `positions`; of reads those with labels, those that ask, and some others."""
    lower, upper = (len(layer) for layer in stages.layers)
    wide = 1 + lower + upper
    rows = rows.astype(np.int64)
    before, after = rows[:, :wide], rows[:, wide : 2 * wide]
    symbols, symbol_window = np.unique(np.stack([before[:, 0], after[:, 0]], axis=1), axis=0, return_inverse=True)
    inputs, number = np.unique(after[:, : 1 + lower], axis=0, return_inverse=True)
    # what stood before a symbol is itself an input, but for the beginning of a word
    last = _numbers(before[:, : 1 + lower], inputs)
    pairs, input_window = np.unique(np.stack([last, number.ravel()], axis=1), axis=0, return_inverse=True)
    silent = rows[rows[:, -1] == NONE]
    kept = np.concatenate([labelled, rows[rows[:, -1] != NONE], silent[:: max(1, len(silent) // SILENT)]])[:, wide:]
    reads = np.unique(np.column_stack([_numbers(kept[:, : 1 + lower], inputs), kept[:, 1 + lower :]]), axis=0)
    moves = []
    for layer, (count, begin, window, of) in enumerate(
        ((lower, 1, symbol_window, symbols), (upper, 1 + lower, input_window, pairs))
    ):
        moves.append(
            tuple(
                _moves(window.ravel(), before[:, begin + h], after[:, begin + h], len(of), stages.heads[layer][h])
                for h in range(count)
            )
        )
    return Lessons(
        windows=(symbols, pairs), moves=(moves[0], moves[1]), inputs=inputs, reads=reads[:, : 1 + upper],
        parts=reads[:, 1 + upper : -1], answers=reads[:, -1],
    )  # fmt: skip


def _moves(window: Ints, before: Ints, after: Ints, windows: int, d: int) -> Moves:
    table, seen = np.zeros((windows, d), np.int64), np.zeros((windows, d), bool)
    table[window, before] = after
    seen[window, before] = True
    assert np.array_equal(table[window, before], after), "a head would have to go two ways"
    return Moves(completed(table, seen), seen)


def _numbers(rows: Ints, among: Ints) -> Ints:
    """The number of every row among others; NONE for those of a word that had not begun."""
    found = {tuple(row): i for i, row in enumerate(among.tolist())}
    different, which = np.unique(rows, axis=0, return_inverse=True)
    return np.array([found.get(tuple(row), NONE) for row in different.tolist()])[which.ravel()]

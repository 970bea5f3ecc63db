"""Lessons for a stack: every different thing that stories show of what its layers read, do and say.

    R  rows     r  heads of a layer     d  indices of a head

With the index of every head known at every symbol, nothing depends on time, and there are few different rows, however
many stories they came from: windows of two symbols for the first layer, windows of two (symbol, first indices) for the
second, and what is to be said at a (symbol, first indices, second indices).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from detent.automata.running import Bools, Ints
from detent.errors import InvalidConfig
from detent.tasks import Batch, Task
from detent.training.staging import Stages

NONE = -1
LONGEST = 80
"""Tokens of a story: in short ones everything is frequent, and rows do not tell how long theirs was."""


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
    labels: Ints
    """R: ... and what is to be said there."""
    answers: Ints
    """R: the answer, NONE where nothing is asked."""


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


def learn_from(told: Iterator[Batch], stages: Stages, *, patience: int = 8) -> Lessons:
    """Read stories until nothing new came for long: `patience` batches, or half as many as it took so far."""
    seen = _different(positions(next(told), stages))
    batches = last_new = 1
    while batches - last_new < max(patience, last_new // 2):
        met = _different(np.concatenate([seen, positions(next(told), stages)]))
        batches += 1
        last_new = batches if len(met) > len(seen) else last_new
        seen = met
    return lessons_of(seen, stages)


def positions(batch: Batch, stages: Stages) -> Ints:
    """One row for every symbol of every word: the symbol before, all indices before and after, symbol, label, answer.

    Columns: symbol, lower indices, upper indices (before); the same (after); label; answer or NONE.
    """
    lower, upper = stages.follow(batch)
    B, L = batch.inputs.shape
    symbols = np.concatenate([np.full((B, 1), NONE), batch.inputs.astype(np.int64)], axis=1)
    whole = np.concatenate([symbols[..., None], lower, upper], axis=2)
    answers = np.full((B, L), NONE)
    if batch.answers is not None:
        answers[:, -1] = batch.answers
    said = np.stack([batch.states.astype(np.int64), answers], axis=2)
    return np.concatenate([whole[:, :-1], whole[:, 1:], said], axis=2).reshape(B * L, -1).astype(np.int16)


def lessons_of(rows: Ints, stages: Stages) -> Lessons:
    """The lessons in different rows of `positions`."""
    lower, upper = (len(layer) for layer in stages.layers)
    wide = 1 + lower + upper
    before, after, said = rows[:, :wide].astype(np.int64), rows[:, wide : 2 * wide], rows[:, 2 * wide :]
    after, said = after.astype(np.int64), said.astype(np.int64)
    symbols, symbol_window = np.unique(np.stack([before[:, 0], after[:, 0]], axis=1), axis=0, return_inverse=True)
    inputs, number = np.unique(after[:, : 1 + lower], axis=0, return_inverse=True)
    # what stood before a symbol is itself an input, but for the beginning of a word
    last = _numbers(before[:, : 1 + lower], inputs)
    pairs, input_window = np.unique(np.stack([last, number.ravel()], axis=1), axis=0, return_inverse=True)
    reads, first = np.unique(
        np.concatenate([number.reshape(-1, 1), after[:, 1 + lower :], said], axis=1), axis=0, return_index=True
    )
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
    assert len(first) == len(reads)
    return Lessons(
        windows=(symbols, pairs), moves=(moves[0], moves[1]), inputs=inputs, reads=reads[:, :-2],
        labels=reads[:, -2], answers=reads[:, -1],
    )  # fmt: skip


def completed(table: Ints, seen: Bools) -> Ints:
    """Tables with the moves that no story shows: with all that were seen to one index, or else none at all."""
    d = table.shape[1]
    to = np.where(seen, table, d).min(axis=1, keepdims=True)
    resets = (np.where(seen, table, to) == to).all(axis=1, keepdims=True) & (to < d)
    resets &= ~(seen & (table == np.arange(d))).any(axis=1, keepdims=True)
    return np.where(seen, table, np.where(resets, to, np.arange(d)))


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


def _different(rows: Ints) -> Ints:
    """The different rows, in the order of their bytes."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return np.unique(packed).view(rows.dtype).reshape(-1, rows.shape[1])

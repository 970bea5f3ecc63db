"""Grammars: which symbols may follow, as a machine that reads the same symbols as the task.

A grammar is a Moore machine that says 'complete' after a word that may stand alone, 'begun' after the beginning of one,
and 'refused' once no continuation can mend it. Whoever explores the words of a task walks its machine and its grammar
side by side and never enters a refused state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from detent._types import Ints
from detent.automata import Moore

VERDICTS = ("refused", "begun", "complete")
REFUSED, BEGUN, COMPLETE = range(3)

Place = TypeVar("Place", bound=Hashable)


def anything(symbols: Sequence[str]) -> Moore:
    """The grammar of all words."""
    tables = np.zeros((len(symbols), 1), np.uint8)
    return Moore(
        symbols=tuple(symbols), tables=tables, states=("any word",), outputs=VERDICTS, readout=np.array([COMPLETE])
    )


def spell(
    symbols: Sequence[str],
    *,
    start: Place,
    following: Callable[[Place], Mapping[int, Place]],
    complete: Callable[[Place], bool] = lambda place: True,
) -> Moore:
    """The grammar whose places are found from `start` by `following`, which maps the symbols allowed there to places.

    Places are numbered breadth-first and named after the first word that leads there; the last state is the refusal.
    """
    number: dict[Place, int] = {start: 0}
    names, moves = ["start"], []
    for place in (queue := [start]):
        allowed = following(place)
        moves.append(allowed)
        for symbol, reached in allowed.items():
            if reached not in number:
                number[reached] = len(queue)
                queue.append(reached)
                before = names[number[place]]
                names.append(symbols[symbol] if place == start else f"{before} {symbols[symbol]}")
    refusal = len(queue)
    tables = np.full((len(symbols), refusal + 1), refusal)
    for place, allowed in zip(queue, moves, strict=True):
        for symbol, reached in allowed.items():
            tables[symbol, number[place]] = number[reached]
    verdicts = [COMPLETE if complete(place) else BEGUN for place in queue]
    return Moore(
        symbols=tuple(symbols), tables=tables, states=(*names, "refused"),
        outputs=VERDICTS, readout=np.array([*verdicts, REFUSED]),
    )  # fmt: skip


def permitted(grammar: Moore) -> Ints:
    """Whether a symbol may follow in a state of the grammar: n A, of ones and zeros."""
    return (grammar.readout[grammar.tables] != REFUSED).T.astype(np.uint8)


def wander(grammar: Moore, batch: int, length: int, generator: np.random.Generator) -> Ints:
    """B L: beginnings of words, every symbol drawn uniformly among those that may follow; from places that go on."""
    may = permitted(grammar).astype(bool)
    words, place = np.empty((batch, length), np.int64), np.full(batch, grammar.start)
    for t in range(length):
        drawn = np.where(may[place], generator.random((batch, grammar.n_symbols)), -1.0)
        words[:, t] = drawn.argmax(axis=1)
        place = grammar.tables[words[:, t], place]
    return words

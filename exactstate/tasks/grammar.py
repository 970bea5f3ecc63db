"""Grammars: which symbols may follow, as a machine that reads the same symbols as the task.

A grammar is a Moore machine. Its output is 'complete' after a word of the language, 'begun' after a proper prefix of
one, and 'refused' after anything else. To explore the words of a task, walk its machine and its grammar in parallel and
never enter a refused state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Moore

VERDICTS = ("refused", "begun", "complete")
REFUSED, BEGUN, COMPLETE = range(3)

State = TypeVar("State", bound=Hashable)


def all_words(symbols: Sequence[str]) -> Moore:
    """The grammar that accepts every word."""
    tables = np.zeros((len(symbols), 1), np.uint8)
    return Moore(
        symbols=tuple(symbols), tables=tables, states=("any word",), outputs=VERDICTS, readout=np.array([COMPLETE])
    )


def build_grammar(
    symbols: Sequence[str],
    *,
    start: State,
    following: Callable[[State], Mapping[int, State]],
    complete: Callable[[State], bool] = lambda state: True,
) -> Moore:
    """The grammar that `following` generates from `start`: it maps a state to its allowed symbols and their successors.

    States are numbered breadth-first and named after the first word that reaches them; the last one is 'refused'.
    """
    number: dict[State, int] = {start: 0}
    names, moves = ["start"], []
    for state in (queue := [start]):
        allowed = following(state)
        moves.append(allowed)
        for symbol, reached in allowed.items():
            if reached not in number:
                number[reached] = len(queue)
                queue.append(reached)
                prefix = names[number[state]]
                names.append(symbols[symbol] if state == start else f"{prefix} {symbols[symbol]}")
    refused = len(queue)
    tables = np.full((len(symbols), refused + 1), refused)
    for state, allowed in zip(queue, moves, strict=True):
        for symbol, reached in allowed.items():
            tables[symbol, number[state]] = number[reached]
    verdicts = [COMPLETE if complete(state) else BEGUN for state in queue]
    return Moore(
        symbols=tuple(symbols), tables=tables, states=(*names, "refused"),
        outputs=VERDICTS, readout=np.array([*verdicts, REFUSED]),
    )  # fmt: skip


def allowed_symbols(grammar: Moore) -> Ints:
    """n A: 1 where a symbol may follow in a state of the grammar, else 0."""
    return (grammar.readout[grammar.tables] != REFUSED).T.astype(np.uint8)


def random_prefixes(grammar: Moore, batch: int, length: int, generator: np.random.Generator) -> Ints:
    """B L: prefixes of words, each symbol uniform among those that may follow. Every state must have a successor."""
    allowed = allowed_symbols(grammar).astype(bool)
    words, state = np.empty((batch, length), np.int64), np.full(batch, grammar.start)
    for t in range(length):
        drawn = np.where(allowed[state], generator.random((batch, grammar.n_symbols)), -1.0)
        words[:, t] = drawn.argmax(axis=1)
        state = grammar.tables[words[:, t], state]
    return words

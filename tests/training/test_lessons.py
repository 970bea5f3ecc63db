"""The lessons of a stack: every row that stories show, once, and what is taught where they are silent."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from detent.tasks import task
from detent.training.lessons import NONE, completed, learn_from, stories
from detent.training.staging import stage


def lessons(people: int, seed: int = 1):
    speaker = task(f"TSO{people}")
    told = stories(speaker, np.random.default_rng(seed), batch=128)
    stages = stage(speaker, list(islice(told, 4)))
    return speaker, stages, learn_from(told, stages)


def pairs_of(grammar) -> int:
    """Different pairs of neighbours in words of a grammar, and first symbols; by walking it."""
    refused = grammar.outputs.index("refused")
    follows = {(None, a) for a in range(grammar.n_symbols) if grammar.readout[grammar.tables[a, 0]] != refused}
    for place in range(grammar.n_states):
        for a in range(grammar.n_symbols):
            then = grammar.tables[a, place]
            if grammar.readout[place] == refused or grammar.readout[then] == refused:
                continue
            for b in range(grammar.n_symbols):
                if grammar.readout[grammar.tables[b, then]] != refused:
                    follows.add((a, b))
    return len(follows)


@pytest.mark.parametrize("people", [2, 3])
def test_nothing_of_the_grammar_is_missed(people: int) -> None:
    speaker, _, found = lessons(people)
    assert len(found.windows[0]) == pairs_of(speaker.grammar)
    # every state but the start, which is never said; an answer for every item and every way to hold all
    assert set(found.labels.tolist()) == set(range(1, speaker.machine.n_states))
    assert (found.answers != NONE).sum() == {2: 2 * 2, 3: 3 * 6}[people]


def test_rows_say_what_stories_say() -> None:
    """Follow fresh stories through the lessons alone."""
    speaker, stages, found = lessons(3)
    batch = next(stories(speaker, np.random.default_rng(99), batch=20))
    window_of = {tuple(row): i for i, row in enumerate(found.windows[0].tolist())}
    pair_of = {tuple(row): i for i, row in enumerate(found.windows[1].tolist())}
    input_of = {tuple(row): i for i, row in enumerate(found.inputs.tolist())}
    read_of = {tuple(row): i for i, row in enumerate(found.reads.tolist())}
    for word, states in zip(batch.inputs.tolist(), batch.states.tolist(), strict=True):
        lower, upper = (list(start) for start in stages.starts)
        symbol, last = NONE, NONE
        for token, state in zip(word, states, strict=True):
            window = window_of[symbol, token]
            lower = [int(head.table[window, k]) for head, k in zip(found.moves[0], lower, strict=True)]
            now = input_of[(token, *lower)]
            pair = pair_of[last, now]
            assert all(head.seen[pair, k] for head, k in zip(found.moves[1], upper, strict=True))
            upper = [int(head.table[pair, k]) for head, k in zip(found.moves[1], upper, strict=True)]
            assert found.labels[read_of[(now, *upper)]] == state
            symbol, last = token, now


def test_moves_that_no_story_shows() -> None:
    table = np.array([[1, 1, 0], [2, 2, 2], [0, 2, 1], [0, 1, 1]])
    seen = np.array([[True, True, False], [False, False, False], [True, True, True], [False, True, False]])
    assert completed(table, seen).tolist() == [
        [1, 1, 2],  # one of those seen stays where it is: nothing else moves
        [0, 1, 2],  # nothing seen, nothing moved
        [0, 2, 1],
        [0, 1, 2],
    ]
    away = np.array([[1, 0, 0], [2, 2, 0]])
    assert completed(away, np.array([[True, False, False], [True, True, False]])).tolist() == [[1, 1, 1], [2, 2, 2]]

"""The lessons of a stack: every row that stories show, once, and what is taught where they are silent."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from detent._types import MISSING
from detent.tasks import task as get_task
from detent.tasks.free_order_stories import free_order_grammar
from detent.tasks.grammar import random_prefixes
from detent.train.stack_supervision import learn_from, stage, stories


def lessons(people: int, seed: int = 1):
    task = get_task(f"TSO{people}")
    told = stories(task, np.random.default_rng(seed), batch=128)
    stages = stage(task, list(islice(told, 4)))
    return task, stages, learn_from(told, stages)


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
    task, _, found = lessons(people)
    assert len(found.windows[0]) == pairs_of(task.grammar)
    # every state but the start, which is never said; an answer for every item and every way to hold all
    states = np.stack([register.of_state for register in task.registers], axis=1)
    assert {tuple(row) for row in found.parts.tolist()} == {tuple(row) for row in states[1:].tolist()}
    assert (found.answers != MISSING).sum() == {2: 2 * 2, 3: 3 * 6}[people]


def test_rows_say_what_stories_say() -> None:
    """Follow fresh stories through the lessons alone."""
    task, stages, found = lessons(3)
    batch = next(stories(task, np.random.default_rng(99), batch=20))
    window_of = {tuple(row): i for i, row in enumerate(found.windows[0].tolist())}
    pair_of = {tuple(row): i for i, row in enumerate(found.windows[1].tolist())}
    input_of = {tuple(row): i for i, row in enumerate(found.inputs.tolist())}
    read_of = {tuple(row): i for i, row in enumerate(found.reads.tolist())}
    for word, states in zip(batch.inputs.tolist(), batch.states.tolist(), strict=True):
        lower, upper = (list(start) for start in stages.starts)
        symbol, last = MISSING, MISSING
        for token, state in zip(word, states, strict=True):
            window = window_of[symbol, token]
            lower = [int(head.table[window, k]) for head, k in zip(found.moves[0], lower, strict=True)]
            now = input_of[(token, *lower)]
            pair = pair_of[last, now]
            assert all(head.seen[pair, k] for head, k in zip(found.moves[1], upper, strict=True))
            upper = [int(head.table[pair, k]) for head, k in zip(found.moves[1], upper, strict=True)]
            assert np.array_equal(found.parts[read_of[(now, *upper)]], stages.parts[state])
            symbol, last = token, now


def test_words_without_labels_follow_the_rules() -> None:
    """A telling that no story is: two swaps before everything is given, a question on the way."""
    task, stages, _ = lessons(3)
    text = "bob has the coin . bob swaps with alice . who has the coin ? charlie has the ring ."
    words = np.array([[task.machine.symbols.index(token) for token in text.split()]])
    values = stages.values(words)
    assert values[0, -1].tolist() == [0, 3, 0, 1]  # idle; the ring charlie's, the key nobody's, the coin alice's
    assert values[0, 6].tolist() == [2, 0, 0, 2]
    answers = stages.answers(words, values)
    assert answers[0].tolist() == [MISSING] * 14 + [0] + [MISSING] * 5


def test_further_words_add_rows() -> None:
    task = get_task("TSO2")
    told = stories(task, np.random.default_rng(1), batch=64)
    stages = stage(task, list(islice(told, 4)))
    alone = learn_from(told, stages)
    more = learn_from(told, stages, iter([random_prefixes(free_order_grammar(2), 64, 60, np.random.default_rng(0))]))
    assert len(more.windows[0]) > len(alone.windows[0])
    assert (more.answers != MISSING).sum() > (alone.answers != MISSING).sum()
    rows = {(*read, *parts) for read, parts in zip(alone.reads[:, 1:].tolist(), alone.parts.tolist(), strict=True)}
    assert rows <= {
        (*read, *parts) for read, parts in zip(more.reads[:, 1:].tolist(), more.parts.tolist(), strict=True)
    }

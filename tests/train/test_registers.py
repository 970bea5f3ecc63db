"""Which register goes into which layer, and the targets that stories give: counted, completed where none is seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from exactstate._types import MISSING
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train.codes import StateCodes
from exactstate.train.realize import Targets
from exactstate.train.registers import (
    assign_registers,
    codes_of_registers,
    sample_stories,
    transition_rule,
)


def test_transition_rule_has_what_was_counted() -> None:
    """Two values; symbol 0 swaps them below 1 and leaves them alone below 0, symbol 1 was seen once."""
    below, symbols, before, after = np.array([[1, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0]]).T
    found = transition_rule(below, symbols, before, after, 2, 2)
    assert found.tolist() == [[[0, 1], [0, 0]], [[1, 0], [0, 1]]]


def staged(name: str, batches: int = 4):
    task = get_task(name)
    return task, assign_registers(task, list(islice(sample_stories(task, np.random.default_rng(3)), batches)))


@pytest.mark.parametrize("people", [2, 3, 4, 5])
def test_assign_registers_puts_the_first_name_below_and_the_holders_above(people: int) -> None:
    task, layout = staged(f"TSO{people}")
    below, above = layout.layers
    assert below[:3] == (("now", 0), ("late", 0), ("query", 0))
    assert len(below) == people + 1
    assert above == tuple(("now", 1 + item) for item in range(people))
    assert layout.heads == task.layers
    assert layout.starts == ((0,) * (people + 1), (0,) * people)


def test_heads_along_a_story_by_hand() -> None:
    """By hand: alice has the key . . bob has the ring ... who has the key ?"""
    task, layout = staged("TSO2")
    text = "alice has the key . . bob has the ring . alice swaps with bob . who has the key ?"
    word = np.array([[task.machine.symbols.index(token) for token in text.split()]])
    states = task.machine.trajectory(word)
    values = layout.parts[np.concatenate([[[0]], states], axis=1)]
    assert np.array_equal(values, layout.values(word))
    lower, upper = np.split(layout.paths(word, values), [len(layout.layers[0])], axis=2)
    names = "-aaa---bbb--aaa-------"
    now = ["-ab".index(letter) for letter in names]
    assert lower[0, :, 0].tolist() == now
    assert lower[0, :, 1].tolist() == [0, *now[:-1]]  # one symbol late
    assert lower[0, :, 2].tolist() == [0] * 21 + [2]  # asked for the second item, at the question mark alone
    assert upper[0, :, 0].tolist() == [0] * 10 + [2] * 5 + [1] * 7  # the ring: bob's, then alice's
    assert upper[0, :, 1].tolist() == [0] * 4 + [1] * 11 + [2] * 7


def test_assign_registers_refuses_what_two_layers_cannot_hold() -> None:
    task = get_task("TSO3")
    batches = list(islice(sample_stories(task, np.random.default_rng(3)), 4))
    scrambled = replace(task.registers[1], of_state=np.random.default_rng(0).integers(0, 4, task.machine.n_states))
    odd = replace(task, registers=(task.registers[0], scrambled, *task.registers[2:]))
    with pytest.raises(InvalidInput, match="the holder of the ring depends on more than the symbol"):
        assign_registers(odd, batches)
    with pytest.raises(InvalidConfig, match="TSO3 takes 3 registers in a layer of 2 heads"):
        assign_registers(replace(task, layers=((4, 4, 4, 4), (4, 4))), batches)
    with pytest.raises(InvalidConfig, match="S3 names no registers"):
        assign_registers(get_task("S3"), [])


def targets_of(people: int, seed: int = 1, free_order: bool = False) -> tuple[Task, StateCodes, Targets]:
    task = get_task(f"TSO{people}")
    codes = codes_of_registers(task, np.random.default_rng(seed), free_order=free_order)
    return task, codes, Targets(codes, task.machine.n_symbols)


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
def test_targets_misses_nothing_of_the_grammar(people: int) -> None:
    task, _, found = targets_of(people)
    assert len(found.windows[0]) == pairs_of(task.grammar)
    # every state but the start, which is never said; an answer for every item and every way to hold all
    states = np.stack([register.of_state for register in task.registers], axis=1)
    assert {tuple(row) for row in found.parts.tolist()} == {tuple(row) for row in states[1:].tolist()}
    assert (found.answers != MISSING).sum() == {2: 2 * 2, 3: 3 * 6}[people]


def test_targets_reproduce_fresh_stories() -> None:
    """Follow fresh stories through the targets alone."""
    task, codes, found = targets_of(3)
    parts_of = np.stack([register.of_state for register in task.registers], axis=1)
    batch = next(sample_stories(task, np.random.default_rng(99), batch=20))
    window_of = {tuple(row): i for i, row in enumerate(found.windows[0].tolist())}
    pair_of = {tuple(row): i for i, row in enumerate(found.windows[1].tolist())}
    input_of = {tuple(row): i for i, row in enumerate(found.inputs[0].tolist())}
    read_of = {tuple(row): i for i, row in enumerate(found.inputs[1].tolist())}
    for word, states in zip(batch.inputs.tolist(), batch.states.tolist(), strict=True):
        lower, upper = (list(start) for start in codes.starts)
        symbol, last = MISSING, MISSING
        for token, state in zip(word, states, strict=True):
            window = window_of[symbol, token]
            lower = [int(head.table[window, k]) for head, k in zip(found.moves[0], lower, strict=True)]
            now = input_of[(token, *lower)]
            pair = pair_of[last, now]
            assert all(head.shown[pair, k] for head, k in zip(found.moves[1], upper, strict=True))
            upper = [int(head.table[pair, k]) for head, k in zip(found.moves[1], upper, strict=True)]
            read = read_of[(now, *upper)]
            assert found.labels[read] == state
            assert np.array_equal(found.parts[read], parts_of[state])
            symbol, last = token, now


def test_register_layout_values_of_words_without_labels() -> None:
    """A telling that no story is: two swaps before everything is given, a question on the way."""
    task, layout = staged("TSO3", 16)
    text = "bob has the coin . bob swaps with alice . who has the coin ? charlie has the ring ."
    words = np.array([[task.machine.symbols.index(token) for token in text.split()]])
    values = layout.values(words)
    assert values[0, -1].tolist() == [0, 3, 0, 1]  # idle; the ring charlie's, the key nobody's, the coin alice's
    assert values[0, 6].tolist() == [2, 0, 0, 2]
    answers = layout.answers(words, values)
    assert answers[0].tolist() == [MISSING] * 14 + [0] + [MISSING] * 5


def test_targets_of_text_in_any_order_add_rows() -> None:
    _, _, alone = targets_of(2)
    _, _, more = targets_of(2, free_order=True)
    assert len(more.windows[0]) > len(alone.windows[0])
    assert (more.answers != MISSING).sum() > (alone.answers != MISSING).sum()
    assert (more.labels == MISSING).any()
    rows = [{(*read, *parts) for read, parts in zip(found.inputs[1][:, 1:].tolist(), found.parts.tolist(), strict=True)}
            for found in (alone, more)]  # fmt: skip
    assert rows[0] <= rows[1]

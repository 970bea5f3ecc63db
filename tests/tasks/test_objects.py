"""Tracking Shuffled Objects against a slow reader that follows the paper's sentences word by word."""

from __future__ import annotations

import numpy as np
import pytest

from detent.automata import Moore
from detent.tasks import permitted, tracking_objects

PEOPLE = ["alice", "bob", "charlie", "dana", "eve"]
ITEMS = ["ring", "key", "coin", "stamp", "card"]


def read(story: list[str], people: int) -> list[tuple[str, tuple[str, ...]]]:
    """(p, g) after every token."""
    person, holder = "idle", dict.fromkeys(ITEMS[:people], "-")
    history = []
    for token in story:
        if token in PEOPLE:
            if person == "idle":
                person = token
            else:
                for item, who in holder.items():
                    holder[item] = {person: token, token: person}.get(who, who)
                person = "idle"
        elif token in ITEMS and person != "idle":
            holder[token] = person
            person = "idle"
        history.append((person, tuple(holder.values())))
    return history


def named(state: tuple[str, tuple[str, ...]]) -> str:
    person, holders = state
    return f"{person} | " + ", ".join(f"{item}: {who}" for item, who in zip(ITEMS, holders, strict=False))


@pytest.mark.parametrize("people", [2, 3, 4, 5])
@pytest.mark.parametrize("length", [30, 32, 128, 129, 256])
def test_states_and_answers_are_those_of_the_slow_reader(people: int, length: int) -> None:
    task = tracking_objects(people)
    batch = task.sample(20, length, np.random.default_rng(length))
    for row, states in enumerate(batch.states):
        story = [task.machine.symbols[token] for token in batch.inputs[row]]
        history = read(story, people)
        assert [task.machine.states[q] for q in states] == [named(state) for state in history]
        assert batch.asked is not None
        assert batch.answers is not None
        assert ITEMS[batch.asked[row]] == story[-2]
        assert PEOPLE[batch.answers[row]] == history[-1][1][ITEMS.index(story[-2])]


@pytest.mark.parametrize(("people", "states"), [(3, 44), (4, 202), (5, 1132)])
def test_the_paper_counts_the_states(people: int, states: int) -> None:
    task = tracking_objects(people)
    assert task.machine.n_states == states
    assert task.machine.n_symbols == 2 * people + 7
    assert task.machine.states[task.machine.start] == named(("idle", ("-",) * people))


def reached_on_stories(machine: Moore, grammar: Moore) -> set[int]:
    """States of the machine on beginnings of stories, walking machine and grammar side by side."""
    allowed = permitted(grammar)
    seen = {(machine.start, grammar.start)}
    queue = list(seen)
    for q, place in queue:
        for token in np.flatnonzero(allowed[place]):
            then = (int(machine.tables[token, q]), int(grammar.tables[token, place]))
            if then not in seen:
                seen.add(then)
                queue.append(then)
    return {q for q, _ in seen}


@pytest.mark.parametrize("people", [2, 3, 4, 5])
def test_the_grammar_reaches_every_state_and_every_state_obeys_it(people: int) -> None:
    task = tracking_objects(people)
    assert isinstance(task.machine, Moore)
    assert reached_on_stories(task.machine, task.grammar) == set(range(task.machine.n_states))


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("bob", "idle | ring: -, key: -, coin: -"),  # the preamble begins with alice
        ("alice bob", "idle | ring: -, key: -, coin: -"),  # a swap of nothing
        ("alice has the key . bob has the key", "bob | ring: -, key: alice, coin: -"),  # it is alice's
        ("alice has the key . who has the ring ?", "idle | ring: -, key: alice, coin: -"),
    ],
)
def test_off_the_grammar_a_token_obeys_the_rules_or_changes_nothing(words: str, state: str) -> None:
    machine = tracking_objects(3).machine
    assert machine.states[machine.run(words.split())] == state

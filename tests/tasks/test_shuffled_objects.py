"""Tracking Shuffled Objects against a slow reader of English that knows nothing of the machine."""

from __future__ import annotations

import re
from itertools import combinations, permutations
from math import factorial
from typing import Any

import numpy as np
import pytest

from exactstate.automata import Moore
from exactstate.errors import InvalidConfig
from exactstate.tasks import StorySampler, allowed_symbols, shuffled_objects, tracking_shuffled_objects

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
def test_sample_states_and_answers_are_those_of_the_slow_reader(people: int, length: int) -> None:
    task = tracking_shuffled_objects(people)
    batch = task.sample(20, length, np.random.default_rng(length))
    for row, states in enumerate(batch.states):
        story = [task.machine.symbols[token] for token in batch.inputs[row]]
        history = read(story, people)
        assert [task.machine.states[q] for q in states] == [named(state) for state in history]
        assert batch.queries is not None
        assert batch.answers is not None
        assert ITEMS[batch.queries[row]] == story[-2]
        assert PEOPLE[batch.answers[row]] == history[-1][1][ITEMS.index(story[-2])]


@pytest.mark.parametrize(("people", "states"), [(3, 44), (4, 202), (5, 1132)])
def test_tracking_shuffled_objects_has_the_state_counts_of_the_paper(people: int, states: int) -> None:
    task = tracking_shuffled_objects(people)
    assert task.machine.n_states == states
    assert task.machine.n_symbols == 2 * people + 7
    assert task.machine.states[task.machine.start] == named(("idle", ("-",) * people))


def reached_on_stories(machine: Moore, grammar: Moore) -> set[int]:
    """States of the machine on beginnings of stories, walking machine and grammar side by side."""
    allowed = allowed_symbols(grammar)
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
def test_reachable_states_are_those_that_the_grammar_reaches(people: int) -> None:
    task = tracking_shuffled_objects(people)
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
def test_step_outside_the_grammar_obeys_the_rules_or_changes_nothing(words: str, state: str) -> None:
    machine = tracking_shuffled_objects(3).machine
    assert machine.states[machine.run(words.split())] == state


def stories(people: int, batch: int, length: int, seed: int = 0) -> list[str]:
    sampler = StorySampler(people)
    words = np.concatenate(list(sampler.blocks(batch, length, np.random.default_rng(seed))), axis=1)
    return [" ".join(sampler.tokens.names[token] for token in word) for word in words]


def sentences_of(story: str) -> list[str]:
    """Sentences with the extra dots that follow them; the reader insists that nothing is left over."""
    found = re.findall(r"\w+ \w+ \w+ \w+ [.?](?: \.)*", story)
    assert " ".join(found) == story
    return found


@pytest.mark.parametrize("people", [2, 3, 4, 5])
@pytest.mark.parametrize("length", [30, 31, 33, 64, 97, 256, 1001])
def test_story_sampler_draws_three_parts_of_the_right_length(people: int, length: int) -> None:
    names, items = PEOPLE[:people], ITEMS[:people]
    for story in stories(people, 50, length):
        assert len(story.split()) == length
        told = sentences_of(story)
        assert len(told) == length // 5
        given = [re.fullmatch(r"(\w+) has the (\w+) \.(?: \.)?", sentence) for sentence in told[:people]]
        assert [match[1] for match in given if match] == names
        assert sorted(match[2] for match in given if match) == sorted(items)
        for sentence in told[people:-1]:
            swap = re.fullmatch(r"(\w+) swaps with (\w+) \.(?: \.)?", sentence)
            assert swap
            assert swap[1] != swap[2]
            assert {swap[1], swap[2]} <= set(names)
        question = re.fullmatch(r"who has the (\w+) \?", told[-1])
        assert question
        assert question[1] in items
        assert sum(sentence.endswith(". .") for sentence in told) == length % 5


def test_story_sampler_is_uniform(fits: Any) -> None:
    """Assignments, pairs, items and the places of the dots: 27 tokens are 3 + 1 sentences, a question and 2 dots."""
    told = [sentences_of(story) for story in stories(3, 6000, 27)]

    def fit(seen: list[Any], wanted: list[Any]) -> bool:
        assert set(seen) <= set(wanted)
        return bool(fits([seen.count(one) for one in wanted], np.full(len(wanted), 1 / len(wanted))))

    assert fit([tuple(s.split()[3] for s in story[:3]) for story in told], list(permutations(ITEMS[:3])))
    assert fit([(s[3].split()[0], s[3].split()[3]) for s in told], list(permutations(PEOPLE[:3], 2)))
    assert fit([story[-1].split()[3] for story in told], ITEMS[:3])
    dotted = [tuple(i for i, sentence in enumerate(story) if sentence.endswith(". .")) for story in told]
    assert fit(dotted, list(combinations(range(4), 2)))


def test_story_sampler_draws_uniform_pairs_deep_in_a_long_story(fits: Any) -> None:
    pairs = re.findall(r"(\w+) swaps with (\w+)", stories(4, 1, 50_003)[0])
    wanted = list(permutations(PEOPLE[:4], 2))
    assert fits([pairs.count(pair) for pair in wanted], np.full(12, 1 / 12))


@pytest.mark.parametrize("block", [5, 12, 20])
def test_story_sampler_inserts_dots_across_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(shuffled_objects, "BLOCK", block)
    for length in range(40, 60):
        for story in stories(3, 20, length):
            assert len(story.split()) == length
            assert sum(sentence.endswith(". .") for sentence in sentences_of(story)) == length % 5


@pytest.mark.parametrize(("people", "length"), [(3, 0), (3, 19), (4, 24), (5, 29), (2, 14)])
def test_check_length_refuses_stories_that_are_too_short(people: int, length: int) -> None:
    with pytest.raises(InvalidConfig, match=rf"at least {5 * (people + 1)} tokens .*; got {length}"):
        StorySampler(people).check_length(length)


def test_check_length_refuses_more_dots_than_sentences() -> None:
    with pytest.raises(InvalidConfig, match=r"no story about 3 people has 24 tokens.*take 23 or 25"):
        StorySampler(3).check_length(24)
    for length in (*range(20, 24), *range(25, 200)):
        StorySampler(3).check_length(length)


@pytest.mark.parametrize("length", [20, 21, 22, 23, 25, 26])
def test_story_sampler_draws_the_shortest_stories(length: int) -> None:
    for story in stories(3, 30, length):
        assert len(sentences_of(story)) == length // 5


@pytest.mark.parametrize("people", [1, 6])
def test_vocabulary_refuses_too_few_or_too_many_people(people: int) -> None:
    with pytest.raises(InvalidConfig, match=rf"2 to 5 people; got {people}"):
        tracking_shuffled_objects(people)


@pytest.mark.parametrize("people", [3, 4])
def test_story_grammar_completes_exactly_the_stories(people: int) -> None:
    grammar = StorySampler(people).grammar(StorySampler(people).tokens.names)
    complete, refused = grammar.outputs.index("complete"), grammar.outputs.index("refused")
    generator = np.random.default_rng(1)
    for story in stories(people, 100, 67):
        said = grammar.output_ids(story)
        assert said[-1] == complete
        assert set(said[:-1].tolist()) == {grammar.outputs.index("begun")}
        tokens = story.split()
        tokens[generator.integers(len(tokens))] = "swaps" if "swaps" in tokens else "the"
        if tokens != story.split():
            assert grammar.output_ids(tokens)[-1] == refused


@pytest.mark.parametrize(
    "wrong",
    [
        "bob",
        ".",
        "alice has the key . . .",
        "alice has the key . alice",
        "alice has the key . bob has the key",
        "alice has the key . who",
        "alice has the key . bob has the ring . charlie has the coin . bob swaps with bob",
        "alice has the key . bob has the ring . charlie has the coin . who has the key .",
        "alice has the key . bob has the ring . charlie has the coin . who has the key ? .",
    ],
)
def test_story_grammar_refuses(wrong: str) -> None:
    grammar = tracking_shuffled_objects(3).grammar
    *before, _ = wrong.split()
    verdict = [grammar.outputs[number] for number in grammar.output_ids(wrong.split())]
    assert verdict[-1] == "refused"
    assert "refused" not in verdict[: len(before)]


def test_story_grammar_counts_the_stories() -> None:
    """Counted by the grammar and by hand: N! assignments, N(N-1) pairs a swap, N items, and the places of the dots."""
    grammar = tracking_shuffled_objects(3).grammar
    ways = np.zeros(grammar.n_states, object)
    ways[grammar.start] = 1
    complete = grammar.readout == grammar.outputs.index("complete")
    for length in range(1, 33):
        step = np.zeros_like(ways)
        for table in grammar.tables:
            np.add.at(step, table, ways)
        ways = step
        by_hand = 0
        for swaps in range(length // 5):
            plain = 5 * (3 + swaps + 1)
            dots = length - plain
            if 0 <= dots <= 3 + swaps:
                places = len(list(combinations(range(3 + swaps), dots)))
                by_hand += factorial(3) * 6**swaps * 3 * places
        assert ways[complete].sum() == by_hand

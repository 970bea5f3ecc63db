"""StorySampler in free order: the grammar and the reference answers."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import minimize
from exactstate.tasks.free_order_stories import NOT_UNDERSTOOD, free_order_grammar, reference_answers
from exactstate.tasks.grammar import random_prefixes
from exactstate.tasks.shuffled_objects import ITEMS, PEOPLE


def by_hand(tokens: list[str]) -> list[str]:
    """The answers to a text of well-formed sentences, with a dictionary and string operations."""
    holder: dict[str, str] = {}
    answers, sentence = [], []
    for token in tokens:
        if token not in (".", "?"):
            sentence.append(token)
            continue
        if token == "?":
            answers.append(holder[sentence[3]])
        elif sentence and sentence[1] == "has":
            holder[sentence[3]] = sentence[0]
        elif sentence:
            one, _, _, other = sentence
            for item, who in holder.items():
                holder[item] = {one: other, other: one}.get(who, who)
        sentence = []
    return answers


@pytest.mark.parametrize("people", [2, 3, 4])
def test_reference_answers_are_those_of_a_dictionary(people: int) -> None:
    machine = reference_answers(people)
    words = random_prefixes(free_order_grammar(people), 40, 501, np.random.default_rng(people))
    for word in words:
        tokens = [machine.symbols[token] for token in word]
        outputs = [machine.outputs[n] for n in machine.output_ids(word)]
        assert [one for one in outputs if one] == by_hand(tokens)
        assert all(token == "?" for token, one in zip(tokens, outputs, strict=True) if one)


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("alice has the key . bob swaps with alice . who has the key ?", ["bob"]),
        ("who has the key ?", [NOT_UNDERSTOOD]),  # nobody was given it
        ("alice has the key . . . bob swaps with bob .", [NOT_UNDERSTOOD]),
        ("alice has the key . alice has the ring .", [NOT_UNDERSTOOD]),  # her hands are full
        ("alice has the key . bob has the key .", [NOT_UNDERSTOOD]),  # it is given
        (". alice has the key .", [NOT_UNDERSTOOD]),
        ("alice has the key . alice swaps with bob . alice has the ring . who has the ring ? who has the key ?",
         ["alice", "bob"]),
    ],
)  # fmt: skip
def test_free_order_grammar_and_reference_answers(text: str, outputs: list[str]) -> None:
    machine = reference_answers(3)
    answers = [machine.outputs[n] for n in machine.output_ids(machine.encode(text.split()))]
    assert [one for one in answers if one] == outputs


def test_free_order_grammar_and_reference_answers_sizes() -> None:
    """The numbers that the documentation gives."""
    assert free_order_grammar(3).n_states == 357
    assert minimize(reference_answers(3)).n_states == 615
    assert PEOPLE[:3] + ITEMS[:3] == reference_answers(3).symbols[:6]

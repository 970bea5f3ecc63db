"""Grammars as machines: built state by state, allowed symbols, random prefixes."""

from __future__ import annotations

from itertools import product

import numpy as np

from exactstate.tasks.grammar import all_words, allowed_symbols, build_grammar, random_prefixes


def balanced(depth: int) -> dict[int, int]:
    """Brackets nested at most twice: '(' is symbol 0, ')' is symbol 1."""
    return {**({0: depth + 1} if depth < 2 else {}), **({1: depth - 1} if depth else {})}


BRACKETS = build_grammar(("(", ")"), start=0, following=balanced, complete=lambda depth: depth == 0)


def verdict(word: tuple[int, ...]) -> str:
    """By counting brackets."""
    depth = 0
    for symbol in word:
        depth += 1 if symbol == 0 else -1
        if not 0 <= depth <= 2:
            return "refused"
    return "complete" if depth == 0 else "begun"


def test_build_grammar_gives_the_verdict_of_counting_brackets() -> None:
    for length in range(8):
        for word in product(range(2), repeat=length):
            assert BRACKETS.outputs[BRACKETS.readout[BRACKETS.run(word)]] == verdict(word)


def test_build_grammar_names_states_after_the_first_word_that_reaches_them() -> None:
    assert BRACKETS.states == ("start", "(", "( (", "refused")


def test_allowed_symbols() -> None:
    assert allowed_symbols(BRACKETS).tolist() == [[1, 0], [1, 1], [0, 1], [0, 0]]
    assert allowed_symbols(all_words("abc")).tolist() == [[1, 1, 1]]


def test_all_words_is_complete_everywhere() -> None:
    grammar = all_words("ab")
    assert [grammar.outputs[number] for number in grammar.output_ids("abba")] == ["complete"] * 4


def test_random_prefixes_stay_in_the_grammar_and_reach_all_of_it() -> None:
    words = random_prefixes(BRACKETS, 200, 6, np.random.default_rng(0))
    assert {verdict(tuple(word)) for word in words.tolist()} == {"begun", "complete"}
    possible = {word for word in product(range(2), repeat=6) if verdict(word) != "refused"}
    assert set(map(tuple, words.tolist())) == possible

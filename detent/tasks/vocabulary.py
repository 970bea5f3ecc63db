"""The language of Tracking Shuffled Objects: its tokens, its sentences, and which token may follow.

    N  people, and as many items: 2N + 7 tokens

Numbers of tokens: people 0 .. N-1, items N .. 2N-1, then the seven words and marks of WORDS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np

from detent.automata.running import Ints
from detent.errors import InvalidConfig

PEOPLE = ("alice", "bob", "charlie", "dana", "eve")
ITEMS = ("ring", "key", "coin", "stamp", "card")
WORDS = ("has", "the", "swaps", "with", "who", ".", "?")
SENTENCE = 5
"""Tokens in a sentence."""

Place = tuple[Any, ...]
"""Where a story stands: the kind of the next token, and what it depends on."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of stories about N people, and every sentence as five token numbers."""

    people: int

    def __post_init__(self) -> None:
        if not 2 <= self.people <= len(PEOPLE):
            raise InvalidConfig(f"stories are told about 2 to {len(PEOPLE)} people; got {self.people}.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return PEOPLE[: self.people] + ITEMS[: self.people] + WORDS

    def number(self, token: str) -> int:
        return self.names.index(token)

    def item(self, item: int) -> int:
        """The token of an item."""
        return self.people + item

    @cached_property
    def dot(self) -> int:
        return self.number(".")

    @cached_property
    def gifts(self) -> Ints:
        """N N 5: person, item -> 'alice has the key .'"""
        N = range(self.people)
        return np.stack([[self._sentence(f"{PEOPLE[p]} has the {ITEMS[i]} .") for i in N] for p in N])

    @cached_property
    def swaps(self) -> Ints:
        """N(N-1) 5: every ordered pair of distinct people -> 'bob swaps with alice .'"""
        pairs = permutations(PEOPLE[: self.people], 2)
        return np.stack([self._sentence(f"{first} swaps with {second} .") for first, second in pairs])

    @cached_property
    def questions(self) -> Ints:
        """N 5: item -> 'who has the key ?'"""
        return np.stack([self._sentence(f"who has the {item} ?") for item in ITEMS[: self.people]])

    def _sentence(self, text: str) -> Ints:
        return np.array([self.number(token) for token in text.split()], np.uint8)


def beginning() -> Place:
    """The place before the first token: no item is given, and no sentence stands before for a dot to follow."""
    return ("sentence", frozenset(), False)


def is_story(place: Place) -> bool:
    return place == ("end",)


def following(place: Place, tokens: Vocabulary) -> dict[int, Place]:
    """The tokens that may stand here, each with the place after it. At any length, one extra dot for each sentence."""
    N, number = tokens.people, tokens.number
    match place:
        case ("sentence", given, dot):
            dots = {tokens.dot: ("sentence", given, False)} if dot else {}
            if len(given) < N:
                return {**dots, len(given): ("gift", "has", given)}
            return {**dots, **{p: ("swap", "swaps", p) for p in range(N)}, number("who"): ("question", "has")}
        case ("gift", "has", given):
            return {number("has"): ("gift", "the", given)}
        case ("gift", "the", given):
            return {number("the"): ("gift", "item", given)}
        case ("gift", "item", given):
            return {tokens.item(i): ("close", given | {i}) for i in range(N) if i not in given}
        case ("swap", "swaps", first):
            return {number("swaps"): ("swap", "with", first)}
        case ("swap", "with", first):
            return {number("with"): ("swap", "person", first)}
        case ("swap", "person", first):
            return {p: ("close", frozenset(range(N))) for p in range(N) if p != first}
        case ("close", given):
            return {tokens.dot: ("sentence", given, True)}
        case ("question", "has"):
            return {number("has"): ("question", "the")}
        case ("question", "the"):
            return {number("the"): ("question", "item")}
        case ("question", "item"):
            return {tokens.item(i): ("question", "mark") for i in range(N)}
        case ("question", "mark"):
            return {number("?"): ("end",)}
    return {}

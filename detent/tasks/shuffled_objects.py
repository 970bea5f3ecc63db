"""Tracking Shuffled Objects as a machine: who is being talked about, and who holds what.

    N  people, and as many items

A state is a pair (p, g). p is the first name of the sentence in progress, or idle; g says for every item who holds it,
or that nobody was said to. A name read while idle is stored in p. A second name swaps what the two people hold, and an
item is given to p; both leave p idle. Every other token changes nothing, so a question does not.

The states are those that the grammar reaches, 44 for N = 3. Off the grammar the rules could leave them (two items in
one hand, a gift out of order); a token that would do so changes nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, permutations
from typing import Any

import numpy as np

from detent._types import Ints
from detent.automata import Moore
from detent.errors import InvalidConfig
from detent.tasks.grammar import spell
from detent.tasks.samplers import BLOCK
from detent.tasks.task import Register, Task

# -- The language of Tracking Shuffled Objects: its tokens, its sentences, and which token may follow.

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


# -- The law of Tracking Shuffled Objects: how its stories are drawn.


@dataclass(frozen=True)
class Stories:
    """Random assignment in the preamble, uniform ordered pairs of distinct people to swap, a uniform item asked for."""

    people: int

    @property
    def n_symbols(self) -> int:
        return len(self.tokens.names)

    @cached_property
    def tokens(self) -> Vocabulary:
        return Vocabulary(self.people)

    def refuse_length(self, length: int) -> None:
        sentences, extra = divmod(length, SENTENCE)
        least = SENTENCE * (self.people + 1)
        if length < least:
            raise InvalidConfig(
                f"a story about {self.people} people has at least {least} tokens "
                f"({self.people} sentences and a question, {SENTENCE} tokens each); got {length}."
            )
        if extra > sentences - 1:
            raise InvalidConfig(
                f"no story about {self.people} people has {length} tokens: {extra} extra dots need as many sentences "
                f"before the question, and there are {sentences - 1}; take {length - 1} or {length + SENTENCE - extra}."
            )

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        sentences, extra = divmod(length, SENTENCE)
        dots = _dots(batch, sentences - 1, extra, generator)
        plain = self._sentences(batch, sentences, generator)
        return _insert(plain, dots, self.tokens.dot) if extra else plain

    def _sentences(self, batch: int, sentences: int, generator: np.random.Generator) -> Iterator[Ints]:
        """The story without extra dots: the preamble, the swaps in blocks, the question."""
        N, tokens = self.people, self.tokens
        given = generator.permuted(np.tile(np.arange(N), (batch, 1)), axis=1)  # person -> item
        yield tokens.gifts[np.arange(N), given].reshape(batch, N * SENTENCE)
        swaps, at_once = sentences - N - 1, BLOCK // SENTENCE
        for begin in range(0, swaps, at_once):
            count = min(at_once, swaps - begin)
            pairs = generator.integers(0, len(tokens.swaps), (batch, count), dtype=np.uint8)
            yield tokens.swaps[pairs].reshape(batch, count * SENTENCE)
        yield tokens.questions[generator.integers(0, N, batch)]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        tokens = self.tokens
        return spell(
            symbols, start=beginning(), following=lambda place: following(place, tokens), complete=is_story
        )  # fmt: skip

    def describe(self, symbols: Sequence[str]) -> str:
        return (
            f"stories about {self.people} people: who has what at first, swaps of two people drawn uniformly, "
            "and a question; extra dots after random sentences make up the length"
        )


def _dots(batch: int, sentences: int, extra: int, generator: np.random.Generator) -> Ints:
    """Where the extra dots stand (B extra), ascending: after a uniform choice of that many sentences.

    Floyd's way to draw a subset: the i-th draw is from one more than the one before, and a repetition is replaced by
    the sentence that this draw is the first to offer.
    """
    chosen = np.empty((batch, extra), np.int64)
    for i in range(extra):
        newest = sentences - extra + i
        drawn = generator.integers(0, newest + 1, batch)
        chosen[:, i] = np.where((chosen[:, :i] == drawn[:, None]).any(axis=1), newest, drawn)
    return SENTENCE * (np.sort(chosen, axis=1) + 1) + np.arange(extra)


def _insert(plain: Iterator[Ints], dots: Ints, dot: int) -> Iterator[Ints]:
    """The stories with their extra dots, in blocks as wide as those that came, and the rest.

    A token stands later by the number of dots before it, which is at most `extra`: that many columns are held back.
    """
    batch, extra = dots.shape
    held, begin = np.zeros((batch, extra), np.uint8), 0
    for block in chain(plain, [held]):  # the last block only pushes out what is still held back
        window, width = np.concatenate([held, block], axis=1), block.shape[1]
        time = np.arange(begin, begin + width)
        late = np.zeros((batch, width), np.int8)
        for i in range(extra):
            late += dots[:, [i]] < time
        told = np.take_along_axis(window, np.arange(extra, extra + width) - late, axis=1)
        row, which = np.nonzero((dots >= begin) & (dots < begin + width))
        told[row, dots[row, which] - begin] = dot
        yield told
        held, begin = window[:, -extra:], begin + width


IDLE = NOBODY = -1
State = tuple[int, tuple[int, ...]]
"""(p, g): the person talked about, and the holder of every item."""


def rule(state: State, token: int, people: int) -> State:
    """Where a token sends a state, on the grammar or off it."""
    person, holders = state
    if token < people:
        if person == IDLE:
            return token, holders
        exchanged = {person: token, token: person}
        return IDLE, tuple(exchanged.get(holder, holder) for holder in holders)
    if token < 2 * people and person != IDLE:
        item = token - people
        return IDLE, (*holders[:item], person, *holders[item + 1 :])
    return state


def states_of_stories(tokens: Vocabulary) -> list[State]:
    """Every state that some beginning of a story reaches, breadth-first."""
    state: State = (IDLE, (NOBODY,) * tokens.people)
    seen = {(beginning(), state)}
    queue = list(seen)
    for place, state in queue:
        for token, then in following(place, tokens).items():
            reached = (then, rule(state, token, tokens.people))
            if reached not in seen:
                seen.add(reached)
                queue.append(reached)
    return list(dict.fromkeys(state for _, state in queue))


@dataclass(frozen=True, eq=False)
class Holder:
    """The question 'who has the key ?': the answer is a person."""

    holders: Ints
    """n N: state, item -> person; N where nobody holds it yet."""

    @property
    def n_answers(self) -> int:
        return self.holders.shape[1]

    def ask(self, ends: Ints) -> Ints:
        """The item, from the last two tokens of the question."""
        return ends[:, 0] - self.holders.shape[1]

    def answer(self, asked: Ints, states: Ints) -> Ints:
        return self.holders[states, asked]


def tracking_objects(people: int) -> Task:
    """TSO_N: read a story, keep track of who holds what, answer the question at its end."""
    tokens = Vocabulary(people)
    states = states_of_stories(tokens)
    number = {state: n for n, state in enumerate(states)}
    tables = [
        [number.get(rule(state, token, people), n) for n, state in enumerate(states)]
        for token in range(len(tokens.names))
    ]
    machine = Moore(
        symbols=tokens.names, tables=np.array(tables), states=tuple(map(_name, states)),
        outputs=tuple(map(_name, states)), readout=np.arange(len(states)),
    )  # fmt: skip
    holders = np.array([[people if holder == NOBODY else holder for holder in g] for _, g in states], np.uint8)
    return Task(
        name=f"TSO{people}", machine=machine, law=Stories(people), question=Holder(holders),
        layers=((people + 1,) * (people + 1), (people + 1,) * people), registers=registers(states),
        about=f"Tracking Shuffled Objects: {people} people swap {people} items; who has the {ITEMS[0]}?",
    )  # fmt: skip


def registers(states: list[State]) -> tuple[Register, ...]:
    """The first name of the sentence, and the holder of every item."""
    people = PEOPLE[: len(states[0][1])]
    parts = np.array([[person, *holders] for person, holders in states]) + 1
    names = ("the first name", *(f"the holder of the {item}" for item in ITEMS[: len(people)]))
    unset = ("idle", *["nobody"] * len(people))
    return tuple(
        Register(name, (nothing, *people), parts[:, part])
        for part, (name, nothing) in enumerate(zip(names, unset, strict=True))
    )


def _name(state: State) -> str:
    person, holders = state
    held = ", ".join(f"{ITEMS[i]}: {'-' if who == NOBODY else PEOPLE[who]}" for i, who in enumerate(holders))
    return f"{'idle' if person == IDLE else PEOPLE[person]} | {held}"

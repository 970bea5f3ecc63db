"""Tracking Shuffled Objects (TSO): stories about who holds what, with a question at the end.

    N  people, and as many items     B  stories     L  their length in tokens

A state of the machine is a pair (p, g): p is the first name in the current sentence, or idle; g gives the holder of
every item, or nobody. A name read while idle is stored in p. A second name swaps what the two people hold; an item is
given to p; both make p idle again. Every other token leaves the state unchanged, so a question does too.

The states are those that the grammar reaches, 44 for N = 3. Outside the grammar these rules could leave them (two items
in one hand, a gift out of order); a token that would do so leaves the state unchanged as well.

The file has the vocabulary and grammar first, then the machine and the task, then the sampler of stories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, permutations
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.automata import Moore
from exactstate.errors import InvalidConfig
from exactstate.tasks.grammar import build_grammar
from exactstate.tasks.samplers import BLOCK
from exactstate.tasks.task import Register, Task

PEOPLE = ("alice", "bob", "charlie", "dana", "eve")
ITEMS = ("ring", "key", "coin", "stamp", "card")
WORDS = ("has", "the", "swaps", "with", "who", ".", "?")
SENTENCE = 5
"""Tokens in a sentence."""

GrammarState = tuple[Any, ...]
"""The kind of the next token, and what it depends on."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of stories about N people, and every sentence as five token numbers."""

    people: int

    def __post_init__(self) -> None:
        if not 2 <= self.people <= len(PEOPLE):
            raise InvalidConfig(f"a story is about 2 to {len(PEOPLE)} people; got {self.people}.")

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


STORY_START: GrammarState = ("sentence", frozenset(), False)
"""No item is given yet, and there is no sentence that an extra dot could follow."""
STORY_END: GrammarState = ("end",)


def story_following(state: GrammarState, tokens: Vocabulary) -> dict[int, GrammarState]:
    """The allowed tokens, each with the next grammar state. At most one extra dot follows each sentence."""
    N, number = tokens.people, tokens.number
    match state:
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
            return {number("?"): STORY_END}
    return {}


IDLE = NOBODY = -1
State = tuple[int, tuple[int, ...]]
"""(p, g): the first name of the sentence, and the holder of every item."""


def step(state: State, token: int, people: int) -> State:
    """The successor of a state, inside the grammar or outside it."""
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


def reachable_states(tokens: Vocabulary) -> list[State]:
    """The states that prefixes of stories reach, breadth-first."""
    state: State = (IDLE, (NOBODY,) * tokens.people)
    seen = {(STORY_START, state)}
    queue = list(seen)
    for place, state in queue:
        for token, then in story_following(place, tokens).items():
            reached = (then, step(state, token, tokens.people))
            if reached not in seen:
                seen.add(reached)
                queue.append(reached)
    return list(dict.fromkeys(state for _, state in queue))


@dataclass(frozen=True, eq=False)
class HolderQuestion:
    """The question 'who has the key ?': the answer is a person."""

    holders: Ints
    """n N: state, item -> person; N where nobody holds it yet."""

    @property
    def n_answers(self) -> int:
        return self.holders.shape[1]

    def query(self, ends: Ints) -> Ints:
        """The item, from the last two tokens of the question."""
        return ends[:, 0] - self.holders.shape[1]

    def answer(self, queries: Ints, states: Ints) -> Ints:
        return self.holders[states, queries]


def tracking_shuffled_objects(people: int) -> Task:
    """The task TSO_N: read a story, track who holds what, answer the question at its end."""
    tokens = Vocabulary(people)
    states = reachable_states(tokens)
    number = {state: n for n, state in enumerate(states)}
    tables = [
        [number.get(step(state, token, people), n) for n, state in enumerate(states)]
        for token in range(len(tokens.names))
    ]
    machine = Moore(
        symbols=tokens.names, tables=np.array(tables), states=tuple(map(_name, states)),
        outputs=tuple(map(_name, states)), readout=np.arange(len(states)),
    )  # fmt: skip
    holders = np.array([[people if holder == NOBODY else holder for holder in g] for _, g in states], np.uint8)
    return Task(
        name=f"TSO{people}", machine=machine, sampler=StorySampler(people), question=HolderQuestion(holders),
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


@dataclass(frozen=True)
class StorySampler:
    """A random assignment of items, swaps of uniform ordered pairs of people, a question for a uniform item."""

    people: int

    @property
    def n_symbols(self) -> int:
        return len(self.tokens.names)

    @cached_property
    def tokens(self) -> Vocabulary:
        return Vocabulary(self.people)

    def check_length(self, length: int) -> None:
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
        dots = _dot_positions(batch, sentences - 1, extra, generator)
        plain = self._sentences(batch, sentences, generator)
        return _insert_dots(plain, dots, self.tokens.dot) if extra else plain

    def _sentences(self, batch: int, sentences: int, generator: np.random.Generator) -> Iterator[Ints]:
        """The story without extra dots: the assignment, the swaps in blocks, the question."""
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
        return build_grammar(
            symbols, start=STORY_START, following=lambda state: story_following(state, tokens),
            complete=lambda state: state == STORY_END,
        )  # fmt: skip

    def describe(self, symbols: Sequence[str]) -> str:
        return (
            f"stories about {self.people} people: who has what at first, swaps of two people drawn uniformly, "
            "and a question; extra dots after random sentences fill up the length"
        )


def _dot_positions(batch: int, sentences: int, extra: int, generator: np.random.Generator) -> Ints:
    """B extra: the positions of the extra dots, ascending, after a uniformly drawn set of that many sentences.

    Floyd's algorithm for sampling without replacement (Bentley and Floyd, CACM 30(9), 1987): draw i ranges over one
    sentence more than draw i - 1, and a repeated draw is replaced by that new sentence.
    """
    chosen = np.empty((batch, extra), np.int64)
    for i in range(extra):
        newest = sentences - extra + i
        drawn = generator.integers(0, newest + 1, batch)
        chosen[:, i] = np.where((chosen[:, :i] == drawn[:, None]).any(axis=1), newest, drawn)
    return SENTENCE * (np.sort(chosen, axis=1) + 1) + np.arange(extra)


def _insert_dots(plain: Iterator[Ints], dots: Ints, dot: int) -> Iterator[Ints]:
    """The stories with their extra dots, in blocks of the same widths and a last one of width `extra`.

    A token moves right by the number of dots before it, at most `extra`, so that many columns are held back.
    """
    batch, extra = dots.shape
    held, begin = np.zeros((batch, extra), np.uint8), 0
    for block in chain(plain, [held]):  # the last block flushes what is still held back
        window, width = np.concatenate([held, block], axis=1), block.shape[1]
        time = np.arange(begin, begin + width)
        shift = np.zeros((batch, width), np.int8)
        for i in range(extra):
            shift += dots[:, [i]] < time
        tokens = np.take_along_axis(window, np.arange(extra, extra + width) - shift, axis=1)
        row, which = np.nonzero((dots >= begin) & (dots < begin + width))
        tokens[row, dots[row, which] - begin] = dot
        yield tokens
        held, begin = window[:, -extra:], begin + width

"""Tracking Shuffled Objects as a machine: who is being talked about, and who holds what.

    N  people, and as many items

A state is a pair (p, g). p is the first name of the sentence in progress, or idle; g says for every item who holds it,
or that nobody was said to. A name read while idle is stored in p. A second name swaps what the two people hold, and an
item is given to p; both leave p idle. Every other token changes nothing, so a question does not.

The states are those that the grammar reaches, 44 for N = 3. Off the grammar the rules could leave them (two items in
one hand, a gift out of order); a token that would do so changes nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata import Moore
from detent.automata.running import Ints
from detent.tasks.sampling import Register, Task
from detent.tasks.sentences import Stories
from detent.tasks.vocabulary import ITEMS, PEOPLE, Vocabulary, beginning, following

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

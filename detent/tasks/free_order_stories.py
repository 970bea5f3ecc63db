"""Stories as people tell them: gifts, swaps and questions in any order, dots wherever a sentence has ended.

    N  people, and as many items

A task's stories come in a fixed order and end with their question. These do not: an item that nobody has is given to
somebody with empty hands, two people swap whatever they hold, and what was given is asked for as often as one likes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from detent.automata import Mealy, Moore
from detent.tasks.grammar import spell
from detent.tasks.shuffled_objects import IDLE, NOBODY, PEOPLE, Place, Vocabulary, rule

SILENT, NOT_UNDERSTOOD = "", "(not understood)"

Held = frozenset[int]


@lru_cache(maxsize=8)
def telling(people: int) -> Moore:
    """The grammar of such stories."""
    tokens = Vocabulary(people)
    return spell(
        tokens.names, start=("sentence", frozenset(), frozenset()), following=lambda place: following(place, tokens),
        complete=lambda place: place[0] == "sentence",
    )  # fmt: skip


def following(place: Place, tokens: Vocabulary) -> dict[int, Place]:
    """The tokens that may stand here, each with the place after it: what is given, and whose hands are full."""
    N, number = tokens.people, tokens.number
    kind, given, full = place[:3]
    match kind, place[3:]:
        case "sentence", ():
            people = {p: ("name", given, full, p) for p in range(N)}
            return {**people, tokens.dot: place, number("who"): ("who", given, full)} if given else people
        case "name", (p,):
            gift = {number("has"): ("has", given, full, p)} if p not in full and len(given) < N else {}
            return {**gift, number("swaps"): ("swaps", given, full, p)}
        case "has", (p,):
            return {number("the"): ("item", given, full, p)}
        case "item", (p,):
            return {tokens.item(i): ("close", given | {i}, full | {p}) for i in range(N) if i not in given}
        case "swaps", (p,):
            return {number("with"): ("with", given, full, p)}
        case "with", (p,):
            return {q: ("close", given, _swapped(full, p, q)) for q in range(N) if q != p}
        case "close", ():
            return {tokens.dot: ("sentence", given, full)}
        case "who", ():
            return {number("has"): ("asks", given, full)}
        case "asks", ():
            return {number("the"): ("asked", given, full)}
        case "asked", ():
            return {tokens.item(i): ("mark", given, full) for i in given}
        case "mark", ():
            return {number("?"): ("sentence", given, full)}
    return {}


def _swapped(full: Held, p: int, q: int) -> Held:
    return frozenset({p: q, q: p}.get(one, one) for one in full)


def answered(people: int) -> Mealy:
    """What is right to say to such stories: the holder at every question mark, and nothing else.

    A token that may not follow is not understood; it says so, once, and falls silent for good.
    """
    tokens, grammar = Vocabulary(people), telling(people)
    outputs = (SILENT, *PEOPLE[:people], NOT_UNDERSTOOD)
    refusal, mark = grammar.n_states - 1, tokens.number("?")
    start = (grammar.start, IDLE, (NOBODY,) * people, NOBODY)
    number, moves, said = {start: 1}, [[0] * len(tokens.names)], [[0] * len(tokens.names)]
    for place, person, holders, item in (queue := [start]):
        moves.append([])
        said.append([])
        for token in range(len(tokens.names)):
            then = int(grammar.tables[token, place])
            if then == refusal:
                moves[-1].append(0)
                said[-1].append(len(outputs) - 1)
                continue
            p, g = rule((person, holders), token, people)
            asked = token - people if people <= token < 2 * people and person == IDLE else NOBODY
            reached = (then, p, g, asked)
            if reached not in number:
                number[reached] = len(number) + 1
                queue.append(reached)
            moves[-1].append(number[reached])
            said[-1].append(1 + holders[item] if token == mark else 0)
    return Mealy(
        symbols=tokens.names, tables=np.array(moves).T, outputs=outputs, readout=np.array(said).T, start=1
    )  # fmt: skip

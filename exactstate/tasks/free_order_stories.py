"""Stories of Tracking Shuffled Objects in free order: gifts, swaps and questions may follow each other in any order.

    N  people, and as many items

The stories of the task come in a fixed order and end with one question. Here an item that nobody holds may be given to
anybody who holds nothing, two people may swap at any time, and every item that was given may be asked for, any number
of times. Extra dots may follow any sentence. `free_order_grammar` is the language, `reference_answers` the machine that
answers its questions.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from exactstate.automata import Mealy, Moore
from exactstate.tasks.grammar import build_grammar
from exactstate.tasks.shuffled_objects import IDLE, NOBODY, PEOPLE, GrammarState, Vocabulary, step

NO_OUTPUT, NOT_UNDERSTOOD = "", "(not understood)"


@lru_cache(maxsize=8)
def free_order_grammar(people: int) -> Moore:
    """The grammar of free-order stories about N people."""
    tokens = Vocabulary(people)
    return build_grammar(
        tokens.names, start=("sentence", frozenset(), frozenset()),
        following=lambda state: free_order_following(state, tokens), complete=lambda state: state[0] == "sentence",
    )  # fmt: skip


def free_order_following(state: GrammarState, tokens: Vocabulary) -> dict[int, GrammarState]:
    """The allowed tokens, each with the next grammar state: (kind, items given, people who hold one, ...)."""
    N, number = tokens.people, tokens.number
    kind, given, full = state[:3]
    match kind, state[3:]:
        case "sentence", ():
            people = {p: ("name", given, full, p) for p in range(N)}
            return {**people, tokens.dot: state, number("who"): ("who", given, full)} if given else people
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
            return {number("has"): ("who has", given, full)}
        case "who has", ():
            return {number("the"): ("who has the", given, full)}
        case "who has the", ():
            return {tokens.item(i): ("mark", given, full) for i in given}
        case "mark", ():
            return {number("?"): ("sentence", given, full)}
    return {}


def _swapped(full: frozenset[int], p: int, q: int) -> frozenset[int]:
    return frozenset({p: q, q: p}.get(one, one) for one in full)


def reference_answers(people: int) -> Mealy:
    """The machine that outputs the holder at every question mark, and the empty output elsewhere.

    At the first token that the grammar forbids it outputs NOT_UNDERSTOOD, and the empty output ever after.
    """
    tokens, grammar = Vocabulary(people), free_order_grammar(people)
    outputs = (NO_OUTPUT, *PEOPLE[:people], NOT_UNDERSTOOD)
    refused, mark = grammar.n_states - 1, tokens.number("?")
    start = (grammar.start, IDLE, (NOBODY,) * people, NOBODY)
    number, tables, readout = {start: 1}, [[0] * len(tokens.names)], [[0] * len(tokens.names)]
    for place, person, holders, item in (queue := [start]):
        tables.append([])
        readout.append([])
        for token in range(len(tokens.names)):
            then = int(grammar.tables[token, place])
            if then == refused:
                tables[-1].append(0)
                readout[-1].append(len(outputs) - 1)
                continue
            p, g = step((person, holders), token, people)
            query = token - people if people <= token < 2 * people and person == IDLE else NOBODY
            reached = (then, p, g, query)
            if reached not in number:
                number[reached] = len(number) + 1
                queue.append(reached)
            tables[-1].append(number[reached])
            readout[-1].append(1 + holders[item] if token == mark else 0)
    return Mealy(
        symbols=tokens.names, tables=np.array(tables).T, outputs=outputs, readout=np.array(readout).T, start=1
    )  # fmt: skip

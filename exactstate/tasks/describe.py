"""Describe a task: its size, its words, whether it is definite on them, and the heads it needs.

A task is definite of order k when the last k symbols determine the state. A machine that is not definite may be so on
the words that its sampler draws: `definite_words` searches pairs of (machine state, grammar state) that the same word
keeps at different machine states; a cycle of such pairs is a witness against, the longest path gives the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from exactstate.automata import Definite, definite
from exactstate.automata.factor import factor
from exactstate.errors import BudgetExceeded
from exactstate.tasks.grammar import allowed_symbols
from exactstate.tasks.registry import by_name
from exactstate.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Description:
    """The properties of a task, each with its reason."""

    name: str
    about: str
    words: str
    """How words are drawn."""
    states: int
    symbols: int
    definite: Definite
    """Whether the last symbols determine the state, on the words that are drawn."""
    machine_definite: bool
    """Whether they do on every word."""
    layers: tuple[tuple[int, ...], ...]
    """Suggested head sizes of every layer."""
    factoring: str
    """Why these heads."""

    @property
    def heads(self) -> tuple[int, ...]:
        """Suggested head sizes of all layers together."""
        return tuple(d for layer in self.layers for d in layer)

    @property
    def why(self) -> str:
        """Why the task is definite or not, in a sentence."""
        sentence = self.definite.explain()
        if self.definite and not self.machine_definite:
            return f"{sentence}; this holds for the words that are drawn, not for all words"
        return sentence


@lru_cache(maxsize=64)
def describe(task: Task) -> Description:
    """The properties of a task, cached; a machine of thousands of states takes seconds."""
    layers, reason = _heads(task)
    return Description(
        name=task.name, about=task.about, words=task.sampler.describe(task.machine.symbols),
        states=task.machine.n_states, symbols=task.machine.n_symbols,
        definite=definite_words(task), machine_definite=bool(definite(task.machine)), layers=layers, factoring=reason,
    )  # fmt: skip


KEPT_FACTORINGS = {
    "S5": (
        (5, 5, 5, 2),
        "heads of 5, 5, 5 and 2 indices hold the 120 states at cost 79 instead of 14400; no congruences are cheaper",
    ),
    "M11": (
        (11, 11, 11, 11),
        "heads of 11, 11, 11 and 11 indices hold the 7920 states at cost 484 instead of 62726400; the cheapest found, "
        "not proven cheapest",
    ),
}
"""Sizes of heads, and why, of tasks of the registry whose factoring takes long; a test computes them again."""


def _heads(task: Task) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Heads by layer, and why."""
    if task.layers is None and task.name in KEPT_FACTORINGS and by_name(task.name) == task:
        sizes, reason = KEPT_FACTORINGS[task.name]
        return (sizes,), reason
    if task.layers is None:
        factoring = factor(task.machine)
        return (factoring.sizes,), factoring.explain()
    stack = ", then ".join(f"{len(layer)} heads of {', '.join(map(str, sorted(set(layer))))}" for layer in task.layers)
    return task.layers, f"{len(task.layers)} layers, each after a convolution over two symbols: {stack} indices"


JointState = tuple[int, int]
"""(state of the machine, state of the grammar)."""
Pair = tuple[JointState, JointState]


def definite_words(task: Task, *, limit: int = 1_000_000) -> Definite:
    """Whether the task is definite on its words; BudgetExceeded after `limit` pairs."""
    if allowed_symbols(task.grammar).all():
        return definite(task.machine)
    search = _PairSearch(task)
    steps: dict[Pair, int] = {}  # longest word so far that keeps the pair at different states
    for pair in search.pairs():
        if pair in steps:
            continue
        trail = [(pair, -1, search.successors(pair))]  # a pair, the symbol that led to it, its successors
        depth = {pair: 0}
        while trail:
            here, _, successors = trail[-1]
            symbol, then = next(successors, (None, here))
            if symbol is None:
                trail.pop()
                del depth[here]
                steps.setdefault(here, 0)
                if trail:
                    _lengthen(steps, trail[-1][0], here)
            elif then in depth:
                return search.cycle(then, [led for _, led, _ in trail[depth[then] + 1 :]] + [symbol])
            elif then in steps:
                _lengthen(steps, here, then)
            else:
                depth[then] = len(trail)
                trail.append((then, symbol, search.successors(then)))
                if len(steps) + len(trail) > limit:
                    raise BudgetExceeded(
                        f"{task.name}: more than {limit} pairs of states to decide whether it is definite; raise limit."
                    )
    return _tight(search, steps)


def _lengthen(steps: dict[Pair, int], before: Pair, after: Pair) -> None:
    steps[before] = max(steps.get(before, 0), steps[after] + 1)


def _tight(search: _PairSearch, steps: dict[Pair, int]) -> Definite:
    """The order, with a longest word that keeps two states apart."""
    if not steps:
        return Definite(order=0, word=(), apart=None)
    first = pair = max(steps, key=steps.__getitem__)
    word = []
    while steps[pair]:
        symbol, pair = next(move for move in search.successors(pair) if steps[move[1]] == steps[pair] - 1)
        word.append(symbol)
    return search.witness(len(word) + 1, first, word)


class _PairSearch:
    """Joint states of the machine and the grammar, and pairs of them at different machine states."""

    def __init__(self, task: Task) -> None:
        self.machine, self.moves, self.rules = task.machine, task.machine.tables, task.grammar.tables
        self.allowed = [np.flatnonzero(row).tolist() for row in allowed_symbols(task.grammar)]
        self.reached = [(task.machine.start, task.grammar.start)]
        seen = set(self.reached)
        for q, g in self.reached:
            for symbol in self.allowed[g]:
                reached = (int(self.moves[symbol, q]), int(self.rules[symbol, g]))
                if reached not in seen:
                    seen.add(reached)
                    self.reached.append(reached)

    def pairs(self) -> Iterator[Pair]:
        """Pairs at different machine states; late ones at equal grammar states first, since cycles are found there."""
        late = self.reached[::-1]
        for same_rule in (True, False):
            for i, one in enumerate(late):
                for other in late[:i]:
                    if one[0] != other[0] and (one[1] == other[1]) == same_rule:
                        yield one, other

    def successors(self, pair: Pair) -> Iterator[tuple[int, Pair]]:
        (p, g), (q, h) = pair
        for symbol in self.allowed[g]:
            if symbol in self.allowed[h] and self.moves[symbol, p] != self.moves[symbol, q]:
                one = (int(self.moves[symbol, p]), int(self.rules[symbol, g]))
                yield symbol, (one, (int(self.moves[symbol, q]), int(self.rules[symbol, h])))

    def cycle(self, pair: Pair, word: list[int]) -> Definite:
        """The word around a cycle, rotated to begin where most symbols may follow, such as between sentences."""
        turns = [(pair, word)]
        for i, symbol in enumerate(word[:-1], start=1):
            pair = next(then for led, then in self.successors(pair) if led == symbol)
            turns.append((pair, word[i:] + word[:i]))
        return self.witness(None, *max(turns, key=lambda turn: len(self.allowed[turn[0][0][1]])))

    def witness(self, order: int | None, pair: Pair, word: list[int]) -> Definite:
        (p, _), (q, _) = pair
        named = tuple(self.machine.symbols[symbol] for symbol in word)
        return Definite(order=order, word=named, apart=(self.machine.states[p], self.machine.states[q]))

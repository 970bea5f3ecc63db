"""What a task says about itself: its size, its words, whether the last symbols tell the state, the heads it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from detent.automata import Definite, definite
from detent.automata.factor import factor
from detent.errors import BudgetExceeded
from detent.tasks.grammar import permitted
from detent.tasks.task import Task

# -- Whether the last k symbols of a word tell the state, on the words that a task draws.

Place = tuple[int, int]
"""(state of the machine, state of the grammar)."""
Pair = tuple[Place, Place]


def definite_words(task: Task, *, limit: int = 1_000_000) -> Definite:
    """Whether the words of the task are definite, looking at no more than `limit` pairs of places.

    A machine that is not definite can be so on the words that are drawn, when those that keep states apart are not.
    """
    if permitted(task.grammar).all():
        return definite(task.machine)
    walk = _Walk(task)
    steps: dict[Pair, int] = {}  # how far two places can be followed at different states, so far
    for pair in walk.pairs():
        if pair in steps:
            continue
        trail = [(pair, -1, walk.onwards(pair))]  # a pair, the symbol that led to it, where it may lead
        depth = {pair: 0}
        while trail:
            here, _, onwards = trail[-1]
            symbol, then = next(onwards, (None, here))
            if symbol is None:
                trail.pop()
                del depth[here]
                steps.setdefault(here, 0)
                if trail:
                    _lengthen(steps, trail[-1][0], here)
            elif then in depth:
                return walk.circle(then, [led for _, led, _ in trail[depth[then] + 1 :]] + [symbol])
            elif then in steps:
                _lengthen(steps, here, then)
            else:
                depth[then] = len(trail)
                trail.append((then, symbol, walk.onwards(then)))
                if len(steps) + len(trail) > limit:
                    raise BudgetExceeded(f"whether {task.name} is definite takes more than {limit} pairs of places.")
    return _tight(walk, steps)


def _lengthen(steps: dict[Pair, int], before: Pair, after: Pair) -> None:
    steps[before] = max(steps.get(before, 0), steps[after] + 1)


def _tight(walk: _Walk, steps: dict[Pair, int]) -> Definite:
    """The order, with the longest walk that keeps two states apart."""
    if not steps:
        return Definite(order=0, word=(), apart=None)
    first = pair = max(steps, key=steps.__getitem__)
    word = []
    while steps[pair]:
        symbol, pair = next(move for move in walk.onwards(pair) if steps[move[1]] == steps[pair] - 1)
        word.append(symbol)
    return walk.witness(len(word) + 1, first, word)


class _Walk:
    """The places of a task, and pairs of them at different states."""

    def __init__(self, task: Task) -> None:
        self.machine, self.moves, self.rules = task.machine, task.machine.tables, task.grammar.tables
        self.allowed = [np.flatnonzero(row).tolist() for row in permitted(task.grammar)]
        self.places = [(task.machine.start, task.grammar.start)]
        seen = set(self.places)
        for q, g in self.places:
            for symbol in self.allowed[g]:
                reached = (int(self.moves[symbol, q]), int(self.rules[symbol, g]))
                if reached not in seen:
                    seen.add(reached)
                    self.places.append(reached)

    def pairs(self) -> Iterator[Pair]:
        """Pairs at different states; the places found last and in step with the grammar first, where circles are."""
        late = self.places[::-1]
        for in_step in (True, False):
            for i, one in enumerate(late):
                for other in late[:i]:
                    if one[0] != other[0] and (one[1] == other[1]) == in_step:
                        yield one, other

    def onwards(self, pair: Pair) -> Iterator[tuple[int, Pair]]:
        (p, g), (q, h) = pair
        for symbol in self.allowed[g]:
            if symbol in self.allowed[h] and self.moves[symbol, p] != self.moves[symbol, q]:
                one = (int(self.moves[symbol, p]), int(self.rules[symbol, g]))
                yield symbol, (one, (int(self.moves[symbol, q]), int(self.rules[symbol, h])))

    def circle(self, pair: Pair, word: list[int]) -> Definite:
        """The word round a circle, begun where most symbols may follow: at a sentence, not inside one."""
        turns = [(pair, word)]
        for i, symbol in enumerate(word[:-1], start=1):
            pair = next(then for led, then in self.onwards(pair) if led == symbol)
            turns.append((pair, word[i:] + word[:i]))
        return self.witness(None, *max(turns, key=lambda turn: len(self.allowed[turn[0][0][1]])))

    def witness(self, order: int | None, pair: Pair, word: list[int]) -> Definite:
        (p, _), (q, _) = pair
        spelt = tuple(self.machine.symbols[symbol] for symbol in word)
        return Definite(order=order, word=spelt, apart=(self.machine.states[p], self.machine.states[q]))


@dataclass(frozen=True, kw_only=True)
class Description:
    """The facts of a task, each with its reason."""

    name: str
    about: str
    words: str
    """How words are drawn."""
    states: int
    symbols: int
    definite: Definite
    """Whether the last symbols tell the state, on the words that are drawn."""
    machine_definite: bool
    """Whether they do on all words."""
    layers: tuple[tuple[int, ...], ...]
    """Suggested indices of every head of every layer."""
    factoring: str
    """Why these heads."""

    @property
    def heads(self) -> tuple[int, ...]:
        """Suggested indices of every head, of all layers."""
        return tuple(d for layer in self.layers for d in layer)

    @property
    def why(self) -> str:
        """Why the task is definite or not, in a sentence."""
        sentence = self.definite.explain()
        if self.definite and not self.machine_definite:
            return f"{sentence}; so on the words that are drawn, though not on all words"
        return sentence


@lru_cache(maxsize=64)
def describe(task: Task) -> Description:
    """What a task says about itself, computed once; a machine of thousands of states takes seconds."""
    layers, reason = _heads(task)
    return Description(
        name=task.name, about=task.about, words=task.law.describe(task.machine.symbols),
        states=task.machine.n_states, symbols=task.machine.n_symbols,
        definite=definite_words(task), machine_definite=bool(definite(task.machine)), layers=layers, factoring=reason,
    )  # fmt: skip


def _heads(task: Task) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Heads by layer, and why."""
    if task.layers is None:
        found = factor(task.machine)
        return (found.sizes,), found.explain()
    stack = ", then ".join(f"{len(layer)} heads of {', '.join(map(str, sorted(set(layer))))}" for layer in task.layers)
    return task.layers, f"{len(task.layers)} layers, each after a convolution over two symbols: {stack} indices"

"""Codes of a state that consists of registers, for two layers: which register sits where, and what stories show of it.

    r  heads of a layer     d  indices of a head     k  registers     A  symbols

The task names the registers. `assign_registers` counts functional dependencies in stories: a register whose change
depends on the symbol alone goes into the first layer, the others into the second. With the index of every head known
nothing depends on time, so `codes_of_registers` finds few distinct rows, however many stories they are from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.tasks import Batch, Task
from exactstate.tasks.free_order_stories import free_order_grammar
from exactstate.tasks.grammar import random_prefixes
from exactstate.train.codes import StateCodes, collect_rows, complete, endless, is_function_of, pack_rows, unique_rows

DEPENDENCY_BATCHES = 8
"""Batches of stories in which the dependencies of registers are counted."""
MAX_STORY = 80
"""Tokens of a story: in short stories every transition is frequent, and rows do not depend on the length."""
FREE_TEXTS = 16
"""Batches of sentences in any order."""


def codes_of_registers(task: Task, generator: np.random.Generator, *, free_order: bool = True) -> StateCodes:
    """The registers of a task in two layers, and what stories show of them.

    With `free_order` also what the rules of the registers say about sentences in any order, without labels.
    """
    stories = sample_stories(task, generator)
    layout = assign_registers(task, list(islice(stories, DEPENDENCY_BATCHES)))
    rows = collect_rows(endless(lambda: labeled_rows(next(stories), layout)))
    if free_order:
        assert task.question is not None
        grammar = free_order_grammar(task.question.n_answers)
        texts = (random_prefixes(grammar, 128, 100, generator) for _ in range(FREE_TEXTS))
        rows = unique_rows(np.concatenate([rows, *(unlabeled_rows(words, layout) for words in texts)]))
    return StateCodes(layout.heads, layout.starts, rows)


def sample_stories(task: Task, generator: np.random.Generator, *, batch: int = 256) -> Iterator[Batch]:
    """Endless batches of short stories, each batch of one length."""
    lengths = [length for length in range(2, MAX_STORY + 1) if has_words(task, length)]
    while True:
        yield task.sample(batch, int(generator.choice(lengths)), generator)


def has_words(task: Task, length: int) -> bool:
    """Whether the task has words of this length."""
    try:
        task.sampler.check_length(length)
    except InvalidConfig:
        return False
    return True


def labeled_rows(batch: Batch, layout: RegisterLayout) -> Ints:
    """The positions of stories with their labels, as rows of `StateCodes`."""
    values = layout.parts[np.concatenate([batch.before[:, None], batch.states], axis=1)]
    answers = np.full(batch.inputs.shape, MISSING)
    if batch.answers is not None:
        answers[:, -1] = batch.answers
    return _position_rows(batch.inputs, values, batch.states, answers, layout)


def unlabeled_rows(words: Ints, layout: RegisterLayout) -> Ints:
    """The positions of words whose registers, and the answers that they determine, follow from the rules."""
    values = layout.values(words)
    return _position_rows(words, values, np.full(words.shape, MISSING), layout.answers(words, values), layout)


def _position_rows(inputs: Ints, values: Ints, labels: Ints, answers: Ints, layout: RegisterLayout) -> Ints:
    B, L = inputs.shape
    last = np.concatenate([np.full((B, 1), MISSING), inputs[:, :-1].astype(np.int64)], axis=1)
    paths = layout.paths(inputs, values)
    before, after = (part.reshape(B * L, -1) for part in (paths[:, :-1], paths[:, 1:]))
    return pack_rows(inputs.ravel(), before, after, labels.ravel(), answers.ravel(), last.ravel())


HeadContent = tuple[str, int]
"""What a head holds: ("now", register), ("late", register: its value one symbol earlier) or ("query", 0)."""


@dataclass(frozen=True, eq=False)
class RegisterLayout:
    """Which register every head of two layers holds, and how the registers change."""

    layers: tuple[tuple[HeadContent, ...], tuple[HeadContent, ...]]
    heads: tuple[tuple[int, ...], tuple[int, ...]]
    """Indices of every head."""
    parts: Ints
    """n k: the value of every register in every state."""
    queries: Ints
    """A A: the index of a query head after two symbols."""
    start: Ints
    """k: the value of every register before the first symbol."""
    rules: tuple[Ints, ...]
    """For every register K A d: the value after each symbol at each value, given one of K joint values of the lower
    registers (K = 1 for those); see `complete` for what no word shows."""
    lower: tuple[int, ...]
    """The registers whose change depends on the symbol alone."""
    answer_rules: dict[int, tuple[int, Ints]]
    """For every index of a query head but 0: the register that determines the answer, and the answer per value."""

    @property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """The index of every head before the first symbol."""
        return tuple(tuple(self._initial(kind) for kind in layer) for layer in self.layers)

    def _initial(self, kind: HeadContent) -> int:
        return 0 if kind[0] == "query" else int(self.start[kind[1]])

    def values(self, inputs: Ints) -> Ints:
        """B L -> B (L + 1) k: every register before, between and after the symbols of words, by the rules alone."""
        B, L = inputs.shape
        paths = np.empty((B, L + 1, len(self.rules)), np.int64)
        paths[:, 0] = self.start
        sizes = tuple(self.rules[k].shape[2] for k in self.lower)
        for t in range(L):
            below = (
                np.ravel_multi_index(tuple(paths[:, t, k] for k in self.lower), sizes) if sizes else np.zeros(B, int)
            )
            for k, moves in enumerate(self.rules):
                paths[:, t + 1, k] = moves[0 if k in self.lower else below, inputs[:, t], paths[:, t, k]]
        return paths

    def paths(self, inputs: Ints, values: Ints) -> Ints:
        """B (L + 1) r: the index of every head of both layers, along words and the values of their registers."""
        return np.stack([self._path(kind, inputs, values) for layer in self.layers for kind in layer], axis=2)

    def answers(self, inputs: Ints, values: Ints) -> Ints:
        """B L: the answers to the queries of words, MISSING where there is no query or the answer is not known."""
        answers = np.full(inputs.shape, MISSING)
        queries = self.queries[inputs[:, :-1], inputs[:, 1:]]
        for index, (register, answer) in self.answer_rules.items():
            rows, times = np.nonzero(queries == index)
            answers[rows, times + 1] = answer[values[rows, times + 2, register]]
        return answers

    def _path(self, kind: HeadContent, inputs: Ints, values: Ints) -> Ints:
        content, register = kind
        if content == "query":
            after = self.queries[inputs[:, :-1], inputs[:, 1:]]
            return np.concatenate([np.zeros((len(inputs), 2), after.dtype), after], axis=1)
        path = values[:, :, register]
        return path if content == "now" else np.concatenate([path[:, :1], path[:, :-1]], axis=1)


def assign_registers(task: Task, seen: Sequence[Batch]) -> RegisterLayout:
    """The registers of a task in two layers of the sizes it names; below those that depend on the symbol alone."""
    if task.layers is None or len(task.layers) != 2 or not task.registers:
        raise InvalidConfig(f"{task.name} names no registers and no two layers to put them into.")
    parts = np.stack([register.of_state for register in task.registers], axis=1)
    before, symbols, after = _steps(seen)
    own = [
        is_function_of(np.stack([parts[before, k], symbols], axis=1), parts[after, k]) for k in range(parts.shape[1])
    ]
    lower = tuple(k for k in range(parts.shape[1]) if own[k])
    upper = tuple(k for k in range(parts.shape[1]) if not own[k])
    sizes = parts.max(axis=0) + 1
    joint = np.ravel_multi_index(tuple(parts[before][:, lower].T), tuple(sizes[list(lower)])) if lower else 0 * before
    for k in upper:
        if not is_function_of(np.stack([joint, parts[before, k], symbols], axis=1), parts[after, k]):
            raise InvalidInput(
                f"{task.registers[k].name} depends on more than the symbol and what a first layer can hold; "
                "two layers are not enough for it."
            )
    below: list[HeadContent] = [("now", k) for k in lower] + [("late", k) for k in lower]
    queries = _queries(seen, task.machine.n_symbols)
    if queries.any():
        below.append(("query", 0))
    contents = (below, [("now", k) for k in upper or lower])  # a second layer with nothing of its own repeats the first
    layers = tuple(_distribute(kinds, len(sizes), task) for kinds, sizes in zip(contents, task.layers, strict=True))
    rules = tuple(
        transition_rule(
            joint * (k in upper), symbols, parts[before, k], parts[after, k], task.machine.n_symbols, int(sizes[k])
        )
        for k in range(parts.shape[1])
    )
    start = parts[task.machine.start]
    answer_rules = _answer_rules(seen, parts, queries, rules)
    return RegisterLayout(layers, task.layers, parts, queries, start, rules, lower, answer_rules)  # type: ignore[arg-type]


def _steps(seen: Sequence[Batch]) -> tuple[Ints, Ints, Ints]:
    """(label before, symbol, label after) of every distinct step."""
    rows = []
    for batch in seen:
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1)
        rows.append(np.stack([before.ravel(), batch.inputs.ravel(), batch.states.ravel()], axis=1).astype(np.int64))
    before, symbols, after = np.unique(np.concatenate(rows), axis=0).T
    return before, symbols, after


def _queries(seen: Sequence[Batch], symbols: int) -> Ints:
    """A A: for the last two symbols of words with a question, one more than the number of the first; else 0."""
    pairs: Bools = np.zeros((symbols, symbols), bool)
    for batch in seen:
        if batch.answers is not None:
            pairs[batch.inputs[:, -2], batch.inputs[:, -1]] = True
    number = np.cumsum(pairs.any(axis=1))
    return np.where(pairs, number[:, None], 0)


def _answer_rules(
    seen: Sequence[Batch], parts: Ints, queries: Ints, rules: Sequence[Ints]
) -> dict[int, tuple[int, Ints]]:
    """For every query a register that alone determines the answer; rather one that the queried symbol changes."""
    ends = [
        np.column_stack([queries[batch.inputs[:, -2], batch.inputs[:, -1]], parts[batch.states[:, -1]], batch.answers])
        for batch in seen
        if batch.answers is not None
    ]
    answer_rules: dict[int, tuple[int, Ints]] = {}
    rows = np.unique(np.concatenate(ends), axis=0) if ends else np.zeros((0, 2), int)
    for index in np.unique(rows[:, 0]).tolist():
        of = rows[rows[:, 0] == index]
        symbol = int(np.flatnonzero((queries == index).any(axis=1))[0])
        moved = [bool((moves[:, symbol] != np.arange(moves.shape[2])).any()) for moves in rules]
        for k in sorted(range(parts.shape[1]), key=lambda k: not moved[k]):
            if is_function_of(of[:, [1 + k]], of[:, -1]):
                answer = np.full(parts[:, k].max() + 1, MISSING)
                answer[of[:, 1 + k]] = of[:, -1]
                answer_rules[index] = (k, answer)
                break
    return answer_rules


def transition_rule(below: Ints, symbols: Ints, before: Ints, after: Ints, A: int, d: int) -> Ints:
    """K A d: the value after each symbol at each value, given what it depends on; as counted, and completed."""
    shape = (int(below.max(initial=0)) + 1, A, d)
    table, seen = np.zeros(shape, np.int64), np.zeros(shape, bool)
    table[below, symbols, before] = after
    seen[below, symbols, before] = True
    return complete(table.reshape(-1, d), seen.reshape(-1, d)).reshape(shape)


def _distribute(kinds: list[HeadContent], heads: int, task: Task) -> tuple[HeadContent, ...]:
    """One content for every head; surplus heads hold the same contents once more."""
    if heads < len(kinds):
        raise InvalidConfig(f"{task.name} takes {len(kinds)} registers in a layer of {heads} heads.")
    return tuple(kinds[head % len(kinds)] for head in range(heads))

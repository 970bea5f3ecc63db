"""Supervision for a stack of two layers: which register sits in which layer, and the targets that stories give.

    R  rows     r  heads of a layer     d  indices of a head     k  registers     A  symbols

The task names the registers that a state consists of. `assign_registers` counts functional dependencies in stories: a
register whose change depends on the symbol alone goes into the first layer, the others into the second.
`collect_targets` then lists the distinct inputs, transitions and outputs of both layers. With the index of every head
known at every symbol nothing depends on time, so there are few distinct rows, however many stories they come from:
windows of two symbols for the first layer, windows of two (symbol, first indices) for the second, and the registers and
the answer at a (symbol, first indices, second indices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.tasks import Batch, Task


def is_function_of(keys: Ints, values: Ints) -> bool:
    """Whether the values are a function of the rows of keys: equal rows always have equal values."""
    pairs = np.unique(np.concatenate([keys, values[:, None]], axis=1), axis=0)
    return len(np.unique(pairs[:, :-1], axis=0)) == len(pairs)


def transition_rule(below: Ints, symbols: Ints, before: Ints, after: Ints, A: int, d: int) -> Ints:
    """K A d: the value after each symbol at each value, given what it depends on; as counted, and completed."""
    shape = (int(below.max(initial=0)) + 1, A, d)
    table, seen = np.zeros(shape, np.int64), np.zeros(shape, bool)
    table[below, symbols, before] = after
    seen[below, symbols, before] = True
    return complete(table.reshape(-1, d), seen.reshape(-1, d)).reshape(shape)


def complete(table: Ints, seen: Bools) -> Ints:
    """Tables (R d) with entries that were not seen: a constant where all seen entries are one, else the identity."""
    d = table.shape[1]
    to = np.where(seen, table, d).min(axis=1, keepdims=True)
    resets = (np.where(seen, table, to) == to).all(axis=1, keepdims=True) & (to < d)
    resets &= ~(seen & (table == np.arange(d))).any(axis=1, keepdims=True)
    return np.where(seen, table, np.where(resets, to, np.arange(d)))


def unique_rows(rows: Ints) -> Ints:
    """The distinct rows, in the order of their bytes."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return np.unique(packed).view(rows.dtype).reshape(-1, rows.shape[1])


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

    def heads_along(self, inputs: Ints, values: Ints) -> tuple[Ints, Ints]:
        """For both layers B (L + 1) r: the index of every head, along words and the values of their registers."""
        lower, upper = (np.stack([self._path(kind, inputs, values) for kind in layer], axis=2) for layer in self.layers)
        return lower, upper

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


def _distribute(kinds: list[HeadContent], heads: int, task: Task) -> tuple[HeadContent, ...]:
    """One content for every head; surplus heads hold the same contents once more."""
    if heads < len(kinds):
        raise InvalidConfig(f"{task.name} takes {len(kinds)} registers in a layer of {heads} heads.")
    return tuple(kinds[head % len(kinds)] for head in range(heads))


MAX_STORY = 80
"""Tokens of a story: in short stories every transition is frequent, and rows do not depend on the length."""
UNLABELLED_BATCHES = 16
"""Batches of words without labels, ..."""
UNQUERIED = 4096
"""... and about how many of their positions without a query have a target for the read-out."""


@dataclass(frozen=True, eq=False)
class HeadTargets:
    """The tables of one head."""

    table: Ints
    """R d: the index after every window at every index; see `complete` for what no story shows."""
    seen: Bools
    """R d: whether a story shows it."""


@dataclass(frozen=True, eq=False)
class StackTargets:
    """The distinct inputs, transitions and outputs of two layers that occur in stories."""

    windows: tuple[Ints, Ints]
    """R 2 for both layers: symbols, or numbers of inputs; MISSING before the word began."""
    moves: tuple[tuple[HeadTargets, ...], tuple[HeadTargets, ...]]
    """For every head of both layers."""
    inputs: Ints
    """R (1 + r): a symbol, and the indices of the first layer after it."""
    reads: Ints
    """R (1 + r): the number of an input, and the indices of the second layer after it ..."""
    parts: Ints
    """R k: ... the value of every register there ..."""
    answers: Ints
    """R: ... and the answer, MISSING where there is no query."""


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


def collect_targets(
    batches: Iterator[Batch], layout: RegisterLayout, unlabelled: Iterator[Ints] | None = None, *, patience: int = 8
) -> StackTargets:
    """Read stories until nothing new came for long: `patience` batches, or half as many as it took so far.

    `unlabelled` are batches of words without labels, of other kinds than the stories: their registers follow from the
    rules that were counted. `UNLABELLED_BATCHES` of them are read.
    """
    seen = unique_rows(labelled_rows(next(batches), layout))
    count = last_new = 1
    while count - last_new < max(patience, last_new // 2):
        met = unique_rows(np.concatenate([seen, labelled_rows(next(batches), layout)]))
        count += 1
        last_new = count if len(met) > len(seen) else last_new
        seen = met
    more = [unlabelled_rows(words, layout) for words in islice(unlabelled or (), UNLABELLED_BATCHES)]
    return make_targets(seen, unique_rows(np.concatenate([seen, *more])), layout)


def unlabelled_rows(words: Ints, layout: RegisterLayout) -> Ints:
    """The positions of words whose registers follow from the rules."""
    values = layout.values(words)
    return position_rows(words, values, layout.answers(words, values), layout)


def labelled_rows(batch: Batch, layout: RegisterLayout) -> Ints:
    """The positions of stories with their labels."""
    states = np.concatenate([batch.before[:, None], batch.states], axis=1)
    answers = np.full(batch.inputs.shape, MISSING)
    if batch.answers is not None:
        answers[:, -1] = batch.answers
    return position_rows(batch.inputs, layout.parts[states], answers, layout)


def position_rows(inputs: Ints, values: Ints, answers: Ints, layout: RegisterLayout) -> Ints:
    """One row for every symbol of every word.

    Columns: symbol, lower indices, upper indices (before it); the same (after it); registers; answer or MISSING.
    """
    lower, upper = layout.heads_along(inputs, values)
    B, L = inputs.shape
    symbols = np.concatenate([np.full((B, 1), MISSING), inputs.astype(np.int64)], axis=1)
    whole = np.concatenate([symbols[..., None], lower, upper], axis=2)
    targets = np.concatenate([values[:, 1:], answers[..., None]], axis=2)
    return np.concatenate([whole[:, :-1], whole[:, 1:], targets], axis=2).reshape(B * L, -1).astype(np.int16)


def make_targets(labelled: Ints, rows: Ints, layout: RegisterLayout) -> StackTargets:
    """The targets in distinct rows of `position_rows`; reads are those with labels, with a query, and some others."""
    lower, upper = (len(layer) for layer in layout.layers)
    wide = 1 + lower + upper
    rows = rows.astype(np.int64)
    before, after = rows[:, :wide], rows[:, wide : 2 * wide]
    symbols, symbol_window = np.unique(np.stack([before[:, 0], after[:, 0]], axis=1), axis=0, return_inverse=True)
    inputs, number = np.unique(after[:, : 1 + lower], axis=0, return_inverse=True)
    # what precedes a symbol is itself an input, except at the beginning of a word
    last = _numbers(before[:, : 1 + lower], inputs)
    pairs, input_window = np.unique(np.stack([last, number.ravel()], axis=1), axis=0, return_inverse=True)
    unqueried = rows[rows[:, -1] == MISSING]
    kept = np.concatenate([labelled, rows[rows[:, -1] != MISSING], unqueried[:: max(1, len(unqueried) // UNQUERIED)]])[
        :, wide:
    ]
    reads = np.unique(np.column_stack([_numbers(kept[:, : 1 + lower], inputs), kept[:, 1 + lower :]]), axis=0)
    moves = []
    for layer, (count, begin, window, of) in enumerate(
        ((lower, 1, symbol_window, symbols), (upper, 1 + lower, input_window, pairs))
    ):
        moves.append(
            tuple(
                _head_targets(
                    window.ravel(), before[:, begin + h], after[:, begin + h], len(of), layout.heads[layer][h]
                )
                for h in range(count)
            )
        )
    return StackTargets(
        windows=(symbols, pairs), moves=(moves[0], moves[1]), inputs=inputs, reads=reads[:, : 1 + upper],
        parts=reads[:, 1 + upper : -1], answers=reads[:, -1],
    )  # fmt: skip


def _head_targets(window: Ints, before: Ints, after: Ints, windows: int, d: int) -> HeadTargets:
    table, seen = np.zeros((windows, d), np.int64), np.zeros((windows, d), bool)
    table[window, before] = after
    seen[window, before] = True
    assert np.array_equal(table[window, before], after), (
        "the index of a head is not a function of its window and the index before"
    )
    return HeadTargets(complete(table, seen), seen)


def _numbers(rows: Ints, among: Ints) -> Ints:
    """The number of every row among others; MISSING for those before the beginning of a word."""
    numbers = {tuple(row): i for i, row in enumerate(among.tolist())}
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return np.array([numbers.get(tuple(row), MISSING) for row in distinct.tolist()])[which.ravel()]

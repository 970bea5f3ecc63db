"""Lessons for a stack: every different thing that stories show of what its layers read, do and say.

    R  rows     r  heads of a layer     d  indices of a head

With the index of every head known at every symbol, nothing depends on time, and there are few different rows, however
many stories they came from: windows of two symbols for the first layer, windows of two (symbol, first indices) for the
second, and what is to be said at a (symbol, first indices, second indices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from detent._types import MISSING, Bools, Ints
from detent.errors import InvalidConfig, InvalidInput
from detent.tasks import Batch, Task

# -- Count what depends on what: whether some columns determine another, and the moves that this makes.


def determined(keys: Ints, values: Ints) -> bool:
    """Whether equal rows of keys always come with equal values."""
    pairs = np.unique(np.concatenate([keys, values[:, None]], axis=1), axis=0)
    return len(np.unique(pairs[:, :-1], axis=0)) == len(pairs)


def rule(below: Ints, symbols: Ints, before: Ints, after: Ints, A: int, d: int) -> Ints:
    """K A d: where each symbol sends each value, given what it depends on; as counted, and completed."""
    shape = (int(below.max(initial=0)) + 1, A, d)
    table, seen = np.zeros(shape, np.int64), np.zeros(shape, bool)
    table[below, symbols, before] = after
    seen[below, symbols, before] = True
    return completed(table.reshape(-1, d), seen.reshape(-1, d)).reshape(shape)


def completed(table: Ints, seen: Bools) -> Ints:
    """Moves (R d) with those that nothing shows: where all that were seen go to one index these go there, else none."""
    d = table.shape[1]
    to = np.where(seen, table, d).min(axis=1, keepdims=True)
    resets = (np.where(seen, table, to) == to).all(axis=1, keepdims=True) & (to < d)
    resets &= ~(seen & (table == np.arange(d))).any(axis=1, keepdims=True)
    return np.where(seen, table, np.where(resets, to, np.arange(d)))


def different(rows: Ints) -> Ints:
    """The different rows, in the order of their bytes."""
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    return np.unique(packed).view(rows.dtype).reshape(-1, rows.shape[1])


# -- Registers in layers: which parts of a state the first layer can carry, and which need it; found by counting.

Kind = tuple[str, int]
"""What a head carries: ("now", register), ("late", register) or ("asked", 0)."""


@dataclass(frozen=True, eq=False)
class Stages:
    """What every head of two layers carries."""

    layers: tuple[tuple[Kind, ...], tuple[Kind, ...]]
    heads: tuple[tuple[int, ...], tuple[int, ...]]
    """Indices of every head."""
    parts: Ints
    """n k: the value of every register in every state."""
    asked: Ints
    """A A: the index of an asking head after two symbols."""
    start: Ints
    """k: the value of every register before the first symbol."""
    rules: tuple[Ints, ...]
    """For every register K A d: where a symbol sends each value, given one of K joint values of the lower registers
    (K = 1 for those); see `completed` for what no word shows."""
    lower: tuple[int, ...]
    """The registers that move by the symbol alone."""
    replies: dict[int, tuple[int, Ints]]
    """For every index of an asking head but 0: the register that tells the answer, and the answer for every value."""

    @property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """The index of every head before the first symbol."""
        return tuple(tuple(self._begin(kind) for kind in layer) for layer in self.layers)

    def _begin(self, kind: Kind) -> int:
        return 0 if kind[0] == "asked" else int(self.start[kind[1]])

    def values(self, inputs: Ints) -> Ints:
        """B L -> B (L + 1) k: every register before, between and after the symbols of any words, by the rules alone."""
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
        """B L: the answers to what any words ask, MISSING where they ask nothing or nothing is known."""
        found = np.full(inputs.shape, MISSING)
        asked = self.asked[inputs[:, :-1], inputs[:, 1:]]
        for index, (register, answer) in self.replies.items():
            rows, times = np.nonzero(asked == index)
            found[rows, times + 1] = answer[values[rows, times + 2, register]]
        return found

    def _path(self, kind: Kind, inputs: Ints, values: Ints) -> Ints:
        carried, register = kind
        if carried == "asked":
            after = self.asked[inputs[:, :-1], inputs[:, 1:]]
            return np.concatenate([np.zeros((len(inputs), 2), after.dtype), after], axis=1)
        path = values[:, :, register]
        return path if carried == "now" else np.concatenate([path[:, :1], path[:, :-1]], axis=1)


def stage(task: Task, seen: Sequence[Batch]) -> Stages:
    """The registers of a task in two layers of the sizes it names, as far as these words show what they depend on."""
    if task.layers is None or len(task.layers) != 2 or not task.registers:
        raise InvalidConfig(f"{task.name} names no registers and no two layers to put them into.")
    parts = np.stack([register.of_state for register in task.registers], axis=1)
    before, symbols, after = _steps(seen)
    own = [determined(np.stack([parts[before, k], symbols], axis=1), parts[after, k]) for k in range(parts.shape[1])]
    lower = tuple(k for k in range(parts.shape[1]) if own[k])
    upper = tuple(k for k in range(parts.shape[1]) if not own[k])
    sizes = parts.max(axis=0) + 1
    joint = np.ravel_multi_index(tuple(parts[before][:, lower].T), tuple(sizes[list(lower)])) if lower else 0 * before
    for k in upper:
        if not determined(np.stack([joint, parts[before, k], symbols], axis=1), parts[after, k]):
            raise InvalidInput(
                f"{task.registers[k].name} depends on more than the symbol and what a first layer can carry; "
                "two layers are not enough for it."
            )
    below: list[Kind] = [("now", k) for k in lower] + [("late", k) for k in lower]
    asked = _asked(seen, task.machine.n_symbols)
    if asked.any():
        below.append(("asked", 0))
    wanted = (below, [("now", k) for k in upper])
    layers = tuple(_dealt(kinds, len(sizes), task) for kinds, sizes in zip(wanted, task.layers, strict=True))
    rules = tuple(
        rule(joint * (k in upper), symbols, parts[before, k], parts[after, k], task.machine.n_symbols, int(sizes[k]))
        for k in range(parts.shape[1])
    )
    start = parts[task.machine.start]
    replies = _replies(seen, parts, asked, rules)
    return Stages(layers, task.layers, parts, asked, start, rules, lower, replies)  # type: ignore[arg-type]


def _steps(seen: Sequence[Batch]) -> tuple[Ints, Ints, Ints]:
    """(label before, symbol, label after) of every different step."""
    rows = []
    for batch in seen:
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1)
        rows.append(np.stack([before.ravel(), batch.inputs.ravel(), batch.states.ravel()], axis=1).astype(np.int64))
    before, symbols, after = np.unique(np.concatenate(rows), axis=0).T
    return before, symbols, after


def _asked(seen: Sequence[Batch], symbols: int) -> Ints:
    """A A: for the last two symbols of words that ask something, one more than the number of the first; else 0."""
    pairs: Bools = np.zeros((symbols, symbols), bool)
    for batch in seen:
        if batch.answers is not None:
            pairs[batch.inputs[:, -2], batch.inputs[:, -1]] = True
    number = np.cumsum(pairs.any(axis=1))
    return np.where(pairs, number[:, None], 0)


def _replies(seen: Sequence[Batch], parts: Ints, asked: Ints, rules: Sequence[Ints]) -> dict[int, tuple[int, Ints]]:
    """For everything that is asked a register that alone tells the answer; rather one that the asked symbol moves."""
    ends = [
        np.column_stack([asked[batch.inputs[:, -2], batch.inputs[:, -1]], parts[batch.states[:, -1]], batch.answers])
        for batch in seen
        if batch.answers is not None
    ]
    found: dict[int, tuple[int, Ints]] = {}
    rows = np.unique(np.concatenate(ends), axis=0) if ends else np.zeros((0, 2), int)
    for index in np.unique(rows[:, 0]).tolist():
        of = rows[rows[:, 0] == index]
        symbol = int(np.flatnonzero((asked == index).any(axis=1))[0])
        moved = [bool((moves[:, symbol] != np.arange(moves.shape[2])).any()) for moves in rules]
        for k in sorted(range(parts.shape[1]), key=lambda k: not moved[k]):
            if determined(of[:, [1 + k]], of[:, -1]):
                answer = np.full(parts[:, k].max() + 1, MISSING)
                answer[of[:, 1 + k]] = of[:, -1]
                found[index] = (k, answer)
                break
    return found


def _dealt(kinds: list[Kind], heads: int, task: Task) -> tuple[Kind, ...]:
    """One kind for every head; heads that are left carry the same again."""
    if heads < len(kinds):
        raise InvalidConfig(f"{task.name} takes {len(kinds)} registers in a layer of {heads} heads.")
    return tuple(kinds[head % len(kinds)] for head in range(heads))


LONGEST = 80
"""Tokens of a story: in short ones everything is frequent, and rows do not tell how long theirs was."""
FURTHER = 16
"""Batches of words without labels, ..."""
SILENT = 4096
"""... and how many of their positions at which nothing is asked are read out, about."""


@dataclass(frozen=True, eq=False)
class Moves:
    """What one head does."""

    table: Ints
    """R d: where every index goes in every window; where no story says so, see `completed`."""
    seen: Bools
    """R d: whether a story says so."""


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is taught."""

    windows: tuple[Ints, Ints]
    """R 2 for both layers: symbols, or numbers of inputs; MISSING before the word began."""
    moves: tuple[tuple[Moves, ...], tuple[Moves, ...]]
    """For every head of both layers."""
    inputs: Ints
    """R (1 + r): a symbol, and the indices that the first layer has moved to."""
    reads: Ints
    """R (1 + r): the number of an input, and the indices that the second layer has moved to ..."""
    parts: Ints
    """R k: ... the value of every register there ..."""
    answers: Ints
    """R: ... and the answer, MISSING where nothing is asked."""


def stories(task: Task, generator: np.random.Generator, *, batch: int = 256) -> Iterator[Batch]:
    """Batches of short stories without end, each batch of one length."""
    lengths = [length for length in range(2, LONGEST + 1) if _told(task, length)]
    while True:
        yield task.sample(batch, int(generator.choice(lengths)), generator)


def _told(task: Task, length: int) -> bool:
    try:
        task.sampler.check_length(length)
    except InvalidConfig:
        return False
    return True


def learn_from(
    told: Iterator[Batch], stages: Stages, further: Iterator[Ints] | None = None, *, patience: int = 8
) -> Lessons:
    """Read stories until nothing new came for long: `patience` batches, or half as many as it took so far.

    `further` are batches of words without labels, of other kinds than the stories: their registers follow from the
    rules that were counted. `FURTHER` batches of them are read.
    """
    seen = different(labelled(next(told), stages))
    batches = last_new = 1
    while batches - last_new < max(patience, last_new // 2):
        met = different(np.concatenate([seen, labelled(next(told), stages)]))
        batches += 1
        last_new = batches if len(met) > len(seen) else last_new
        seen = met
    more = [unlabelled(words, stages) for words in islice(further or (), FURTHER)]
    return lessons_of(seen, different(np.concatenate([seen, *more])), stages)


def unlabelled(words: Ints, stages: Stages) -> Ints:
    """The positions of words whose registers are worked out by the rules."""
    values = stages.values(words)
    return positions(words, values, stages.answers(words, values), stages)


def labelled(batch: Batch, stages: Stages) -> Ints:
    """The positions of stories with their labels."""
    states = np.concatenate([batch.before[:, None], batch.states], axis=1)
    answers = np.full(batch.inputs.shape, MISSING)
    if batch.answers is not None:
        answers[:, -1] = batch.answers
    return positions(batch.inputs, stages.parts[states], answers, stages)


def positions(inputs: Ints, values: Ints, answers: Ints, stages: Stages) -> Ints:
    """One row for every symbol of every word.

    Columns: symbol, lower indices, upper indices (before it); the same (after it); registers; answer or MISSING.
    """
    lower, upper = stages.heads_along(inputs, values)
    B, L = inputs.shape
    symbols = np.concatenate([np.full((B, 1), MISSING), inputs.astype(np.int64)], axis=1)
    whole = np.concatenate([symbols[..., None], lower, upper], axis=2)
    said = np.concatenate([values[:, 1:], answers[..., None]], axis=2)
    return np.concatenate([whole[:, :-1], whole[:, 1:], said], axis=2).reshape(B * L, -1).astype(np.int16)


def lessons_of(labelled: Ints, rows: Ints, stages: Stages) -> Lessons:
    """The lessons in different rows of `positions`; of reads those with labels, those that ask, and some others."""
    lower, upper = (len(layer) for layer in stages.layers)
    wide = 1 + lower + upper
    rows = rows.astype(np.int64)
    before, after = rows[:, :wide], rows[:, wide : 2 * wide]
    symbols, symbol_window = np.unique(np.stack([before[:, 0], after[:, 0]], axis=1), axis=0, return_inverse=True)
    inputs, number = np.unique(after[:, : 1 + lower], axis=0, return_inverse=True)
    # what stood before a symbol is itself an input, but for the beginning of a word
    last = _numbers(before[:, : 1 + lower], inputs)
    pairs, input_window = np.unique(np.stack([last, number.ravel()], axis=1), axis=0, return_inverse=True)
    silent = rows[rows[:, -1] == MISSING]
    kept = np.concatenate([labelled, rows[rows[:, -1] != MISSING], silent[:: max(1, len(silent) // SILENT)]])[:, wide:]
    reads = np.unique(np.column_stack([_numbers(kept[:, : 1 + lower], inputs), kept[:, 1 + lower :]]), axis=0)
    moves = []
    for layer, (count, begin, window, of) in enumerate(
        ((lower, 1, symbol_window, symbols), (upper, 1 + lower, input_window, pairs))
    ):
        moves.append(
            tuple(
                _moves(window.ravel(), before[:, begin + h], after[:, begin + h], len(of), stages.heads[layer][h])
                for h in range(count)
            )
        )
    return Lessons(
        windows=(symbols, pairs), moves=(moves[0], moves[1]), inputs=inputs, reads=reads[:, : 1 + upper],
        parts=reads[:, 1 + upper : -1], answers=reads[:, -1],
    )  # fmt: skip


def _moves(window: Ints, before: Ints, after: Ints, windows: int, d: int) -> Moves:
    table, seen = np.zeros((windows, d), np.int64), np.zeros((windows, d), bool)
    table[window, before] = after
    seen[window, before] = True
    assert np.array_equal(table[window, before], after), "a head would have to go two ways"
    return Moves(completed(table, seen), seen)


def _numbers(rows: Ints, among: Ints) -> Ints:
    """The number of every row among others; MISSING for those of a word that had not begun."""
    found = {tuple(row): i for i, row in enumerate(among.tolist())}
    different, which = np.unique(rows, axis=0, return_inverse=True)
    return np.array([found.get(tuple(row), MISSING) for row in different.tolist()])[which.ravel()]

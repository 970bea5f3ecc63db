"""Registers in layers: which parts of a state the first layer can carry, and which need it; found by counting.

    B  words     L  their length     n  labels     A  symbols     r  heads of a layer

A state is made of registers. Some move by the symbol alone; the others move by the symbol and what the first kind held
before it. The first layer carries the first kind, as they are now and as they were one symbol ago, which its
convolution lets it do; and the symbol that the end of a word asks about. So the second layer, which carries the other
registers, finds all it depends on at the symbol itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detent.automata.running import Bools, Ints
from detent.errors import InvalidConfig, InvalidInput
from detent.tasks import Batch, Task
from detent.training.counting import NONE, determined, rule

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
        """B L: the answers to what any words ask, NONE where they ask nothing or nothing is known."""
        found = np.full(inputs.shape, NONE)
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


def stage(speaker: Task, seen: Sequence[Batch]) -> Stages:
    """The registers of a task in two layers of the sizes it names, as far as these words show what they depend on."""
    if speaker.layers is None or len(speaker.layers) != 2 or not speaker.registers:
        raise InvalidConfig(f"{speaker.name} names no registers and no two layers to put them into.")
    parts = np.stack([register.of_state for register in speaker.registers], axis=1)
    before, symbols, after = _steps(seen)
    own = [determined(np.stack([parts[before, k], symbols], axis=1), parts[after, k]) for k in range(parts.shape[1])]
    lower = tuple(k for k in range(parts.shape[1]) if own[k])
    upper = tuple(k for k in range(parts.shape[1]) if not own[k])
    sizes = parts.max(axis=0) + 1
    joint = np.ravel_multi_index(tuple(parts[before][:, lower].T), tuple(sizes[list(lower)])) if lower else 0 * before
    for k in upper:
        if not determined(np.stack([joint, parts[before, k], symbols], axis=1), parts[after, k]):
            raise InvalidInput(
                f"{speaker.registers[k].name} depends on more than the symbol and what a first layer can carry; "
                "two layers are not enough for it."
            )
    below: list[Kind] = [("now", k) for k in lower] + [("late", k) for k in lower]
    asked = _asked(seen, speaker.machine.n_symbols)
    if asked.any():
        below.append(("asked", 0))
    wanted = (below, [("now", k) for k in upper])
    layers = tuple(_dealt(kinds, len(sizes), speaker) for kinds, sizes in zip(wanted, speaker.layers, strict=True))
    rules = tuple(
        rule(joint * (k in upper), symbols, parts[before, k], parts[after, k], speaker.machine.n_symbols, int(sizes[k]))
        for k in range(parts.shape[1])
    )
    start = parts[speaker.machine.start]
    replies = _replies(seen, parts, asked, rules)
    return Stages(layers, speaker.layers, parts, asked, start, rules, lower, replies)  # type: ignore[arg-type]


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
                answer = np.full(parts[:, k].max() + 1, NONE)
                answer[of[:, 1 + k]] = of[:, -1]
                found[index] = (k, answer)
                break
    return found


def _dealt(kinds: list[Kind], heads: int, speaker: Task) -> tuple[Kind, ...]:
    """One kind for every head; heads that are left carry the same again."""
    if heads < len(kinds):
        raise InvalidConfig(f"{speaker.name} takes {len(kinds)} registers in a layer of {heads} heads.")
    return tuple(kinds[head % len(kinds)] for head in range(heads))

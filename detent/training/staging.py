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
    start: int
    """The state that words begin in."""

    @property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """The index of every head before the first symbol."""
        return tuple(tuple(self._begin(kind) for kind in layer) for layer in self.layers)

    def _begin(self, kind: Kind) -> int:
        return 0 if kind[0] == "asked" else int(self.parts[self.start, kind[1]])

    def follow(self, batch: Batch) -> tuple[Ints, Ints]:
        """For both layers B (L + 1) r: the index of every head before, between and after the symbols of whole words."""
        states = np.concatenate([batch.before[:, None], batch.states], axis=1)
        lower, upper = (np.stack([self._path(kind, batch, states) for kind in layer], axis=2) for layer in self.layers)
        return lower, upper

    def _path(self, kind: Kind, batch: Batch, states: Ints) -> Ints:
        carried, register = kind
        if carried == "asked":
            after = self.asked[batch.inputs[:, :-1], batch.inputs[:, 1:]]
            return np.concatenate([np.zeros((len(states), 2), after.dtype), after], axis=1)
        if carried == "late":
            states = np.concatenate([states[:, :1], states[:, :-1]], axis=1)
        return self.parts[states, register]


def stage(speaker: Task, seen: Sequence[Batch]) -> Stages:
    """The registers of a task in two layers of the sizes it names, as far as these words show what they depend on."""
    if speaker.layers is None or len(speaker.layers) != 2 or not speaker.registers:
        raise InvalidConfig(f"{speaker.name} names no registers and no two layers to put them into.")
    parts = np.stack([register.of_state for register in speaker.registers], axis=1)
    before, symbols, after = _steps(seen)
    own = [determined(np.stack([parts[before, k], symbols], axis=1), parts[after, k]) for k in range(parts.shape[1])]
    lower = [k for k in range(parts.shape[1]) if own[k]]
    upper = [k for k in range(parts.shape[1]) if not own[k]]
    for k in upper:
        keys = np.concatenate([parts[before][:, [*lower, k]], symbols[:, None]], axis=1)
        if not determined(keys, parts[after, k]):
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
    return Stages(layers, speaker.layers, parts, asked, speaker.machine.start)  # type: ignore[arg-type]


def determined(keys: Ints, values: Ints) -> bool:
    """Whether equal rows of keys always come with equal values."""
    pairs = np.unique(np.concatenate([keys, values[:, None]], axis=1), axis=0)
    return len(np.unique(pairs[:, :-1], axis=0)) == len(pairs)


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


def _dealt(kinds: list[Kind], heads: int, speaker: Task) -> tuple[Kind, ...]:
    """One kind for every head; heads that are left carry the same again."""
    if heads < len(kinds):
        raise InvalidConfig(f"{speaker.name} takes {len(kinds)} registers in a layer of {heads} heads.")
    return tuple(kinds[head % len(kinds)] for head in range(heads))

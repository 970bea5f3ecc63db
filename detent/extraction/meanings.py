"""What the indices of a head mean, one by one: found by counting over all configurations that words lead to.

An index means a value of a register if wherever the head is at that index the register has that value: at this symbol,
or at the one before. It means a symbol if that stands before the last one wherever the head is at that index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from detent.automata.running import Ints
from detent.extraction.earlier import last_symbols
from detent.extraction.extracted import Extracted
from detent.extraction.naming import arrivals


class Register(Protocol):
    """A part of the label that has a name, see `detent.tasks.Task.registers`."""

    @property
    def name(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...
    @property
    def of_state(self) -> Ints: ...


@dataclass(frozen=True)
class Meaning:
    """What a head stands for."""

    name: str
    values: dict[int, str]
    """For every index that is reached."""


def meanings(found: Extracted, registers: Sequence[Register]) -> list[Meaning | None]:
    """For every head of every layer what its indices mean; None where they determine none of the registers."""
    labels = arrivals(found)
    if labels is None:
        return [None] * len(found.start)
    symbols, before = np.nonzero(found.tables >= 0)
    after = found.tables[symbols, before]
    parts = [(register, np.where(labels >= 0, register.of_state[labels], -1)) for register in registers]
    previous = last_symbols(found)[before] if found.reach > 1 else np.full_like(before, -1)
    found_meanings = []
    for column in range(len(found.start)):
        index = found.configurations[after, column].astype(np.int64)
        candidates = [(register.name, register.values, values[after]) for register, values in parts]
        candidates += [
            (f"{register.name}, one symbol ago", register.values, values[before]) for register, values in parts
        ]
        meaning = next((one for one in (_meaning(index, *each) for each in candidates) if one is not None), None)
        found_meanings.append(meaning or _stood_before(index, previous, found.symbols))
    return found_meanings


def _meaning(index: Ints, name: str, names: tuple[str, ...], values: Ints) -> Meaning | None:
    """The meaning of the indices, if they tell these values and more than one of them."""
    known = values >= 0
    pairs = np.unique(np.stack([index[known], values[known]], axis=1), axis=0)
    if len(np.unique(pairs[:, 0])) < len(pairs) or len(np.unique(pairs[:, 1])) < 2:
        return None
    return Meaning(name, {k: names[value] for k, value in pairs.tolist()})


def _stood_before(index: Ints, previous: Ints, symbols: tuple[str, ...]) -> Meaning | None:
    """The meaning of indices that, but for the commonest, are each taken after one symbol alone."""
    rest = int(np.bincount(index).argmax())
    pairs = np.unique(np.stack([index, previous], axis=1)[(index != rest) & (previous >= 0)], axis=0)
    if not len(pairs) or len(np.unique(pairs[:, 0])) < len(pairs) or len(np.unique(pairs[:, 1])) < len(pairs):
        return None
    return Meaning("the symbol before, when it is asked for", {rest: "", **{k: symbols[a] for k, a in pairs.tolist()}})

"""What a head tracks of the past that a convolution lets it see: a value one symbol late, the symbol before another.

Counted over all steps of an exploration: the configuration before, the symbol, and the index after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from detent.automata.running import Ints

if TYPE_CHECKING:
    from detent.extraction.extracted import Extracted


def late(found: Extracted, column: int, known: Sequence[tuple[str, Ints]]) -> str | None:
    """The name of an invariant whose value before the last symbol is the head's index now, and the other way round."""
    symbols, before = np.nonzero(found.tables >= 0)
    index = found.configurations[found.tables[symbols, before], column]
    for name, values in known:
        held = values[before]
        if len(np.unique(held[held >= 0])) > 1 and _same_parts(index[held >= 0], held[held >= 0]):
            return f"{name}, one symbol ago"
    return None


def just_before(found: Extracted, column: int) -> str | None:
    """Which of some symbols stood before another one, if the last two symbols tell the index."""
    if found.reach < 2:
        return None
    last = last_symbols(found)
    symbols, before = np.nonzero(found.tables >= 0)
    index = found.configurations[found.tables[symbols, before], column]
    pairs = np.unique(np.stack([last[before], symbols, index], axis=1), axis=0)
    if len(np.unique(pairs[:, :2], axis=0)) < len(pairs):
        return None
    rest = np.bincount(pairs[:, 2]).argmax()
    marked = pairs[pairs[:, 2] != rest]
    if len(np.unique(marked[:, 1])) != 1 or len(np.unique(marked[:, 2])) != len(marked) or (marked[:, 0] < 0).any():
        return None
    names = ", ".join(found.symbols[a] for a in marked[:, 0].tolist())
    return f"which of {names} stands before {found.symbols[int(marked[0, 1])]!r}"


def last_symbols(found: Extracted) -> Ints:
    """n: the symbol that was read last in every configuration, -1 at the start."""
    inputs = found.configurations[:, -1].astype(np.int64)
    for layer in found.layers[:0:-1]:
        inputs = np.where(inputs >= 0, layer.inputs[inputs, 0], -1)
    return inputs


def _same_parts(one: Ints, other: Ints) -> bool:
    """Whether two columns part the rows alike."""
    pairs = len(np.unique(np.stack([one, other], axis=1), axis=0))
    return pairs == len(np.unique(one)) == len(np.unique(other))

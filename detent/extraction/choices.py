"""Which entry of a column of logits is the largest, by how much, and which comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detent.automata.running import Ints
from detent.errors import InvalidInput

Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Choices:
    """What columns of logits choose: the arg max, the lowest index on a tie."""

    best: Ints
    margins: Floats
    """By how much the best is ahead of the second; rounded down; infinite where there is nothing else to choose."""
    seconds: Ints
    """What would be chosen next."""

    @classmethod
    def among(cls, logits: Floats, what: str) -> Choices:
        """Along the last axis. The logits are used up: a large array is not copied."""
        held = np.ascontiguousarray(logits, np.float64)
        if not np.isfinite(held).all():
            raise InvalidInput(f"{what} are not all finite; such weights describe no machine.")
        best = held.argmax(-1)
        top = np.take_along_axis(held, best[..., None], -1)[..., 0]
        np.put_along_axis(held, best[..., None], -np.inf, -1)
        seconds = held.argmax(-1)
        second = np.take_along_axis(held, seconds[..., None], -1)[..., 0]
        # a difference of two numbers is rounded by less than half a unit; the one below is a margin for certain
        gaps = top - second
        margins = np.where(np.isinf(gaps), gaps, np.nextafter(gaps, 0.0))
        return cls(best.astype(np.int32), margins, seconds.astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Choices], axis: int) -> Choices:
        return cls(
            best=np.concatenate([part.best for part in parts], axis=axis),
            margins=np.concatenate([part.margins for part in parts], axis=axis),
            seconds=np.concatenate([part.seconds for part in parts], axis=axis),
        )

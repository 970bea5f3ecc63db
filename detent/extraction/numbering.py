"""Rows of integers and a number for each, and arrays that grow: what an exploration keeps its finds in."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detent.automata.running import Ints

_PER_KEY = 200
"""Bytes that a dictionary takes for a key and its number, about, beside the key itself."""


class Growing:
    """Rows of one shape, appended to without copying them all each time."""

    def __init__(self, width: int, dtype: DTypeLike) -> None:
        self._held: NDArray = np.empty((64, width), dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, rows: NDArray) -> None:
        wanted = self._count + len(rows)
        if wanted > len(self._held):
            larger = np.empty((max(wanted, 2 * len(self._held)), self._held.shape[1]), self._held.dtype)
            larger[: self._count] = self.rows
            self._held = larger
        self._held[self._count : wanted] = rows
        self._count = wanted

    @property
    def rows(self) -> NDArray:
        return self._held[: self._count]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes


class Numbering:
    """Different rows, numbered in the order in which they first came.

    >>> met = Numbering(2)
    >>> met.of(np.array([[5, 1], [0, 2], [5, 1]])).tolist(), len(met)
    ([0, 1, 0], 2)
    """

    def __init__(self, width: int) -> None:
        self._number: dict[bytes, int] = {}
        self._kept = Growing(width, np.int32)

    def __len__(self) -> int:
        return len(self._number)

    @property
    def rows(self) -> Ints:
        """The rows in the order of their numbers."""
        return self._kept.rows

    def of(self, rows: Ints) -> Ints:
        """The number of every row; those that were never seen get the next ones."""
        known, number = len(self), self._number
        raw = np.ascontiguousarray(rows, np.int32).tobytes()
        width = 4 * rows.shape[1]
        numbers = np.array([number.setdefault(raw[i : i + width], len(number)) for i in range(0, len(raw), width)], int)
        fresh = np.flatnonzero(numbers >= known)
        _, first = np.unique(numbers[fresh], return_index=True)
        self._kept.append(rows[fresh[first]])
        return numbers

    @property
    def nbytes(self) -> int:
        """What is held in memory, about."""
        return self._kept.nbytes + len(self) * (_PER_KEY + 4 * self.rows.shape[1])

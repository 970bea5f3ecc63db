"""What a sweep evaluates: anything that reads a stretch of words and goes on where it stopped."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from detent.evaluation.accuracy import Ints

Held = list[NDArray[Any]]
"""What a reader keeps between two stretches: arrays, so that a sweep can be put down and taken up again."""


class Reader(Protocol):
    """A network, a machine, a formula."""

    def __call__(self, inputs: Ints, held: Held | None) -> tuple[Ints, Held]:
        """(what is said after every symbol: B L, what to keep), from the symbols (B L) and what was kept before.

        `held` is None at the beginning of the words. In a sweep of questions what is said is the answer, and only the
        last one of a word counts.
        """

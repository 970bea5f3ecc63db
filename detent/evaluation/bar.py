"""The bar that accuracy is held against, and how many errors it takes to fall below it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from detent.errors import InvalidConfig


@dataclass(frozen=True)
class Bar:
    """Accuracy fails when it falls below `share`.

    >>> Bar(1.0).errors(512), Bar(0.9).errors(512), Bar(0.9).errors(10)
    (1, 52, 2)
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"a share of words that must be right is above 0 and at most 1; got {self.share}.")

    def errors(self, words: int) -> int:
        """The least number of wrong words at which the accuracy is below the bar."""
        # as people write it: the double next to 0.9 would ask for one error more or less where 10% is a whole number
        return int((1 - Fraction(str(self.share))) * words) + 1


EXACT, BASELINE = Bar(1.0), Bar(0.9)
"""The paper's bars for the NFSM and for the baselines."""

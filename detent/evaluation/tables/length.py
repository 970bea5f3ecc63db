"""A failing length as tables write it: a number, `>=` a number when no failure was found, or a cross when not learned.

>>> str(Length.read(">=512k")), str(median([Length(78), Length(83), Length(87), Length(91)]))
('≥512k', '85')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import total_ordering

from detent.errors import InvalidInput

NOT_LEARNED = "×"
UNITS = {"k": 1 << 10, "M": 1 << 20}


@total_ordering
@dataclass(frozen=True)
class Length:
    """The length of the first failure, or one up to which there is none."""

    value: int
    at_least: bool = False

    def __lt__(self, other: Length) -> bool:
        """One without a failure comes after all that fail, however short its sweep was."""
        return (self.at_least, self.value) < (other.at_least, other.value)

    def __str__(self) -> str:
        if not self.at_least:
            return str(self.value)
        for unit in ("M", "k"):
            if self.value and self.value % UNITS[unit] == 0:
                return f"≥{self.value // UNITS[unit]}{unit}"
        return f"≥{self.value}"

    @classmethod
    def read(cls, text: str) -> Length | None:
        """What is written in a table; None for a cross."""
        if text in ("x", NOT_LEARNED):
            return None
        digits = text.removeprefix(">=").removeprefix("≥")
        unit = UNITS.get(digits[-1:], 1)
        number = digits[:-1] if unit > 1 else digits
        if not number.isdecimal():
            raise InvalidInput(f"a failing length is 186, >=512k or x; got {text!r}.")
        return cls(int(number) * unit, text != digits)


def median(lengths: Sequence[Length]) -> Length | None:
    """The middle one, or the mean of the middle two rounded down; of a pair with one open end, the lower."""
    if not lengths:
        return None
    ordered = sorted(lengths)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if high.at_least else Length((low.value + high.value) // 2)


def spread(lengths: Sequence[Length]) -> str:
    """[least; greatest], empty for no lengths."""
    return f"[{min(lengths)}; {max(lengths)}]" if lengths else ""

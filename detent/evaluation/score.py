"""What came of a length sweep, as a value and as a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Accuracy over lengths, and the first length at which it falls below the bar."""

    task: str
    measure: str
    """`words`, every state right, or `questions`, the answer right."""
    bar: float
    """What accuracy must not fall below."""
    batch: int
    """Words per length."""
    seed: int
    """Of the words."""
    longest: int
    """The greatest length that was asked for."""
    failing: int | None
    """The smallest length tried at which accuracy is below the bar; None when there is none up to `longest`."""
    accuracies: dict[int, float]
    """Accuracy at every length that was tried; of words, at the powers of two."""
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether no failure was found."""
        return self.failing is None

    def row(self) -> dict[str, Any]:
        return {
            "task": self.task, "measure": self.measure, "bar": self.bar, "batch": self.batch, "words_seed": self.seed,
            "longest": self.longest, "failing_length": self.failing,
            "accuracies": {str(length): share for length, share in sorted(self.accuracies.items())},
            "seconds": round(self.seconds, 3),
        }  # fmt: skip

    def sentence(self) -> str:
        """The answer, in words."""
        kind = "every state" if self.measure == "words" else "the answer"
        share = "all" if self.bar == 1 else f"{self.bar:.0%}"
        if self.failing is None:
            return (
                f"{self.task}: no failure up to length {self.longest:,}, {kind} right in {share} of {self.batch} words"
            )
        return f"{self.task}: fails at length {self.failing:,}, {kind} right in less than {share} of {self.batch} words"

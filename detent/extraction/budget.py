"""How much an exploration may cost, and the sentence for one that costs more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from detent.errors import BudgetExceeded, InvalidConfig

GIGABYTE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of an exploration; each is looked at after every few thousand configurations."""

    configurations: int = 4_000_000
    seconds: float = 3600.0
    memory: int = 4 * GIGABYTE
    """Bytes, about: what the exploration itself holds."""
    begun: float = field(default_factory=time.monotonic, init=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.configurations, self.seconds, self.memory) <= 0:
            raise InvalidConfig(f"the limits of an exploration are positive; got {self}.")

    def afresh(self) -> Budget:
        """The same limits, the clock set to zero."""
        return Budget(configurations=self.configurations, seconds=self.seconds, memory=self.memory)

    def refuse(self, reached: int, waiting: int, nbytes: int) -> None:
        """Raise the error for what was found so far, if that is too much."""
        seconds = time.monotonic() - self.begun
        for name, spent, limit, unit in (
            ("configurations", reached, self.configurations, "configurations"),
            ("seconds", seconds, self.seconds, "seconds"),
            ("memory", nbytes, self.memory, "bytes"),
        ):
            if spent > limit:
                raise BudgetExceeded(
                    f"this model reached {reached:,} configurations ({waiting:,} of them not yet followed) "
                    f"in {seconds:.0f} s and {nbytes / GIGABYTE:.1f} GB, and it was allowed {limit:,} {unit}; "
                    f"give a larger Budget({name}=...), or a grammar, so that only its words are explored."
                )

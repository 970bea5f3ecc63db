"""A budget of work, counted in steps rather than in seconds, so that a search ends the same on every machine."""

from __future__ import annotations

from detent.errors import BudgetExceeded


class Work:
    """So many steps may be spent; a step is about the visit of one state by one symbol, a third of a microsecond."""

    def __init__(self, budget: int) -> None:
        self.budget, self.spent = budget, 0

    def spend(self, steps: int) -> None:
        """Note that so many steps were taken."""
        self.spent += steps

    @property
    def left(self) -> bool:
        return self.spent < self.budget

    def claim(self, steps: int) -> None:
        """Spend so many steps, or refuse to begin."""
        if self.spent + steps > self.budget:
            raise BudgetExceeded(f"this takes more than the {self.budget} steps it was given.")
        self.spent += steps

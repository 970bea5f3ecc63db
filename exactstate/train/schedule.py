"""Learning-rate schedules: functions of the step."""

from __future__ import annotations

import math


def cosine(first: float, last: float, step: int, horizon: int) -> float:
    """A cosine from `first` at step 0 to `last` at the horizon, and `last` from there on."""
    done = min(step / horizon, 1.0)
    return last + (first - last) * (1 + math.cos(math.pi * done)) / 2


def inverse(first: float, step: int, *, constant: int = 100, floor: float = 0.1) -> float:
    """`first` for the first `constant` steps, then falling as 1 / step, to `floor` times `first` at least."""
    return first * max(floor, min(1.0, constant / (step + 1)))

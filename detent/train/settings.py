"""The numbers of a training run, one sentence each; the defaults are the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detent.errors import InvalidConfig, unknown

PATHS = ("auto", "quick", "plain")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How a model is trained end to end on words and labels."""

    batch: int = 256
    """Words per step."""
    length: int = 64
    """Their length."""
    rate: float = 1e-3
    """Learning rate at the first step, decayed by a cosine ..."""
    last_rate: float = 1e-4
    """... to this at its end."""
    weight_decay: float = 1e-4
    eps: float = 1e-8
    """Of AdamW: what keeps its steps small where gradients vanish."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    mask_rate: float = 3.0
    """How fast positions after the first error are muted."""
    balance: float = 0.5
    """Labels are weighted by their share of the batch to minus this power."""
    exploration: float = 0.03
    """Weight of the exploration penalty at the first step, decayed by a cosine ..."""
    last_exploration: float = 0.003
    """... to this at its end."""
    path: str = "auto"
    """How gradients are computed: `quick` (see quick.py), `plain`, or whichever the model allows, quick first."""
    masks: int = 4
    """Dropout masks per symbol and step on the quick path; tokens take one of them at random."""
    noise: bool = True
    """Whether tables are sampled; without, they are the arg max and only the gradient is soft."""
    steps: int = 100_000
    """The last step."""
    horizon: int | None = None
    """The step at which cosines end, where that is not the last: a budget need not hurry them."""
    check_every: int = 50
    """Steps between two checks on fresh words."""
    check_words: int = 512
    """Fresh words of a check."""
    perfect_checks: int = 40
    """Consecutive perfect checks after which training stops by itself."""

    def __post_init__(self) -> None:
        for name in ("batch", "length", "steps", "check_every", "check_words", "perfect_checks", "masks"):
            if getattr(self, name) < 1:
                raise InvalidConfig(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.horizon is not None and self.horizon < 1:
            raise InvalidConfig(f"the horizon of cosines is at least 1; got {self.horizon}.")
        for name in ("rate", "last_rate", "eps", "clip"):
            if not getattr(self, name) > 0:
                raise InvalidConfig(f"{name} must be positive; got {getattr(self, name)}.")
        if self.path not in PATHS:
            raise unknown("path", self.path, PATHS)

    def decayed(self, first: float, last: float, step: int) -> float:
        """A cosine from `first` at step 0 to `last` at the horizon, and `last` from there on."""
        done = min(step / (self.horizon or self.steps), 1.0)
        return last + (first - last) * (1 + math.cos(math.pi * done)) / 2

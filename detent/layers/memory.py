"""Memory recurrent units, whose every step is a table: the bistable BMRU and the counting CMRU.

    BMRU   h <- z s alpha + (1 - z) h                       2 levels, -alpha and alpha
    CMRU   h <- h + z s alpha, held in [-k alpha, k alpha]  2 k + 1 levels

with z and s as in `held`. No step of a BMRU swaps its two levels, which is why a layer of them holds flip-flops but no
parity. De Geeter et al. 2026; Brandoit et al. 2026, with h added in full and a barrier at each end, so that the levels
are finitely many and every step is a shift that stops at the barriers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from detent.errors import InvalidConfig
from detent.layers.held import Memory
from detent.layers.recurrent import at_least


class BMRU(Memory):
    """Bistable units: every step sets a unit low, sets it high, or keeps it.

    >>> layer = BMRU(width=16, units=8)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 8]))
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        units: int
        """d, units that hold one of two levels each."""
        start: int = 0
        """The level before the first step: 0 for -alpha, 1 for alpha."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, units=self.units)
            at_least(0, chunk=self.chunk)
            _check_start(self.start, 2)

    def __init__(
        self, width: int, units: int, *, start: int = 0, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = BMRU.Config(width=width, units=units, start=start, chunk=chunk)
        self.build(2, start, backend, generator)


class CMRU(Memory):
    """Counting units: every step moves a unit one level up, one level down, or not at all, up to a barrier.

    >>> layer = CMRU(width=16, units=8, reach=3)
    >>> layer.heads
    (7, 7, 7, 7, 7, 7, 7, 7)
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        units: int
        """d, units that hold one of 2 k + 1 levels each."""
        reach: int = 1
        """k, levels from the middle to a barrier."""
        start: int | None = None
        """The level before the first step, 0 .. 2 k; by default the middle, k."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, units=self.units, reach=self.reach)
            at_least(0, chunk=self.chunk)
            if self.reach > 1023:
                raise InvalidConfig(f"reach must be at most 1023, which float16 can count; got {self.reach}.")
            _check_start(self.reach if self.start is None else self.start, 2 * self.reach + 1)

    def __init__(
        self, width: int, units: int, reach: int = 1, *, start: int | None = None, chunk: int = 0,
        backend: str = "auto", generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = CMRU.Config(width=width, units=units, reach=reach, start=start, chunk=chunk)
        self.build(2 * reach + 1, reach if start is None else start, backend, generator)


def _check_start(start: int, levels: int) -> None:
    if not 0 <= start < levels:
        raise InvalidConfig(f"start is a level between 0 and {levels - 1}; got {start}.")

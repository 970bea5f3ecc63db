"""The block around the recurrences of Mamba- and the AUSSM.

    m  width     d  channels     n  entries of a channel's state

u and z are linear in the input, u followed by a SiLU; Delta = softplus(W u + b). What is read from the state becomes
(read + D u) SiLU(z), projected back to the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import silu, softplus

from detent.layers.initial import fan_in_
from detent.layers.recurrent import Recurrent, Streams, at_least, resolve

SLOWEST, FASTEST = 1e-3, 1e-1
"""Between these the paces Delta begin, evenly on a logarithmic scale, as in Mamba."""


class Gated(Recurrent):
    """Channels with states of their own; subclasses say how a state moves and is read."""

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        channels: int
        """d, channels that each have a state of their own."""
        states: int = 16
        """n, entries of a channel's state."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, channels=self.channels, states=self.states)
            at_least(0, chunk=self.chunk)

    def __init__(
        self, width: int, channels: int, states: int = 16, *, chunk: int = 0, backend: str = "auto",
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = self.Config(width=width, channels=channels, states=states, chunk=chunk)
        self.backend = resolve(backend)
        self.enter = nn.Linear(width, 2 * channels, bias=False)
        self.pace = nn.Linear(channels, channels)
        self.skip = nn.Parameter(torch.empty(channels))
        self.leave = nn.Linear(channels, width, bias=False)
        self.build()
        self.reset_parameters(generator)

    def build(self) -> None:
        """Make the parameters of the recurrence itself."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        for linear in (self.enter, self.pace, self.leave):
            fan_in_(linear, generator)
        nn.init.ones_(self.skip)
        with torch.no_grad():
            paces = torch.empty_like(self.pace.bias).uniform_(log(SLOWEST), log(FASTEST), generator=generator).exp()
            self.pace.bias.copy_(paces.expm1().log())  # softplus undone

    def streams(self, rows: Tensor) -> Streams:
        """(Delta, u, z)."""
        u, z = self.enter(rows).chunk(2, dim=-1)
        u = silu(u)
        return softplus(self.pace(u)), u, z

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        _, u, z = streams[:3]
        return self.leave((read + self.skip * u) * silu(z))

    def extra_repr(self) -> str:
        return f"states={self.config.states}, backend={self.backend!r}"

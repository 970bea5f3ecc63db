"""Mamba-: the Mamba block with eigenvalues between -1 and 1, and without its convolution.

    B  batch     L  length     m  width     d  channels     n  entries of a channel's state

With u, z and Delta as in `recurrent.Gated`, and B and C linear in u,

    a[i, j] = 2 exp(-Delta[i] e^A_log[i, j]) - 1
    h[i, j] <- a[i, j] h[i, j] + Delta[i] B[j] u[i]
    y[i] = (sum_j C[j] h[i, j] + D[i] u[i]) SiLU(z[i])

and y is projected back to the width. Mamba: Gu and Dao 2024; negative eigenvalues: Grazzi et al. 2025. The
convolution is left out so that the block reads the same input as the others.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exactstate.nn.init import fan_in_
from exactstate.nn.recurrent import Gated, Streams
from exactstate.ops.affine.mamba import eigenvalues


class MambaMinus(Gated):
    """A contracting layer: every eigenvalue lies in (-1, 1), and in float32 it rounds to an end only where
    Delta e^A_log is below 3e-8 or above 17.

    >>> layer = MambaMinus(width=128, channels=256)
    >>> y, state = layer(torch.randn(2, 100, 128))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 128]), torch.Size([2, 256, 16]))
    """

    def build(self) -> None:
        channels, states = self.config.channels, self.config.states
        self.bc_proj = nn.Linear(channels, 2 * states, bias=False)
        self.A_log = nn.Parameter(torch.empty(channels, states))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """As in Mamba: e^A_log = 1 .. n and D = 1; linear maps as in the NFSM."""
        super().reset_parameters(generator)
        fan_in_(self.bc_proj, generator)
        with torch.no_grad():
            self.A_log.copy_(torch.arange(1, self.config.states + 1).log().expand_as(self.A_log))

    def initial_state(self, batch: int) -> Tensor:
        """B d n, zeros."""
        return self.A_log.new_zeros(batch, self.config.channels, self.config.states)

    def streams(self, rows: Tensor) -> Streams:
        """(Delta, u, z, B, C)."""
        delta, u, z = super().streams(rows)
        return delta, u, z, *self.bc_proj(u).chunk(2, dim=-1)

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        delta, u, _, B, _ = streams
        a = 2 * torch.exp(-delta[..., None] * self.A_log.exp()) - 1
        return a * h + (delta * u)[..., None] * B[..., None, :]

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return (streams[4][..., None, :] * h).sum(-1)

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        delta, u, _, B, C = streams
        if taken is not None:  # at Delta = 0 every eigenvalue is 1 and nothing is added
            delta = torch.where(taken[..., None], delta, 0)
        return self._recur("mamba", [delta, u, B, C, *self._reset_stream(taken, resets, u)], [self.A_log.exp()], h)

    @torch.no_grad()
    def transitions(self, x: Tensor) -> Tensor:
        """... m -> ... d n: the eigenvalues of the steps that these inputs cause."""
        delta = self.streams(self._cast(x))[0]
        return eigenvalues(delta[..., None], self.A_log.exp())

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

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from exactstate.baselines.blocks import Kernel, Workspace
from exactstate.baselines.chunked_scan import Diagonal, chunked_adjoint, chunked_scan, from_lanes, shift, to_lanes
from exactstate.baselines.recurrent import Gated, Streams
from exactstate.nn.init import fan_in_


def eigenvalues(delta: Tensor, rate: Tensor, out: Tensor | None = None) -> Tensor:
    """2 exp(-delta rate) - 1, rounded as in every step taken."""
    a = torch.mul(delta, -rate, out=out)
    torch.exp(a, out=a)
    return torch.add(a.new_tensor(-1.0), a, alpha=2, out=a)


class MambaBlock(Kernel, name="mamba"):
    """A block of steps, with K, C and R as in `chunked_scan.to_lanes`.

    Streams: Delta (d), u (d), B (n), C (n), and where episodes begin, if anywhere (1): there the matrix is zero.
    Shared: the rates e^A_log (d, n). The output is sum_j C[j] h[i, j].
    """

    def forward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
    ) -> tuple[Tensor, Tensor]:
        delta, u, B, C, *reset = map(to_lanes, streams)
        _, h, last = _states(delta, u, B, reset, shared[0], start, workspace)
        y = torch.mul(h, C[:, None], out=h).sum(2)
        return from_lanes(y, streams[0].shape[1]), last.movedim(-1, 0)

    def backward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
        workspace: Workspace,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
        delta, u, B, C, *reset = map(to_lanes, streams)
        rate, g, drive = shared[0], to_lanes(output_grad), delta * u
        a, h, _ = _states(delta, u, B, reset, rate, start, workspace)
        lam, product = workspace("lam", *h.shape), workspace("product", *h.shape)

        torch.mul(g[:, :, None], C[:, None], out=lam)
        steps, gains = [(part,) for part in a.unbind()], lam.unbind()
        chunked_adjoint(Diagonal(), steps, gains, last.movedim(0, -1), (a.new_ones(()),), gains)
        grad_start = a[0, :, :, 0] * lam[0, :, :, 0]
        grad_C = torch.mul(h, g[:, :, None], out=product).sum(1)
        grad_B = torch.mul(lam, drive[:, :, None], out=product).sum(1)
        grad_drive = torch.mul(lam, B[:, None], out=product).sum(2)

        # da / d(delta rate) = -(a + 1), and nothing where an episode begins
        a.add_(1 - reset[0][:, :, None] if reset else 1)
        x = shift(h, start.movedim(0, -1), product).mul_(lam).mul_(a)
        grad_rate = torch.mul(x, delta[:, :, None], out=a).sum((0, 3, 4)).neg_()
        grad_delta = grad_drive * u - torch.mul(x, rate[..., None, None], out=a).sum(2)

        grown = [grad_delta, grad_drive * delta, grad_B, grad_C, *(torch.zeros_like(part) for part in reset)]
        T = output_grad.shape[1]
        return [from_lanes(part, T) for part in grown], [grad_rate], grad_start.movedim(-1, 0)


def _states(
    delta: Tensor, u: Tensor, B: Tensor, reset: Sequence[Tensor], rate: Tensor, start: Tensor,
    workspace: Workspace,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(eigenvalues, every state, the last)."""
    K, d, C, R = u.shape
    shape = K, d, B.shape[1], C, R
    a, h = workspace("a", *shape), workspace("h", *shape)
    eigenvalues(delta[:, :, None], rate[..., None, None], a)
    if reset:
        a.mul_(1 - reset[0][:, :, None])
    torch.mul((delta * u)[:, :, None], B[:, None], out=h)
    last = chunked_scan(Diagonal(), [(part,) for part in a.unbind()], h.unbind(), start.movedim(0, -1), h.unbind())
    return a, h, last


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

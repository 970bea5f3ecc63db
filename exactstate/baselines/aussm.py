"""AUSSM, the adaptive unitary state-space model: every step turns every entry of the state by a phase of its own.

    B  batch     L  length     m  width     d  channels     n  entries of a channel's state

With u, z and Delta as in `recurrent.Gated`, phases phi linear in u, and complex B and C that are learned but the same
at every step,

    h[i, j] <- e^(i phi[i, j]) h[i, j] + Delta[i] B[j] u[i]
    y[i] = (Re sum_j C[j] h[i, j] + D[i] u[i]) SiLU(z[i])

and y is projected back to the width. Karuvally et al. 2025. Complex numbers are pairs (Re, Im), so that the layer
runs in every format that torch has real numbers in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from exactstate.baselines.blocks import Kernel, Workspace
from exactstate.baselines.chunked_scan import (
    Diagonal,
    chunked_adjoint,
    chunked_scan,
    from_lanes,
    paired_product,
    shift,
    to_lanes,
)
from exactstate.baselines.recurrent import WITHOUT_COMPLEX, Gated, Streams
from exactstate.nn.init import fan_in_

OVER_STEPS = (-5, -4, -2, -1)
"""K, d, C and R of numbers K d n C R."""


def rotations(phases: Tensor, cosine: Tensor | None = None, sine: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(cos, sin), rounded as in every step taken."""
    return torch.cos(phases, out=cosine), torch.sin(phases, out=sine)


class AUSSMBlock(Kernel, name="aussm"):
    """A block of steps, with K, C and R as in `chunked_scan.to_lanes`.

    Streams: Delta (d), u (d), and where episodes begin, if anywhere (1): there the matrix is zero. Shared: the map
    from u to the phases (d n, d), B (n, 2) and C (n, 2) as (Re, Im). The output is Re sum_j C[j] h[i, j]. States are
    R d n 2 outside, and inside d n C R complex numbers.
    """

    def forward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
    ) -> tuple[Tensor, Tensor]:
        delta, u, *reset = map(to_lanes, streams)
        _, h, last = _states(delta, u, reset, shared, start, workspace)
        y = h.mul_(_beside(shared[2])).sum(-3).real
        return from_lanes(y, streams[0].shape[1]), _outside(last)

    def backward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
        workspace: Workspace,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
        delta, u, *reset = map(to_lanes, streams)
        phase_map, B, C = shared
        g, drive = to_lanes(output_grad)[:, :, None], (delta * u)[:, :, None]
        a, h, _ = _states(delta, u, reset, shared, start, workspace)
        K, d, chunks, R = u.shape
        shape = K, d, len(B), chunks, R
        lam, product = _array(workspace, "lam", shape), _array(workspace, "product", shape)

        torch.mul(g, _beside(C).conj_physical_(), out=lam)
        steps, gains = [(part,) for part in a.conj_physical_().unbind()], lam.unbind()
        chunked_adjoint(Diagonal(), steps, gains, _inside(last), (a.new_ones(()),), gains)

        grad_C = torch.view_as_real(torch.mul(h, g, out=product).sum(OVER_STEPS).conj_physical_())
        grad_B = torch.view_as_real(torch.mul(lam, drive, out=product).sum(OVER_STEPS))
        grad_drive = torch.mul(lam, _beside(B).conj_physical_(), out=product).sum(-3).real

        # d(a h)/d(phase) = i a h, so the phase gains Im(conj(a h) lambda)
        pulled = a.mul_(lam)  # of the state before every step: conj(a) lambda
        grad_start = pulled[0, ..., 0, :].clone()
        before = shift(h, _inside(start), product).conj_physical_()
        grad_phase = workspace("phase", *shape).copy_(before.mul_(pulled).imag)

        flat, inputs = grad_phase.view(K, -1, chunks * R), u.view(K, d, chunks * R)
        grad_map = torch.zeros_like(phase_map)
        for k in range(K):
            grad_map.addmm_(flat[k], inputs[k].T)
        grad_u = grad_drive * delta + torch.bmm(phase_map.T.expand(K, -1, -1), flat).view(u.shape)

        grown = [grad_drive * u, grad_u, *(torch.zeros_like(part) for part in reset)]
        T = output_grad.shape[1]
        return [from_lanes(part, T) for part in grown], [grad_map, grad_B, grad_C], _outside(grad_start)


def _states(
    delta: Tensor, u: Tensor, reset: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
) -> tuple[Tensor, Tensor, Tensor]:
    """(eigenvalues, every state, the last)."""
    phase_map, B, _ = shared
    K, d, C, R = u.shape
    shape = K, d, len(B), C, R
    a, h, phase = _array(workspace, "a", shape), _array(workspace, "h", shape), workspace("phase", *shape)
    torch.bmm(phase_map.expand(K, -1, -1), u.view(K, d, C * R), out=phase.view(K, -1, C * R))
    rotations(phase, a.real, a.imag)
    if reset:
        a.mul_(1 - reset[0][:, :, None])
    torch.mul((delta * u)[:, :, None], _beside(B), out=h)
    last = chunked_scan(Diagonal(), [(part,) for part in a.unbind()], h.unbind(), _inside(start), h.unbind())
    return a, h, last


def _array(workspace: Workspace, name: str, shape: tuple[int, ...]) -> Tensor:
    return torch.view_as_complex(workspace(name, *shape, 2))


def _beside(pairs: Tensor) -> Tensor:
    """n 2 -> numbers that broadcast along K d n C R, in an array of their own."""
    return torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))[:, None, None]


def _inside(state: Tensor) -> Tensor:
    """R d n 2 -> d n R numbers."""
    return torch.view_as_complex(state.contiguous()).movedim(0, -1)


def _outside(state: Tensor) -> Tensor:
    """d n R numbers -> R d n 2."""
    return torch.view_as_real(state.movedim(-1, 0))


class AUSSM(Gated):
    """An isometric layer: every eigenvalue has modulus one, up to the rounding of a sine and a cosine.

    >>> layer = AUSSM(width=128, channels=256)
    >>> y, state = layer(torch.randn(2, 100, 128))
    >>> y.shape, torch.view_as_complex(state).shape
    (torch.Size([2, 100, 128]), torch.Size([2, 256, 16]))
    """

    def build(self) -> None:
        channels, states = self.config.channels, self.config.states
        self.phase_proj = nn.Linear(channels, channels * states, bias=False)
        self.B = nn.Parameter(torch.empty(states, 2))
        self.C = nn.Parameter(torch.empty(states, 2))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """B and C complex normal with mean square modulus 1 and 1 / n; linear maps as in the NFSM."""
        super().reset_parameters(generator)
        fan_in_(self.phase_proj, generator)
        nn.init.normal_(self.B, 0.0, 0.5**0.5, generator=generator)
        nn.init.normal_(self.C, 0.0, (0.5 / self.config.states) ** 0.5, generator=generator)

    def initial_state(self, batch: int) -> Tensor:
        """B d n 2, zeros; the last dimension is (Re, Im)."""
        return self.B.new_zeros(batch, self.config.channels, self.config.states, 2)

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        delta, u, _ = streams
        phase = self.phase_proj(u).unflatten(-1, h.shape[1:3])
        rotation = torch.stack([phase.cos(), phase.sin()], dim=-1)
        return paired_product(rotation, h) + (delta * u)[..., None, None] * self.B

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return paired_product(self.C, h)[..., 0].sum(-1)

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        delta, u, z = streams
        if u.dtype in WITHOUT_COMPLEX:
            return self._loop((delta, u, z), h, taken, resets)
        if taken is not None:  # without input there is no phase and nothing is added
            delta, u = (torch.where(taken[..., None], x, 0) for x in (delta, u))
        shared = [self.phase_proj.weight, self.B, self.C]
        return self._recur("aussm", [delta, u, *self._reset_stream(taken, resets, u)], shared, h)

    @torch.no_grad()
    def transitions(self, x: Tensor) -> Tensor:
        """... m -> ... d n: the eigenvalues of the steps that these inputs cause, as complex numbers."""
        u = self.streams(self._cast(x))[1]
        phase = self.phase_proj(u).unflatten(-1, (self.config.channels, self.config.states))
        cosine, sine = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in rotations(phase))
        return torch.complex(cosine, sine)

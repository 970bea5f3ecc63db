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

import torch
from torch import Tensor, nn

from exactstate.nn.init import fan_in_
from exactstate.nn.recurrent import Gated, Streams
from exactstate.ops.affine.aussm import rotations
from exactstate.ops.affine.chunked_scan import paired_product


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
        delta, u, _ = streams
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

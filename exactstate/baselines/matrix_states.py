"""DeltaProduct and M2RNN: layers whose state is a matrix for every head. Small references; time is a loop.

    B  batch     L  length     m  width     h  heads     K  rows of a head's state (keys)     V  its columns (values)

DeltaProduct (Siems et al. 2025, arXiv 2502.10297), affine in the state: a step is a product of n generalized
Householder matrices. Since beta reaches 2, their eigenvalues along the key lie in (-1, 1), as in Grazzi et al. 2025.

    for j = 1 .. n:  H <- (I - beta_j k_j k_j^T) H + beta_j k_j v_j^T       |k_j| = 1, beta_j = 2 sigmoid(w_j x)

M2RNN (Mishra et al. 2026, arXiv 2603.14360), not affine in the state, so it has no scan:

    H <- f H + (1 - f) tanh(H W + k v^T)                                    f = sigmoid(w x + b), one per head

Both read y = H^T q, normalized per head, and project the heads back to the width. Their short convolutions and output
gates are left out, so that all layers receive the same input.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, silu

from exactstate.baselines.recurrent import Recurrent, Streams, at_least, resolve_affine
from exactstate.errors import InvalidConfig
from exactstate.nn.init import fan_in_, truncated_


class MatrixStates(Recurrent):
    """Heads with a matrix each; subclasses define how it changes."""

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        channels: int
        """h V, columns of all heads together."""
        states: int = 16
        """K, entries of a column."""
        heads: int | None = None
        """h; by default as many as make the matrices square, at least one."""
        products: int = 2
        """n, Householder matrices of a step of DeltaProduct; M2RNN has no use for it."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, channels=self.channels, states=self.states, products=self.products)
            at_least(1, heads=1 if self.heads is None else self.heads)
            at_least(0, chunk=self.chunk)
            if self.channels % (self.heads or 1):
                raise InvalidConfig(f"channels must be a multiple of the heads; got {self.channels} and {self.heads}.")

    def __init__(
        self, width: int, channels: int, states: int = 16, *, heads: int | None = None, products: int = 2,
        chunk: int = 0, backend: str = "auto", generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = MatrixStates.Config(
            width=width, channels=channels, states=states, heads=heads, products=products, chunk=chunk
        )
        self.backend = resolve_affine(backend)
        square = max(1, channels // states)
        self.heads = heads or (square if channels % square == 0 else 1)
        self.q_proj = nn.Linear(width, self.heads * states, bias=False)
        self.norm = nn.RMSNorm(channels // self.heads)
        self.out_proj = nn.Linear(channels, width, bias=False)
        self.build()
        self.reset_parameters(generator)

    @abstractmethod
    def build(self) -> None:
        """Create the parameters of the recurrence itself."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Truncated normal weights of variance 1 / fan-in, zero biases."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                fan_in_(module, generator)

    def initial_state(self, batch: int) -> Tensor:
        """B h K V, zeros."""
        columns = self.config.channels // self.heads
        return self.out_proj.weight.new_zeros(batch, self.heads, self.config.states, columns)

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        y = torch.einsum("bhkv,bhk->bhv", h, streams[0].unflatten(-1, (self.heads, -1)))
        return self.norm(y).flatten(-2)

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        return self.out_proj(read)


class DeltaProduct(MatrixStates):
    """Products of Householder matrices with eigenvalues in [-1, 1].

    >>> layer = DeltaProduct(width=16, channels=16, states=8)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 2, 8, 8]))
    """

    def build(self) -> None:
        width, n = self.config.width, self.config.products
        self.k_proj = nn.Linear(width, n * self.heads * self.config.states, bias=False)
        self.v_proj = nn.Linear(width, n * self.config.channels, bias=False)
        self.beta_proj = nn.Linear(width, n * self.heads)

    def streams(self, rows: Tensor) -> Streams:
        """(q, keys, values, betas); queries and keys of length one."""
        q, k = silu(self.q_proj(rows)), silu(self.k_proj(rows))
        q, k = (normalize(x.unflatten(-1, (-1, self.config.states)), dim=-1).flatten(-2) for x in (q, k))
        return q, k, silu(self.v_proj(rows)), 2 * self.beta_proj(rows).sigmoid()

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        n, heads = self.config.products, self.heads
        keys, values, betas = (x.unflatten(-1, (n, heads, -1)).unbind(-3) for x in streams[1:])
        for k, v, beta in zip(keys, values, betas, strict=True):
            held = torch.einsum("bhkv,bhk->bhv", h, k)
            h = h + k[..., None] * (beta * (v - held)).unsqueeze(-2)
        return h


class M2RNN(MatrixStates):
    """A matrix that a tanh bounds: nonlinear in its state.

    >>> layer = M2RNN(width=16, channels=16, states=8)
    >>> y, state = layer(torch.randn(2, 100, 16))
    >>> y.shape, state.shape
    (torch.Size([2, 100, 16]), torch.Size([2, 2, 8, 8]))
    """

    def build(self) -> None:
        width, columns = self.config.width, self.config.channels // self.heads
        self.k_proj = nn.Linear(width, self.heads * self.config.states, bias=False)
        self.v_proj = nn.Linear(width, self.config.channels, bias=False)
        self.forget_proj = nn.Linear(width, self.heads)
        self.weight = nn.Parameter(torch.empty(self.heads, columns, columns))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        super().reset_parameters(generator)
        for weight in self.weight:
            truncated_(weight.data, generator)

    def streams(self, rows: Tensor) -> Streams:
        """(q, k, v, f)."""
        return self.q_proj(rows), self.k_proj(rows), self.v_proj(rows), self.forget_proj(rows).sigmoid()

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        k, v = (x.unflatten(-1, (self.heads, -1)) for x in streams[1:3])
        forget = streams[3][..., None, None]
        return forget * h + (1 - forget) * torch.tanh(h @ self.weight + k[..., None] * v.unsqueeze(-2))

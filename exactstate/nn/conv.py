"""A short causal depthwise convolution, with its last inputs as state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exactstate.errors import InvalidConfig


class CausalConvolution(nn.Module):
    """y_t = SiLU(bias + w_0 x_{t-k+1} + ... + w_{k-1} x_t), channel by channel; before the first step x is zero."""

    def __init__(self, width: int, kernel_size: int = 2, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if kernel_size < 1:
            raise InvalidConfig(f"kernel_size must be at least 1; got {kernel_size}.")
        self.width, self.kernel_size = width, kernel_size
        self.weight = nn.Parameter(torch.empty(width, kernel_size))
        self.bias = nn.Parameter(torch.zeros(width))
        deviation = kernel_size**-0.5
        nn.init.trunc_normal_(self.weight, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)

    def initial_state(self, batch: int) -> Tensor:
        """B (kernel_size - 1) m: zeros."""
        return self.weight.new_zeros(batch, self.kernel_size - 1, self.width)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """B L m -> (B L m, the last kernel_size - 1 inputs)."""
        before = self.initial_state(x.shape[0]).to(x.dtype) if state is None else state
        padded = torch.cat([before, x], dim=1)
        # the taps are added one after the other, so a step has the same bits alone as in a sequence
        y = self.bias.expand_as(x)
        for tap in range(self.kernel_size):
            y = y + padded[:, tap : tap + x.shape[1]] * self.weight[:, tap]
        return nn.functional.silu(y), padded[:, x.shape[1] :]

"""The gated MLP: SiLU(W_g x) * (W_u x), dropout, and back to the width."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exactstate.nn.init import fan_in_


class GatedMLP(nn.Module):
    """m -> hidden -> m, gated by a SiLU."""

    def __init__(
        self, width: int, hidden: int | None = None, *, dropout: float = 0.0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        hidden = 2 * width if hidden is None else hidden
        self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)
        for linear in (self.gate, self.up, self.down):
            fan_in_(linear, generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(nn.functional.silu(self.gate(x)) * self.up(x)))

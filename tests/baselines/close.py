"""How near a scan has to come to its loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ROUNDING = 1e-12
"""Of the largest entry, in float64. Sums of up to a thousand terms, taken in two orders, differ by about a thousand
units in the last place of their largest partial sum: 1000 * 2.2e-16, with workspace for gradients that sum twice."""


def distance(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, in units of the largest entry wanted."""
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    found, wanted = found.detach(), wanted.detach()
    if wanted.numel() == 0:
        return 0.0
    return float((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))


def gradients(output: Sequence[Tensor], inputs: Sequence[Tensor], seed: int = 5) -> list[Tensor]:
    """Of a quadratic function of the outputs whose weights are all different."""
    generator = torch.Generator().manual_seed(seed)
    total = torch.zeros((), dtype=torch.float64)
    for part in output:
        weights = torch.randn(part.shape, generator=generator, dtype=torch.float64)
        total = total + (part * weights).abs().square().sum() + (part.real * weights).sum()
    return list(torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True))

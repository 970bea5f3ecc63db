"""Initial weights: truncated normal of variance 1 / fan-in, zero biases."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exactstate.ops.eager import is_fake


def truncated_(weight: Tensor, generator: torch.Generator | None = None, gain: float = 1.0) -> None:
    """Fill a matrix (outputs x inputs) with a truncated normal of variance about gain^2 / inputs."""
    deviation = gain * weight.shape[1] ** -0.5
    if weight.is_meta or is_fake(weight):  # PyTorch's truncation asks whether any number is too large
        return
    nn.init.trunc_normal_(weight, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)


def fan_in_(linear: nn.Linear, generator: torch.Generator | None = None) -> None:
    """Initialize a linear map: truncated normal weights, zero biases."""
    truncated_(linear.weight, generator)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)

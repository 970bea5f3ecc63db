"""The parameters of a backbone as a format stores them, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from detent.errors import InvalidInput
from detent.extraction.rounding.affine import Affine
from detent.extraction.rounding.balls import Floats
from detent.extraction.rounding.formats import Format
from detent.extraction.rounding.gating import Gated
from detent.extraction.rounding.normalising import Normalising
from detent.layers import NFSM, GatedMLP
from detent.models import Backbone


@dataclass(frozen=True)
class Reader:
    """Rounds parameters to a format, to nearest with ties to even, as `model.to(dtype)` does."""

    format: Format

    def array(self, parameter: Tensor) -> Floats:
        kept = parameter.detach()
        if self.format.name != "real":
            kept = kept.to(getattr(torch, self.format.name))
        return np.array(kept.to("cpu", torch.float64).numpy())

    def affine(self, linear: nn.Linear) -> Affine:
        return Affine(self.array(linear.weight), self.array(linear.bias))

    def normalising(self, norm: nn.LayerNorm) -> Normalising:
        return Normalising(self.array(norm.weight), self.array(norm.bias), norm.eps)

    def gated(self, mlp: GatedMLP) -> Gated:
        return Gated(self.affine(mlp.gate), self.affine(mlp.up), self.affine(mlp.down))


def refuse(model: Backbone) -> None:
    """Models of which nothing can be said."""
    for place, layer in enumerate(model.layers):
        if not isinstance(layer.block, NFSM):
            raise InvalidInput(
                f"rounding is bounded for NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
            )
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise InvalidInput(f"parameter {name!r} is not finite everywhere; such weights describe no machine.")

"""Which of thousands of labels a row can mean, found in the few directions in which the read-out tells labels apart.

    R  rows     m  width     k  directions     n  labels

Read-outs of large machines are often of small rank: M11 taught by its codes has 7,920 labels in 40 directions of 128.
Logits along these are cheaper, and what they leave out is at most the next singular value times the length of the
row. Labels further below the largest than that allows are impossible; the others are for the caller to compute in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

LEFT_OUT = 1.0
"""What a logit may lack, at most."""
CLASSES = 128
"""Labels are looked at in so many classes; those whose largest is too small are passed over as a whole."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A read-out in the directions that count."""

    directions: Tensor
    """m k."""
    weight: Tensor
    """n' k, with labels added that nobody says so that they fall into equal classes."""
    bias: Tensor
    """n'."""
    lacking: float
    """What a logit lacks for each unit of the length of its row, at most."""

    @classmethod
    def of(cls, readout: nn.Linear, longest: float) -> Screen | None:
        """The screen for rows of at most this length, if it takes less than half of all directions."""
        weight = readout.weight.detach()
        squares, directions = torch.linalg.eigh(weight.double().T @ weight.double())
        singular = squares.clamp(min=0).sqrt()
        few = int((singular * longest > LEFT_OUT).sum())
        if 2 * few >= len(singular):
            return None
        kept = directions[:, len(singular) - few :].to(weight.dtype)
        missing = -len(weight) % CLASSES
        rounding = 4 * len(singular) * torch.finfo(weight.dtype).eps * float(singular[-1])
        return cls(
            kept, pad(weight @ kept, (0, 0, 0, missing)), pad(readout.bias.detach(), (0, missing), value=-torch.inf),
            float(singular[-few - 1]) + rounding,
        )  # fmt: skip

    def possible(self, features: Tensor, below: float) -> tuple[Tensor, Tensor]:
        """(rows, labels), rows rising: all whose logit may lie within `below` of its row's largest."""
        logits = linear(features @ self.directions, self.weight, self.bias).unflatten(1, (-1, CLASSES))
        of_class = logits.amax(1)
        least = of_class.amax(1) - below - 2 * self.lacking * features.norm(dim=1)
        row, one = (of_class > least[:, None]).nonzero(as_tuple=True)
        which, many = (logits[row, :, one] > least[row, None]).nonzero(as_tuple=True)
        return row[which], many * CLASSES + one[which]

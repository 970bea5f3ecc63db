"""Where the logits of a pass come from, and the noise that is added to them.

N  rows     R  distinct rows     m  width     E  entries of the logit matrices of all heads
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from detent.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Source:
    """Logits as an affine map of the rows, row by row; or of a few distinct rows that an index points to."""

    input: Tensor
    """N m, or R m with an index."""
    weight: Tensor
    """E m; entry k * d + j of a head scores its move from index k to index j."""
    bias: Tensor
    """E."""
    index: Tensor | None = None
    """N: which of the distinct rows each row is."""
    logits: Tensor | None = None
    """R E: with an index, the logits of the distinct rows, computed once."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Gumbel noise on logits / temperature, named by a seed."""

    seed: int
    temperature: float

    @property
    def word(self) -> int:
        """The seed as 64 unsigned bits."""
        return self.seed & ((1 << 64) - 1)


def refuse_infinite(row: int) -> None:
    """Raise if a pass met logits that are not numbers; `row` is where, or -1."""
    if row >= 0:
        raise InvalidInput(
            f"row {row} of the input gives logits that are NaN or infinite, and no arg max; "
            "look for NaN in the input or for a diverged projection."
        )

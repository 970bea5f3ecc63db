"""Work and traffic of a training step of an NFSM layer on a GPU, kernel by kernel, and the time they need at least.

    N  rows (batch x length)     m  width     r  heads     d  indices of a head     S = r d     E = r d d

A kernel takes the larger of its arithmetic at the card's peak rate and its traffic at the card's bandwidth; a step
takes the sum. Launches, latency and imperfect occupancy come on top: the result is a prediction, and a lower bound. A
logit of `triton` takes a multiplication and an addition per product, which are two instructions; `triton_dot` fuses
them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """Peak rates from the vendor's data sheet."""

    name: str
    flops: float
    """float32 outside matrix units, per second, a fused multiply-add counted as two."""
    bandwidth: float
    """Bytes per second of the main memory."""


CARDS = (Card("A100 80 GB", 19.5e12, 2.039e12), Card("H100 SXM", 66.9e12, 3.35e12))
NOISE = 40
"""Instructions of one Gumbel variable: the hash, two logarithms, the comparison."""


@dataclass(frozen=True)
class Work:
    """What one kernel does."""

    kernel: str
    instructions: float
    """Each half a fused multiply-add at the peak rate."""
    bytes: float

    def seconds(self, card: Card) -> float:
        return max(self.instructions / (card.flops / 2), self.bytes / card.bandwidth)


def training_step(
    batch: int, length: int, width: int, heads: int, size: int, *, ordered: bool = True, noise: bool = True
) -> list[Work]:  # fmt: skip
    """The kernels of a forward and a backward pass; every head has `size` indices."""
    N, m, S, E = batch * length, width, heads * size, heads * size * size
    padded = heads * size * (1 << (size - 1).bit_length())  # a column of logits is padded to a power of two
    cell = 1 if size <= 256 else 2
    per_product = 2 if ordered else 1
    return [
        Work("tables", N * padded * (m * per_product + NOISE * noise), 4 * N * m + N * S * cell + 24 * N),
        Work("trajectories", 3 * N * S, 2 * N * S * cell + N * heads * cell + 8 * N),
        Work("read_out", N * heads * m, 4 * N * m + N * heads * cell),
        Work("index_gains", N * S * m, 4 * N * m + 4 * N * S),
        Work("adjoint", 4 * N * S, 3 * N * S * cell + 12 * N * S),
        Work("surrogate", N * S * (2 * m + NOISE * noise), 4 * N * m + 8 * N * S + 8 * N * heads),
        Work("grad_weight", N * S * m, 4 * N * m + 4 * N * S + 4 * E * m),
        Work("grad_input", N * S * 2 * m, 8 * N * m + 4 * N * S),
        Work("read_out_backward", N * heads * m, 4 * N * m + 8 * N * heads),
    ]


def predicted_seconds(works: list[Work], card: Card) -> float:
    """The sum over kernels."""
    return sum(work.seconds(card) for work in works)

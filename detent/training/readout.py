"""Labels of many rows, and the gradient of their cross-entropy, a few rows at a time.

    R  rows     m  width     n  labels

With thousands of labels the logits of a batch would fill the memory; here no more than a strip of them exists at once.
Probabilities are kept for the backward pass while there is room, and computed again beyond that.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

STRIP = 1 << 21
"""Logits that exist at once."""
ROOM = 1 << 24
"""Probabilities that are kept."""


class Surprise:
    """Cross-entropy of rows that come in portions; afterwards its gradient, given the weight of every row."""

    def __init__(self, readout: nn.Linear) -> None:
        self.weight, self.bias = readout.weight.detach(), readout.bias.detach()
        self.readout = readout
        self.strips: list[tuple[Tensor, Tensor, Tensor | None]] = []
        """(features: rows m, wanted labels, probabilities if they were kept)."""
        self.room = ROOM

    def add(self, features: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """(whether the likeliest label is the wanted one, the cross-entropy), row by row."""
        right, surprise = [], []
        for piece, label in _strips(features, wanted, len(self.weight)):
            logits = linear(piece, self.weight, self.bias)
            said = likeliest(logits)
            p = logits.softmax(-1)
            # the log of the partition sum by way of the largest probability, which is never small
            total = logits.gather(1, said[:, None]) - p.gather(1, said[:, None]).log()
            right.append(said == label)
            surprise.append((total - logits.gather(1, label[:, None])).flatten())
            kept = p.numel() <= self.room
            self.room -= p.numel() if kept else 0
            self.strips.append((piece, label, p if kept else None))
        return torch.cat(right), torch.cat(surprise)

    def backward(self, weights: Tensor) -> Tensor:
        """The gradient of sum(weights * cross-entropy): of the features is returned, of the read-out is added to it."""
        of_features, of_weight, of_bias = [], torch.zeros_like(self.weight), torch.zeros_like(self.bias)
        for (piece, label, p), share in zip(
            self.strips, weights.split([len(strip[0]) for strip in self.strips]), strict=True
        ):
            of_piece, used = torch.zeros_like(piece), share.nonzero().flatten()
            if len(used) < len(piece):  # rows that were looked at and turned out not to count
                piece, label, share, p = piece[used], label[used], share[used], None if p is None else p[used]
            p = linear(piece, self.weight, self.bias).softmax(-1) if p is None else p
            slope = p.mul_(share[:, None]).scatter_add_(1, label[:, None], -share[:, None])
            of_piece[used] = slope @ self.weight
            of_features.append(of_piece)
            of_weight.addmm_(slope.T, piece)
            of_bias += slope.sum(0)
        for parameter, gradient in ((self.readout.weight, of_weight), (self.readout.bias, of_bias)):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return torch.cat(of_features)


def likeliest(logits: Tensor) -> Tensor:
    """The arg max of every row, the lowest on a tie; NumPy's search is several times as fast as torch's."""
    return torch.from_numpy(logits.numpy().argmax(-1))


def likeliest_of(features: Tensor, readout: nn.Linear) -> Tensor:
    """The likeliest label of every row."""
    pieces = _strips(features, features, len(readout.weight))
    return torch.cat([likeliest(linear(piece, readout.weight, readout.bias)) for piece, _ in pieces])


def _strips(features: Tensor, beside: Tensor, labels: int) -> Iterator[tuple[Tensor, Tensor]]:
    rows = max(1, STRIP // labels)
    return zip(features.split(rows), beside.split(rows), strict=True)

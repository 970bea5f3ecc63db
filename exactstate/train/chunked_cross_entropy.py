"""A memory-bounded cross-entropy over thousands of labels, a chunk of rows at a time, and its gradient.

    R  rows     m  width     n  labels     P  pairs of a row and a right label

Positions that share a row can have different right labels. What depends on the row alone is computed once for them: its
logits, its probabilities, and the mean of the read-out's weights under these.

The logits of a whole batch would fill the memory; here at most a chunk of them exists at once. A label whose
probability is below eps / 2n counts as impossible: all of them together are less than half a unit in the last place of
1, which is how exactly the largest probability is known. Where most labels are impossible, the backward pass visits
only the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

CHUNK = 1 << 21
"""Logits that exist at once."""
MAX_KEPT = 1 << 24
"""Probabilities that are kept for the backward pass; beyond that they are recomputed."""
SPARSE = 1 / 32
"""The share of possible labels below which probabilities are stored as a list."""

Sums = tuple[Tensor, Tensor]
"""Gradients of the weights and the bias of a read-out, so far."""


@dataclass(frozen=True, slots=True)
class DenseProbs:
    """The probabilities of a chunk as a matrix; None where too many are kept already."""

    p: Tensor | None

    def means(self, model: nn.Linear, features: Tensor, share: Tensor, sums: Sums) -> Tensor:
        """The mean of the weights under the probabilities of every row.

        The gradient of sum(share * log-normalizer) in weights and bias is added to `sums`.
        """
        used = share.nonzero().flatten()  # rows beyond the last position that counts have no share
        features, share, means = features[used], share[used, None], torch.zeros_like(features)
        p = linear(features, model.weight, model.bias).softmax(-1) if self.p is None else self.p[used]
        means[used] = p @ model.weight
        p.mul_(share)
        sums[0].addmm_(p.T, features)
        sums[1].add_(p.sum(0))
        return means


@dataclass(frozen=True, slots=True)
class SparseProbs:
    """The probabilities of the possible labels of a chunk, as a list."""

    row: Tensor
    column: Tensor
    p: Tensor

    def means(self, model: nn.Linear, features: Tensor, share: Tensor, sums: Sums) -> Tensor:
        row, column, shared = self.row, self.column, self.p * share[self.row]
        sums[0].index_add_(0, column, features[row].mul_(shared[:, None]))
        sums[1].index_add_(0, column, shared)
        return torch.zeros_like(features).index_add_(0, row, model.weight[column].mul_(self.p[:, None]))


ChunkResult = tuple[Tensor, Tensor, DenseProbs | SparseProbs]
"""Of a chunk: arg max labels, log-normalizers, probabilities."""


class ChunkedCrossEntropy:
    """Cross-entropy of rows that are added in portions; afterwards its gradient, given weighted pairs."""

    def __init__(self, readout: nn.Linear) -> None:
        self.readout = readout
        self.chunks: list[tuple[Tensor, DenseProbs | SparseProbs]] = []
        """(features: rows m, probabilities)."""
        self.totals: list[Tensor] = []
        """Log-normalizers."""
        self.remaining = MAX_KEPT

    @torch.no_grad()
    def add(self, features: Tensor) -> Tensor:
        """The arg max label of every row."""
        predicted, labels = [], len(self.readout.weight)
        for piece in _chunks(features, labels):
            best, total, probs = self._evaluate(piece)
            predicted.append(best)
            self.totals.append(total)
            self.chunks.append((piece, probs))
        return torch.cat(predicted)

    def _evaluate(self, features: Tensor) -> ChunkResult:
        logits = linear(features, self.readout.weight, self.readout.bias)
        predicted = argmax(logits)
        probs, total = self._probabilities(logits, predicted)
        return predicted, total, probs

    def _probabilities(self, logits: Tensor, predicted: Tensor) -> tuple[DenseProbs | SparseProbs, Tensor]:
        """(the probabilities, the log-normalizers)."""
        top = logits.gather(1, predicted[:, None])
        possible = logits > top - impossible_below(logits.shape[1], logits.dtype)
        if np.count_nonzero(possible.numpy()) < SPARSE * logits.numel():
            place = torch.from_numpy(np.flatnonzero(possible.numpy()))
            row, column = place // logits.shape[1], place % logits.shape[1]
            p = (logits.view(-1)[place] - top.flatten()[row]).exp_()
            total = torch.zeros_like(top.flatten()).index_add_(0, row, p)
            return SparseProbs(row, column, p / total[row]), top.flatten() + total.log()
        p = logits.softmax(-1)
        total = (top - p.gather(1, predicted[:, None]).log()).flatten()
        kept = p.numel() <= self.remaining
        self.remaining -= p.numel() if kept else 0
        return DenseProbs(p if kept else None), total

    @torch.no_grad()
    def backward(self, row: Tensor, label: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """(the cross-entropy of every pair, the gradient of sum(weights * cross-entropy) in its features).

        The gradient in the read-out is added to it.
        """
        model, features = self.readout, torch.cat([features for features, _ in self.chunks])
        shares = weights.new_zeros(len(features)).index_add_(0, row, weights)
        sums = torch.zeros_like(model.weight), torch.zeros_like(model.bias)
        pieces = zip(self.chunks, shares.split([len(piece) for piece, _ in self.chunks]), strict=True)
        means = torch.cat([probs.means(model, piece, share, sums) for (piece, probs), share in pieces])
        of_pair, right = features[row], model.weight[label]
        losses = torch.cat(self.totals)[row] - (of_pair * right).sum(1) - model.bias[label]
        sums[0].index_add_(0, label, of_pair.mul_(-weights[:, None]))
        sums[1].index_add_(0, label, -weights)
        for parameter, gradient in zip((model.weight, model.bias), sums, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return losses, (means[row] - right).mul_(weights[:, None])


def impossible_below(labels: int, dtype: torch.dtype) -> float:
    """How far a logit must lie below the largest for its label not to count."""
    return math.log(labels) - math.log(torch.finfo(dtype).eps / 2)


def argmax(logits: Tensor) -> Tensor:
    """The arg max of every row, the lowest on a tie; NumPy's search is several times as fast as torch's."""
    return torch.from_numpy(logits.numpy().argmax(-1))


def predict(features: Tensor, readout: nn.Linear) -> Tensor:
    """The arg max label of every row."""
    pieces = _chunks(features, len(readout.weight))
    return torch.cat([argmax(linear(piece, readout.weight, readout.bias)) for piece in pieces])


def _chunks(features: Tensor, labels: int) -> tuple[Tensor, ...]:
    return features.split(max(1, CHUNK // labels))

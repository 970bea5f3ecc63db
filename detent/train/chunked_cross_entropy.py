"""Labels of many rows, and the gradient of their cross-entropy, a few rows at a time.

    R  rows     m  width     n  labels

With thousands of labels the logits of a batch would fill the memory; here no more than a strip of them exists at once.
A label whose probability is below eps / 2n counts as impossible: all of them together are less than half a unit in the
last place of 1, which is how well the probability of the likeliest is known. Where most labels are impossible, only the
others are looked at in the backward pass; and where a screen finds them, in the forward pass too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

# -- Which of thousands of labels a row can mean, found in the few directions in which the read-out tells labels apart.

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


STRIP = 1 << 21
"""Logits that exist at once."""
ROOM = 1 << 24
"""Probabilities that are kept for the backward pass; beyond that they are computed again."""
FEW = 1 / 32
"""The share of possible labels below which they are listed."""
MANY = 1024
"""Labels from which on a screen is worth its making."""

Sums = tuple[Tensor, Tensor]
"""Gradients of the weights and the bias of a read-out, so far."""


@dataclass(frozen=True, slots=True)
class All:
    """The probabilities of a strip as a matrix, or nothing where there was no room."""

    p: Tensor | None

    def slopes(self, model: nn.Linear, features: Tensor, label: Tensor, share: Tensor, sums: Sums) -> Tensor:
        """The gradient of sum(share * cross-entropy): of the features; of weights and bias it is added to `sums`."""
        # rows that were looked at and turned out not to count have no share
        used = slice(None) if bool((share != 0).all()) else share.nonzero().flatten()
        features, label, share, of_features = features[used], label[used], share[used, None], torch.zeros_like(features)
        p = linear(features, model.weight, model.bias).softmax(-1) if self.p is None else self.p[used]
        slope = p.mul_(share).scatter_add_(1, label[:, None], -share)
        of_features[used] = slope @ model.weight
        sums[0].addmm_(slope.T, features)
        sums[1].add_(slope.sum(0))
        return of_features


@dataclass(frozen=True, slots=True)
class Listed:
    """The possible labels of a strip, one by one."""

    row: Tensor
    column: Tensor
    p: Tensor

    def slopes(self, model: nn.Linear, features: Tensor, label: Tensor, share: Tensor, sums: Sums) -> Tensor:
        row, column = torch.cat([self.row, torch.arange(len(label))]), torch.cat([self.column, label])
        slope = torch.cat([self.p * share[self.row], -share])
        sums[0].index_add_(0, column, features[row].mul_(slope[:, None]))
        sums[1].index_add_(0, column, slope)
        return torch.zeros_like(features).index_add_(0, row, model.weight[column].mul_(slope[:, None]))


Said = tuple[Tensor, Tensor, Tensor, All | Listed]
"""Of a strip: the likeliest labels, the logarithms of what was divided by, the wanted labels' logits, probabilities."""


class Surprise:
    """Cross-entropy of rows that come in portions; afterwards its gradient, given the weight of every row."""

    def __init__(self, readout: nn.Linear) -> None:
        self.readout = readout
        self.strips: list[tuple[Tensor, Tensor, All | Listed]] = []
        """(features: rows m, wanted labels, probabilities)."""
        self.room = ROOM
        self.screen: Screen | None = None

    @torch.no_grad()
    def add(self, features: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """(whether the likeliest label is the wanted one, the cross-entropy), row by row."""
        right, surprise = [], []
        labels = len(self.readout.weight)
        if not self.strips and labels >= MANY:
            self.screen = Screen.of(self.readout, float(features.norm(dim=1).max()))
        for piece, label in _strips(features, wanted, labels):
            said, total, right_logit, found = self._screened(piece, label) or self._all(piece, label)
            right.append(said == label)
            surprise.append(total - right_logit)
            self.strips.append((piece, label, found))
        return torch.cat(right), torch.cat(surprise)

    def _all(self, features: Tensor, label: Tensor) -> Said:
        logits = linear(features, self.readout.weight, self.readout.bias)
        said = likeliest(logits)
        found, total = self._probabilities(logits, said)
        return said, total, logits.gather(1, label[:, None]).flatten(), found

    def _screened(self, features: Tensor, label: Tensor) -> Said | None:
        """The same, where a screen leaves few labels possible."""
        if self.screen is None:
            return None
        weight, bias = self.readout.weight, self.readout.bias
        below = impossible(len(weight), weight.dtype)
        row, column = self.screen.possible(features, below)
        if len(row) >= FEW * len(features) * len(weight):
            return None
        logit = features[row].mul_(weight[column]).sum(1) + bias[column]
        top = features.new_full((len(features),), -torch.inf).scatter_reduce(0, row, logit, "amax")
        largest = (logit == top[row]).nonzero().flatten()
        said = label.new_full(label.shape, len(weight)).scatter_reduce(0, row[largest], column[largest], "amin")
        close = (logit > top[row] - below).nonzero().flatten()
        row, column, p = row[close], column[close], (logit[close] - top[row[close]]).exp_()
        total = torch.zeros_like(top).index_add_(0, row, p)
        right_logit = (features * weight[label]).sum(1) + bias[label]
        return said, top + total.log(), right_logit, Listed(row, column, p / total[row])

    def _probabilities(self, logits: Tensor, said: Tensor) -> tuple[All | Listed, Tensor]:
        """(the probabilities, the logarithm of what they were divided by)."""
        top = logits.gather(1, said[:, None])
        possible = logits > top - impossible(logits.shape[1], logits.dtype)
        if np.count_nonzero(possible.numpy()) < FEW * logits.numel():
            place = torch.from_numpy(np.flatnonzero(possible.numpy()))
            row, column = place // logits.shape[1], place % logits.shape[1]
            p = (logits.view(-1)[place] - top.flatten()[row]).exp_()
            total = torch.zeros_like(top.flatten()).index_add_(0, row, p)
            return Listed(row, column, p / total[row]), top.flatten() + total.log()
        p = logits.softmax(-1)
        total = (top - p.gather(1, said[:, None]).log()).flatten()
        kept = p.numel() <= self.room
        self.room -= p.numel() if kept else 0
        return All(p if kept else None), total

    @torch.no_grad()
    def backward(self, weights: Tensor) -> Tensor:
        """The gradient of sum(weights * cross-entropy): of the features is returned, of the read-out is added to it."""
        sums = torch.zeros_like(self.readout.weight), torch.zeros_like(self.readout.bias)
        shares = weights.split([len(features) for features, _, _ in self.strips])
        of_features = [
            found.slopes(self.readout, features, label, share, sums)
            for (features, label, found), share in zip(self.strips, shares, strict=True)
        ]
        for parameter, gradient in zip((self.readout.weight, self.readout.bias), sums, strict=True):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
        return torch.cat(of_features)


def impossible(labels: int, dtype: torch.dtype) -> float:
    """How far a logit must lie below the largest for its label not to count."""
    return math.log(labels) - math.log(torch.finfo(dtype).eps / 2)


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

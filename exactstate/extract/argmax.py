"""The arg max of logits, its margin and the runner-up; of thousands of labels without computing every logit in float64.

    R  rows     m  width     n  labels     k  rank of the read-out, about

The weights W are C V' + E with few columns in C, where a read-out was made from the readers of heads, and E small. The
logits of C V' x in float32 are off by no more than E, C and the rounding of float32 allow. A label whose logit is
further below the second largest than twice that is neither the best nor the runner-up; of the others, a few in a row,
the logits are computed in float64. Of the float32 logits only the largest of every group of labels is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import Floats, Ints
from exactstate.errors import InvalidInput

LEAST_LABELS = 1024
"""With fewer labels, the product in float64 is as fast."""
GROUP = 32
"""Labels of which only the largest logit is looked at."""
AT_ONCE = 1 << 21
"""Logits that are computed at a time."""
RESIDUAL = 2.0**-13
"""The largest row of E, relative to that of W."""
LARGEST = 1e30
"""Of logits; far from where float32 overflows."""


@dataclass(frozen=True, eq=False)
class ArgmaxMargins:
    """The arg max of columns of logits (the lowest index on a tie), its margin, and the runner-up."""

    best: Ints
    margins: Floats
    """The difference to the second largest logit, rounded down; infinite where there is only one."""
    runner_up: Ints
    """The index of the second largest logit."""

    @classmethod
    def of(cls, logits: Floats, what: str) -> ArgmaxMargins:
        """Along the last axis. The logits may be overwritten in place: a large array is not copied."""
        held = np.ascontiguousarray(logits, np.float64)
        if not np.isfinite(held).all():
            raise InvalidInput(f"{what} are not all finite; such weights describe no machine.")
        best = held.argmax(-1)
        top = np.take_along_axis(held, best[..., None], -1)[..., 0]
        np.put_along_axis(held, best[..., None], -np.inf, -1)
        runner_up = held.argmax(-1)
        second = np.take_along_axis(held, runner_up[..., None], -1)[..., 0]
        # a difference is rounded by at most half a unit in the last place; the next number below is no more than it
        gaps = top - second
        margins = np.where(np.isinf(gaps), gaps, np.nextafter(gaps, 0.0))
        return cls(best.astype(np.int32), margins, runner_up.astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[ArgmaxMargins], axis: int) -> ArgmaxMargins:
        return cls(
            best=np.concatenate([part.best for part in parts], axis=axis),
            margins=np.concatenate([part.margins for part in parts], axis=axis),
            runner_up=np.concatenate([part.runner_up for part in parts], axis=axis),
        )


def can_screen(readout: nn.Linear) -> bool:
    """Whether float32 may rule out labels: there are many, in float64, and torch computes float32 in float32."""
    try:
        exact = torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # it was set by two interfaces of torch that disagree
        exact = False
    return exact and readout.weight.dtype == torch.float64 and readout.out_features >= LEAST_LABELS


class ScreenedReadout:
    """A linear map to many labels."""

    def __init__(self, readout: nn.Linear) -> None:
        self.weight, self.bias = readout.weight.detach(), readout.bias.detach()
        n = len(self.bias)
        self.longest, self.largest = float(self.weight.norm(dim=1).max()), float(self.bias.abs().max())
        self.basis = self._basis()
        factors = (self.weight @ self.basis).float()
        rest = self.weight - factors.double() @ self.basis.T
        self.residual = float(rest.norm(dim=1).max()) + 2.0**-40 * self.longest
        self.longest_factor = float(factors.double().norm(dim=1).max())
        self.group = min(GROUP, n // 2)  # two groups at least
        padded = -(-n // self.group) * self.group
        self.factors = torch.zeros(padded, factors.shape[1])
        self.factors[:n] = factors
        self.narrow_bias = torch.full((padded,), -torch.inf)
        self.narrow_bias[:n] = self.bias.float()

    def _basis(self) -> Tensor:
        """V, m k: the fewest directions that leave a small E."""
        _, directions = torch.linalg.eigh(self.weight.T @ self.weight)
        directions = directions.flip(1)
        left = (self.weight @ directions).square().flip(1).cumsum(1).flip(1).amax(0).sqrt()
        few = int((left > RESIDUAL * self.longest).sum())
        return directions[:, : max(1, few)].contiguous()

    def argmax(self, x: Tensor, what: str) -> ArgmaxMargins:
        """Of the logits at every row of x (R m)."""
        at_once = max(1, AT_ONCE // len(self.bias))
        return ArgmaxMargins.joined([self._argmax(some, what) for some in x.split(at_once)], axis=0)

    def _argmax(self, x: Tensor, what: str) -> ArgmaxMargins:
        y = x @ self.basis
        off = self._off(x.norm(dim=1), y.norm(dim=1))
        if not bool((off < LARGEST).all()):
            raise InvalidInput(f"{what} are not all finite; such weights describe no machine.")
        logits = torch.addmm(self.narrow_bias, y.float(), self.factors.T).view(len(x), -1, self.group)
        largest = logits.amax(dim=2)
        second = largest.topk(2, dim=1).values[:, 1]
        threshold = (second.double() - 2.0 * off).float()
        threshold = torch.nextafter(threshold, threshold.new_tensor(-torch.inf))
        row, group = torch.nonzero(largest >= threshold[:, None], as_tuple=True)
        which, member = torch.nonzero(logits[row, group] >= threshold[row, None], as_tuple=True)
        rows, labels = row[which], group[which] * self.group + member
        exact = torch.einsum("ci,ci->c", x[rows], self.weight[labels]) + self.bias[labels]
        return _two_largest(exact.numpy(), rows.numpy(), labels.numpy(), len(x))

    def _off(self, x: Tensor, y: Tensor) -> Tensor:
        """R: how far a float32 logit may be from the one in float64, for these lengths of x and y = V' x."""
        k, float32 = self.basis.shape[1], torch.finfo(torch.float32)
        # |y| |c| is no less than the sum of |y_i c_i|; each operand, product and sum is rounded once
        rounding = (k + 6) * float32.eps / 2 * (1.01 * self.longest_factor * y + self.largest)
        double = 2.0**-40 * (self.longest * x + self.largest)
        return 1.01 * (rounding + self.residual * x + double) + (2 * k + 4) * float32.tiny


def _two_largest(logits: Floats, rows: Ints, labels: Ints, count: int) -> ArgmaxMargins:
    """Of the candidates of every row, which are at least two; the lowest label on a tie."""
    order = np.lexsort((labels, -logits, rows))
    first = np.searchsorted(rows[order], np.arange(count))
    best, runner_up = order[first], order[first + 1]
    margins = np.nextafter(logits[best] - logits[runner_up], 0.0)
    return ArgmaxMargins(labels[best].astype(np.int32), margins, labels[runner_up].astype(np.int32))

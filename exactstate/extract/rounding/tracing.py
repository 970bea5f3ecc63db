"""A model in a number format against the same model in real numbers: bounds of its logits, and what they decide.

    R  rows     d  indices of a head     S  indices of all heads of a layer     k  kernel size     n  labels

Two networks are computed: the real one with the parameters as they are, and the one of the format. A number computed
in the format is off from the real one by no more than the distance of the two midpoints and both radii.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import unknown
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.rounding.arithmetic import ASSUMED, EXACT, Arithmetic, Assumptions
from exactstate.extract.rounding.balls import Ball, above, below, product
from exactstate.extract.rounding.layers import Affine, Entries
from exactstate.extract.rounding.network import BoundedNetwork, map_batches, unbounded_is_infinite
from exactstate.nn import Backbone
from exactstate.number_formats import FORMATS


@unbounded_is_infinite
def at_risk(real: Affine, x: Ball, computed: Affine, z: Ball, arithmetic: Arithmetic, best: Ints) -> Floats:
    """R e: the share of the lead of the best output over each other that a machine may lose; nothing for the best.

    `real` and `x` are of the network in real numbers, `computed` and `z` of the one of the format. Below 1 the machine
    has the same order as the real network.
    """
    rows = np.arange(len(best))
    theta, logits = real(x.mid), computed(z.mid)
    local = real.wide_errors(x, EXACT) + computed.wide_errors(z, arithmetic)
    lead, gap = (part[rows, best][:, None] - part for part in (theta, logits))
    stretched = _apart(computed, best) * z.rad[:, None] + (real.rows[best][:, None] + real.rows) * x.rad[:, None]
    ours = 2.0**-51 * (np.abs(lead) + np.abs(gap))
    off = above(np.abs(gap - lead) + ours + local[rows, best][:, None] + local + stretched)
    share = above(off / below(lead))
    share[rows, best] = 0.0
    return share


def _apart(affine: Affine, best: Ints) -> Floats:
    """R e: no less than the Euclidean distance of the best row of the weights from every other."""
    few, number = np.unique(best, return_inverse=True)
    weight, squares = affine.weight, affine.rows**2
    distances = squares[few][:, None] + squares - 2.0 * product(weight[few], weight.T)
    lost = (weight.shape[1] + 8) * 2.0**-51 * (squares[few][:, None] + squares)
    return above(np.sqrt(np.maximum(distances, 0.0) + lost))[number]


class BoundedLogits(NamedTuple):
    """Logits, and what bounds them."""

    theta: Floats
    """The real logits, to float64."""
    errors: Floats
    """No logit that is computed in the format is further from `theta`, nor from the real one."""

    @classmethod
    def between(cls, real: Entries, computed: Entries) -> BoundedLogits:
        with np.errstate(all="ignore"):
            errors = above(np.abs(computed[0] - real[0]) + real[1] + computed[1])
        return cls(real[0], errors)

    @classmethod
    def joined(cls, parts: Sequence[BoundedLogits]) -> BoundedLogits:
        return cls(np.concatenate([part.theta for part in parts]), np.concatenate([part.errors for part in parts]))


@dataclass(frozen=True, eq=False)
class BoundedArgmax:
    """The arg max of columns of logits, and whether rounding could change it."""

    best: Ints
    margins: Floats
    """The difference to the second largest logit, rounded down; infinite where there is only one."""
    errors: Floats
    """No logit of the column is off by more; or, where that would not decide, half the margin times the largest share
    of its lead over another that rounding may take from the best (see `at_risk`)."""

    @property
    def proved(self) -> Bools:
        """Where every machine that satisfies the assumptions has the same arg max."""
        return self.margins > 2.0 * self.errors

    @classmethod
    def of(cls, bounded: BoundedLogits) -> BoundedArgmax:
        """Along the last axis. The logits may be overwritten in place."""
        errors = bounded.errors.max(-1)
        chosen = ArgmaxMargins.of(bounded.theta, "the logits")
        return cls(chosen.best, chosen.margins, errors)

    @classmethod
    def joined(cls, parts: Sequence[BoundedArgmax], axis: int = 0) -> BoundedArgmax:
        return cls(
            np.concatenate([part.best for part in parts], axis=axis),
            np.concatenate([part.margins for part in parts], axis=axis),
            np.concatenate([part.errors for part in parts], axis=axis),
        )


@dataclass(frozen=True, eq=False)
class _ReadOut:
    """One map of a read-out, in real numbers and in the format, and what both are applied to."""

    real: Affine
    x: Ball
    computed: Affine
    z: Ball
    arithmetic: Arithmetic

    @unbounded_is_infinite
    def logits(self) -> BoundedLogits:
        return BoundedLogits.between(
            self.real.wide_entries(self.x, EXACT), self.computed.wide_entries(self.z, self.arithmetic)
        )

    @unbounded_is_infinite
    def decided(self) -> BoundedArgmax:
        """By the errors of the logits, and where these do not decide, by the shares of leads that may be lost."""
        decided = BoundedArgmax.of(self.logits())
        left = np.flatnonzero(~decided.proved & np.isfinite(decided.margins) & np.isfinite(self.z.rad))
        if len(left):
            x, z, best = self.x[left], self.z[left], decided.best[left]
            share = at_risk(self.real, x, self.computed, z, self.arithmetic, best).max(-1)
            decided.errors[left] = np.minimum(decided.errors[left], above(0.5 * decided.margins[left] * share))
        return decided


class Traced:
    """A model in a format, with bounds, at the inputs and windows of an extraction (see `network`)."""

    def __init__(
        self, model: Backbone, format: str, *, symbols: int | None = None, assumptions: Assumptions | None = None
    ) -> None:
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        self.format, self.assumptions = format, assumptions or ASSUMED[format]
        tokens = np.arange(model.vocabulary if symbols is None else symbols)
        self.real = BoundedNetwork(model, EXACT, tokens)
        self.computed = BoundedNetwork(model, self.assumptions.arithmetic(format), tokens)
        self.heads = tuple(layer.heads for layer in self.real.stages.layers)

    def add_inputs(self, layer: int, inputs: Ints) -> None:
        """Append inputs of a layer above the first: rows of (input of the layer below, its indices)."""
        self.real.add_inputs(layer, inputs)
        self.computed.add_inputs(layer, inputs)

    def logits(self, layer: int, windows: Ints) -> tuple[BoundedLogits, ...]:
        """For every head R d d: entry [j, k] scores the move from index k to index j."""
        parts = map_batches(lambda some: self._moves(layer, some), windows, self._entries(layer))
        return tuple(BoundedLogits.joined(head) for head in zip(*parts, strict=True))

    def tables(self, layer: int, windows: Ints) -> BoundedArgmax:
        """R S: the successor of every index of every head."""

        def decide(some: Ints) -> BoundedArgmax:
            return BoundedArgmax.joined([BoundedArgmax.of(columns(head)) for head in self._moves(layer, some)], axis=1)

        return BoundedArgmax.joined(map_batches(decide, windows, self._entries(layer)))

    def read_out(self, inputs: Ints) -> tuple[BoundedLogits, BoundedLogits | None]:
        """R n: logits of labels, and of answers if there are any; rows as for `add_inputs`, above the last layer."""
        labels, *answers = [read.logits() for read in self._read(inputs)]
        return labels, answers[0] if answers else None

    def labels(self, inputs: Ints) -> tuple[BoundedArgmax, BoundedArgmax | None]:
        """R: the arg max of the read-outs."""

        def decide(some: Ints) -> list[BoundedArgmax]:
            return [read.decided() for read in self._read(some)]

        n = len(self.real.stages.readout.bias)
        labels, *answers = zip(*map_batches(decide, inputs, max(n, self.real.jacobian)), strict=True)
        return BoundedArgmax.joined(labels), BoundedArgmax.joined(answers[0]) if answers else None

    def _read(self, inputs: Ints) -> list[_ReadOut]:
        """Of labels, and of answers if there are any."""
        real, computed = self.real.stages, self.computed.stages
        x, z = self.real.decoded(inputs), self.computed.decoded(inputs)
        maps = [(real.readout, computed.readout), (real.reply, computed.reply)]
        return [_ReadOut(one, x, other, z, computed.arithmetic) for one, other in maps if one and other]

    def _moves(self, layer: int, windows: Ints) -> list[BoundedLogits]:
        whole = BoundedLogits.between(self.real.logits(layer, windows), self.computed.logits(layer, windows))
        ends = np.cumsum([d * d for d in self.heads[layer]])
        return [
            BoundedLogits(*(array[:, end - d * d : end].reshape(-1, d, d).swapaxes(1, 2) for array in whole))
            for d, end in zip(self.heads[layer], ends, strict=True)
        ]

    def _entries(self, layer: int) -> int:
        return sum(d * d for d in self.heads[layer])


def columns(head: BoundedLogits) -> BoundedLogits:
    """The same with the columns along the last axis."""
    return BoundedLogits(head.theta.swapaxes(-1, -2), head.errors.swapaxes(-1, -2))

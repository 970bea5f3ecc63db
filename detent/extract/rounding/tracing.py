"""What a model computes in a format, against what it would in real numbers: the choices it makes, and their bounds.

    R  rows     r  heads     d  indices of a head     S  indices of all heads of a layer     k  reach     n  labels

Two networks are followed: the real one with the parameters as they are, and the one of the format. A number computed
in the format is off from the real one by no more than the distance of the two midpoints and both radii.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from detent._types import Bools, Floats, Ints
from detent.errors import unknown
from detent.extract.network import Choices
from detent.extract.rounding.balls import Ball, above, below, product
from detent.extract.rounding.batches import each
from detent.extract.rounding.formats import ASSUMED, EXACT, FORMATS, Arithmetic, Assumptions
from detent.extract.rounding.layers import Affine, Entries
from detent.extract.rounding.network import Followed
from detent.nn import Backbone

# -- How much of its lead over the others rounding may take from the best output of a map.


@np.errstate(all="ignore")
def at_risk(real: Affine, x: Ball, computed: Affine, z: Ball, arithmetic: Arithmetic, best: Ints) -> Floats:
    """R e: the share of the lead of the best output over each other that a machine may lose; nothing for the best.

    `real` and `x` are of the network in real numbers, `computed` and `z` of the one of the format. Below 1 the machine
    has the same order as the real network.
    """
    rows = np.arange(len(best))
    theta, said = real(x.mid), computed(z.mid)
    local = real.wide_errors(x, EXACT) + computed.wide_errors(z, arithmetic)
    lead, gap = (part[rows, best][:, None] - part for part in (theta, said))
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


class Bounded(NamedTuple):
    """Logits, and what bounds them."""

    theta: Floats
    """The real logits, to float64."""
    errors: Floats
    """No logit that is computed in the format is further from `theta`, nor from the real one."""

    @classmethod
    def between(cls, real: Entries, computed: Entries) -> Bounded:
        with np.errstate(all="ignore"):
            errors = above(np.abs(computed[0] - real[0]) + real[1] + computed[1])
        return cls(real[0], errors)

    @classmethod
    def joined(cls, parts: Sequence[Bounded]) -> Bounded:
        return cls(np.concatenate([part.theta for part in parts]), np.concatenate([part.errors for part in parts]))


@dataclass(frozen=True, eq=False)
class Decided:
    """What columns of logits choose, and whether rounding could change it."""

    best: Ints
    margins: Floats
    """By how much the best is ahead of the second; rounded down; infinite where there is nothing else to choose."""
    errors: Floats
    """No logit of the column is off by more; or, where that would not decide, half the margin times the largest share
    of its lead over another that rounding may take from the best (see `leads`)."""

    @property
    def proved(self) -> Bools:
        """Where every machine that keeps to the assumptions chooses the same."""
        return self.margins > 2.0 * self.errors

    @classmethod
    def by(cls, bounded: Bounded) -> Decided:
        """Along the last axis. The logits are used up."""
        errors = bounded.errors.max(-1)
        chosen = Choices.among(bounded.theta, "the logits")
        return cls(chosen.best, chosen.margins, errors)

    @classmethod
    def joined(cls, parts: Sequence[Decided], axis: int = 0) -> Decided:
        return cls(
            np.concatenate([part.best for part in parts], axis=axis),
            np.concatenate([part.margins for part in parts], axis=axis),
            np.concatenate([part.errors for part in parts], axis=axis),
        )


@dataclass(frozen=True, eq=False)
class _Read:
    """One map of a read-out, in real numbers and in the format, and what both are applied to."""

    real: Affine
    x: Ball
    computed: Affine
    z: Ball
    arithmetic: Arithmetic

    @np.errstate(all="ignore")
    def logits(self) -> Bounded:
        return Bounded.between(
            self.real.wide_entries(self.x, EXACT), self.computed.wide_entries(self.z, self.arithmetic)
        )

    @np.errstate(all="ignore")
    def decided(self) -> Decided:
        """By the errors of the logits, and where these do not decide, by the shares of leads that may be lost."""
        found = Decided.by(self.logits())
        left = np.flatnonzero(~found.proved & np.isfinite(found.margins) & np.isfinite(self.z.rad))
        if len(left):
            x, z, best = self.x[left], self.z[left], found.best[left]
            share = at_risk(self.real, x, self.computed, z, self.arithmetic, best).max(-1)
            found.errors[left] = np.minimum(found.errors[left], above(0.5 * found.margins[left] * share))
        return found


class Traced:
    """A model in a format, with bounds, at the inputs and windows of an extraction (see `following`)."""

    def __init__(
        self, model: Backbone, format: str, *, symbols: int | None = None, assumptions: Assumptions | None = None
    ) -> None:
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        self.format, self.assumptions = format, assumptions or ASSUMED[format]
        tokens = np.arange(model.vocabulary if symbols is None else symbols)
        self.real = Followed(model, EXACT, tokens)
        self.computed = Followed(model, self.assumptions.arithmetic(format), tokens)
        self.heads = tuple(layer.heads for layer in self.real.stages.layers)

    def enter(self, layer: int, inputs: Ints) -> None:
        """Take up the next inputs of a layer above the first: rows of (input of the layer below, its indices)."""
        self.real.enter(layer, inputs)
        self.computed.enter(layer, inputs)

    def logits(self, layer: int, windows: Ints) -> tuple[Bounded, ...]:
        """For every head R d d: entry [j, k] scores the move from index k to index j."""
        parts = each(lambda some: self._moves(layer, some), windows, self._entries(layer))
        return tuple(Bounded.joined(head) for head in zip(*parts, strict=True))

    def tables(self, layer: int, windows: Ints) -> Decided:
        """R S: where the block sends every index of every head."""

        def decide(some: Ints) -> Decided:
            return Decided.joined([Decided.by(columns(head)) for head in self._moves(layer, some)], axis=1)

        return Decided.joined(each(decide, windows, self._entries(layer)))

    def read_out(self, inputs: Ints) -> tuple[Bounded, Bounded | None]:
        """R n: logits of the labels, and of the answers if there are any; rows as for `enter`, above the last layer."""
        labels, *answers = [read.logits() for read in self._read(inputs)]
        return labels, answers[0] if answers else None

    def labels(self, inputs: Ints) -> tuple[Decided, Decided | None]:
        """R: what the read-outs choose."""

        def decide(some: Ints) -> list[Decided]:
            return [read.decided() for read in self._read(some)]

        n = len(self.real.stages.readout.bias)
        said, *answered = zip(*each(decide, inputs, max(n, self.real.jacobian)), strict=True)
        return Decided.joined(said), Decided.joined(answered[0]) if answered else None

    def _read(self, inputs: Ints) -> list[_Read]:
        """Of labels, and of answers if there are any."""
        real, computed = self.real.stages, self.computed.stages
        x, z = self.real.decoded(inputs), self.computed.decoded(inputs)
        maps = [(real.readout, computed.readout), (real.reply, computed.reply)]
        return [_Read(one, x, other, z, computed.arithmetic) for one, other in maps if one and other]

    def _moves(self, layer: int, windows: Ints) -> list[Bounded]:
        whole = Bounded.between(self.real.logits(layer, windows), self.computed.logits(layer, windows))
        ends = np.cumsum([d * d for d in self.heads[layer]])
        return [
            Bounded(*(array[:, end - d * d : end].reshape(-1, d, d).swapaxes(1, 2) for array in whole))
            for d, end in zip(self.heads[layer], ends, strict=True)
        ]

    def _entries(self, layer: int) -> int:
        return sum(d * d for d in self.heads[layer])


def columns(head: Bounded) -> Bounded:
    """The same with the columns along the last axis."""
    return Bounded(head.theta.swapaxes(-1, -2), head.errors.swapaxes(-1, -2))

"""How far the chosen logit stays ahead of every other, for all machines of a format and all inputs of a region.

    R  rows     C  choices: columns of heads, or one read-out     e  pairs of a choice and a rival     m  width

A table entry or label is proved when the smallest lead is positive. `interval` bounds the vector that the logits are an
affine map of, and then each lead; `linear` pushes every lead back to the inputs (see `linear.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from exactstate._types import Floats, Ints
from exactstate.errors import unknown
from exactstate.extract.graph.arithmetic import OURS, Arithmetic
from exactstate.extract.graph.backbone import LoweredBackbone
from exactstate.extract.graph.branch import PARTS, Parted, branch
from exactstate.extract.graph.interval import Interval, Parameters
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.graph.linear import LinearBounds, widest
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.nodes import Conv, Graph, Node
from exactstate.extract.graph.steps import Region, Steps
from exactstate.extract.graph.upper import above, length, product

METHODS = ("interval", "linear")
AT_ONCE = 1 << 22
"""Numbers in the largest array of a batch."""
WIDE = 512
"""Labels, for fewer of which differences of rows are formed."""
MANY = 2048
"""Read-outs, of which the leads are bounded quickly first."""
QUICK_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Choices:
    """Logits that are an affine map of a node, and which of them compete."""

    root: Node
    weight: Floats
    """E m."""
    bias: Floats
    """E."""
    rivals: Ints
    """e: entries of the logits, choice after choice."""
    owners: Ints
    """e: the choice that each belongs to."""
    firsts: Ints
    """C: where each choice begins among the e."""
    bases: Ints
    """C: where each choice begins among the E."""
    stores: int
    """Roundings of a computed logit to the format."""
    radii: tuple[Floats | None, Floats | None] = (None, None)
    """Of weight and bias, where they were computed from parameters."""

    @classmethod
    def of(cls, graph: Graph, layer: int, parameters: Parameters, dropped: Sequence[int] = ()) -> Choices:
        """The columns of a layer's heads but the dropped ones, or the labels where `layer` is the number of layers."""
        radii: tuple[Floats | None, Floats | None] = (None, None)
        if layer < len(graph.layers):
            call = graph.layers[layer]
            root: Node = call.argument
            if call.module.mix_proj is not None:
                mix = call.module.mix_proj
                root = Conv(size=len(mix.bias), args=(root,), taps=((0, mix.weight),), bias=mix.bias,
                            name=f"mixture of NFSM layer {call.name!r}")  # fmt: skip
            begins = np.cumsum([0, *(d * d for d in call.module.heads)])
            kept = [head for head in range(len(call.module.heads)) if head not in dropped]
            columns = [(int(begins[head]) + k * call.module.heads[head], call.module.heads[head])
                       for head in kept for k in range(call.module.heads[head])]  # fmt: skip
            weight, bias, stores = parameters.array(call.module.weight), parameters.array(call.module.bias), 0
        else:
            roots = [graph.output] if graph.answers is None else [graph.output, graph.answers]
            if all(isinstance(root, Conv) and root.groups == 1 and len(root.taps) == 1 and root.taps[0][0] == 0
                   and root.args == roots[0].args for root in roots):  # fmt: skip
                weight, radii, bias, stores = *_stacked(roots, parameters), 2  # type: ignore[arg-type]
                root = roots[0].args[0]
            else:
                (root,) = roots
                weight, bias, stores = np.eye(root.size), np.zeros(root.size), 0
            ends = np.cumsum([0, *(one.size for one in roots)])
            columns = [(int(end), one.size) for end, one in zip(ends, roots, strict=False)]
        bases, sizes = np.array([base for base, _ in columns]), [size for _, size in columns]
        rivals = np.concatenate([np.arange(base, base + size) for base, size in columns])
        owners, firsts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum([0, *sizes[:-1]])
        return cls(root, weight, bias, rivals, owners, firsts, bases, stores, radii)

    def leads(self, bounds: IntervalBounds, best: Ints, method: str, influence: Floats | None = None) -> Floats:
        """R C: no larger than the lead of the best (R C, counted within each choice) over any rival.

        `influence` (R r) is filled with how much each head that is left out moves the smallest lead of a row.
        """
        with np.errstate(all="ignore"):
            x = bounds.at(self.root)
            logits = self._logits(bounds, x)
            chosen = (best + self.bases)[:, self.owners]
            rows = np.arange(len(best))[:, None]
            lost = logits.error[rows, chosen] + logits.error[:, self.rivals]
            if method == "interval":
                one, other = logits.mid[rows, chosen], logits.mid[:, self.rivals]
                if self.wide:
                    moved: Any = self._apart(best[:, 0]) * x.ball[:, None]
                else:
                    forms = np.abs(self.weight[chosen] - self.weight[self.rivals])
                    moved = above(np.matmul(forms, x.rad[:, :, None])[:, :, 0], forms.shape[2])
                    moved = np.minimum(moved, above(length(forms) * x.ball[:, None]))
                lead, off = one - other, np.abs(one) + np.abs(other)
                lost = lost + moved
            else:
                linear = LinearBounds(bounds)
                lead = linear.lower(self.root, self.weight[chosen] - self.weight[self.rivals])
                off = np.abs(lead) + np.abs(self.bias[chosen]) + np.abs(self.bias[self.rivals])
                lead = lead + (self.bias[chosen] - self.bias[self.rivals])
                # the difference of two rows is rounded
                size = product(x.size, np.ascontiguousarray(np.abs(self.weight).T))
                ours = OURS.gamma(self.weight.shape[1] + 8) * above(size)
                lost = lost + ours[rows, chosen] + ours[:, self.rivals]
            lead = lead - above(lost + 2.0**-50 * off)
        lead = np.where(np.isnan(lead), -np.inf, lead)
        lead[chosen == self.rivals] = np.inf
        if influence is not None and method != "interval" and linear.spreads is not None:
            influence[:] = linear.spreads[rows[:, 0], lead.argmin(1)]
        return np.minimum.reduceat(lead, self.firsts, axis=1)

    def _logits(self, bounds: IntervalBounds, x: Interval) -> Interval:
        """R E."""
        norms = length(self.weight), float(length(self.weight.reshape(-1)))
        return bounds.affine(
            x, [(self.weight, *norms)], self.bias, stores=self.stores, radii=self.radii[:1], off=self.radii[1]
        )

    @property
    def wide(self) -> bool:
        """Whether there is one choice among so many that no differences of rows are formed."""
        return len(self.firsts) == 1 and len(self.rivals) > WIDE

    def _apart(self, best: Ints) -> Floats:
        """R E: no less than the Euclidean distance of the best row of the weights from every other."""
        few, number = np.unique(best, return_inverse=True)
        squares = length(self.weight) ** 2
        crossed = product(np.ascontiguousarray(self.weight[few]), np.ascontiguousarray(self.weight.T))
        distances = squares[few][:, None] + squares - 2.0 * crossed
        lost = (self.weight.shape[1] + 8) * 2.0**-50 * (squares[few][:, None] + squares)
        return above(np.sqrt(np.maximum(distances, 0.0) + lost))[number]

    def widest_error(self, bounds: IntervalBounds) -> Floats:
        """R: no logit is further from its midpoint, by lengths alone."""
        with np.errstate(all="ignore"):
            x, n = bounds.at(self.root), self.weight.shape[1]
            row, bias = float(length(self.weight).max()), float(np.abs(self.bias).max())
            magnitude = above(row * (length(x.mid) + x.ball) + bias, n)
            return above(row * x.ball + bounds.summed(n + 1, magnitude, magnitude, magnitude + bias, self.stores))


@dataclass(frozen=True, eq=False)
class LeadBounds:
    """Smallest leads of an extraction, in one arithmetic and over a region."""

    network: TracedNetwork | LoweredBackbone
    arithmetic: Arithmetic
    region: Region | None = None
    dropped: Sequence[Sequence[int]] | None = None

    @cached_property
    def streams(self) -> list[Interval]:
        """What every layer reads, by number of input, where the graph is cut."""
        found: list[Interval] = []
        for layer, root in enumerate(self.network.streams):
            steps = self.network.stream_steps(layer)
            parts = [
                self.bounds(steps.rows(rows), found).at(root)
                for rows in _equally_long(steps, max(1, AT_ONCE // (16 * widest(root))))
            ]
            found = [*found, Interval.joined(parts)]
        return found

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters(self.arithmetic)

    def bounds(self, steps: Steps, streams: Sequence[Interval], *, quick: bool = False) -> IntervalBounds:
        """Intervals at some steps that began equally long ago."""
        return IntervalBounds(
            self.network.graph, self.arithmetic, steps, parameters=self._parameters, region=self.region,
            dropped=self.dropped, streams=streams, quick=quick,
        )  # fmt: skip

    def choices(self, layer: int) -> Choices:
        graph = self.network.graph
        out = self.dropped[layer] if self.dropped is not None and layer < len(graph.layers) else ()
        return Choices.of(graph, layer, self._parameters, out)

    def layer(self, layer: int, windows: Ints, best: Ints, method: str = "linear") -> Floats:
        """R S: of every column of a layer at some windows."""
        return self._bounded(layer, self.network.layer_steps(layer, windows), best, method)

    def labels(self, inputs: Ints, best: Ints, method: str = "linear") -> Floats:
        """R: of the labels of some read-outs; R 2 where there are answers as well."""
        layers = len(self.network.blocks)
        steps = self.network.read_steps(inputs)
        possible = self.network.possible(self.arithmetic, inputs)
        if possible is None or method != "linear":
            leads = self._bounded(layers, replace(steps, possible=possible), best.reshape(len(best), -1), method)
            return leads.reshape(best.shape)
        return self.parted(replace(steps, possible=possible), best, np.zeros(len(best)), PARTS).leads

    def parted(self, steps: Steps, best: Ints, wanted: Floats, most: int) -> Parted:
        """The labels of some read-outs; heads that are left out are parted until the leads (R) are as `wanted`."""
        layers = len(self.network.blocks)
        dropped = tuple((self.network.dropped or [()])[-1])

        def bounded(some: Steps, labels: Ints) -> tuple[Floats, Floats]:
            influence = np.zeros((len(labels), len(dropped)))
            return self._bounded(layers, some, labels[:, None], "linear", influence)[:, 0], influence

        bounds = self.bounds(steps.rows(np.arange(0)), ())
        return branch(
            bounded, steps, best, wanted, heads=self.network.blocks[-1].heads, dropped=dropped, most=most,
            contributions=cache(lambda head: bounds.contributions(layers - 1, head)),
        )  # fmt: skip

    def _bounded(
        self, layer: int, steps: Steps, best: Ints, method: str, influence: Floats | None = None
    ) -> Floats:  # fmt: skip
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        choices = self.choices(layer)
        result = np.full(best.shape, -np.inf)
        across = 1 if method == "interval" and choices.wide else choices.weight.shape[1]
        widest_array = max(len(choices.rivals) * across, 16 * widest(choices.root))
        if method == "linear":
            widest_array = len(choices.rivals) * max(widest(choices.root), across)
        for rows in _equally_long(steps, max(1, AT_ONCE // widest_array)):
            bounds = self.bounds(steps.rows(rows), self.streams)
            if method == "linear":
                LinearBounds(bounds).refine(choices.root)
            moved = None if influence is None else np.zeros((len(rows), influence.shape[1]))
            result[rows] = choices.leads(bounds, best[rows], method, moved)
            if influence is not None:
                influence[rows] = moved
        return result


def _stacked(
    maps: Sequence[Conv], parameters: Parameters
) -> tuple[Floats, tuple[Floats | None, Floats | None], Floats]:  # fmt: skip
    """(weights, their radii and those of the biases, biases) of maps of the same vector, one below the other."""
    weights = [map_.taps[0][1] for map_ in maps]
    biases = [np.zeros(map_.size) if map_.bias is None else parameters.array(map_.bias) for map_ in maps]
    if len(maps) == 1:
        radii = parameters.radius(weights[0]), parameters.radius(maps[0].bias)
        return parameters.array(weights[0]), radii, biases[0]
    return np.concatenate([parameters.array(weight) for weight in weights]), (None, None), np.concatenate(biases)


def _equally_long(steps: Steps, at_once: int) -> Iterator[Ints]:
    """Rows in batches whose words began equally long ago."""
    begun = (steps.symbols >= 0).sum(1)
    for length_ in np.unique(begun):
        rows = np.flatnonzero(begun == length_)
        for begin in range(0, len(rows), at_once):
            yield rows[begin : begin + at_once]

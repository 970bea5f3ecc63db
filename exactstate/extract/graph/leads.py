"""How far the chosen logit stays ahead of every other, for all machines of a format and all inputs of a region.

    R  rows     C  choices: columns of heads, or one read-out     e  pairs of a choice and a rival     m  width

A table entry or label is proved when the smallest lead is positive. `interval` bounds the vector that the logits are an
affine map of, and then each lead; `linear` pushes every lead back to the inputs (see `linear.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput, unknown
from exactstate.extract.graph.branch import PARTS, Parted, branch
from exactstate.extract.graph.interval import Interval, Parameters
from exactstate.extract.graph.intervals import IntervalBounds
from exactstate.extract.graph.linear import LinearBounds, widest
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.nodes import Conv, Graph, Node
from exactstate.extract.graph.steps import Region, Steps
from exactstate.extract.result import Extracted, RoundingErrors
from exactstate.extract.rounding.arithmetic import ASSUMED, OURS, Arithmetic, Assumptions
from exactstate.extract.rounding.balls import above, length, product
from exactstate.number_formats import FORMATS

METHODS = ("interval", "linear")
AT_ONCE = 1 << 22
"""Numbers in the largest array of a batch."""


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
            root, columns, stores = graph.output, [(0, graph.output.size)], 2
            if isinstance(root, Conv) and root.groups == 1 and len(root.taps) == 1 and root.taps[0][0] == 0:
                weight, radii = (
                    parameters.array(root.taps[0][1]),
                    (parameters.radius(root.taps[0][1]), parameters.radius(root.bias)),
                )
                bias = np.zeros(len(weight)) if root.bias is None else parameters.array(root.bias)
                root = root.args[0]
            else:
                weight, bias, stores = np.eye(root.size), np.zeros(root.size), 0
        bases, sizes = np.array([base for base, _ in columns]), [size for _, size in columns]
        rivals = np.concatenate([np.arange(base, base + size) for base, size in columns])
        owners, firsts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum([0, *sizes[:-1]])
        return cls(root, weight, bias, rivals, owners, firsts, bases, stores, radii)

    def leads(self, bounds: IntervalBounds, best: Ints, method: str, influence: Floats | None = None) -> Floats:
        """R C: no larger than the lead of the best (R C, counted within each choice) over any rival.

        `influence` (R r) is filled with how much each head that is left out moves the smallest lead of a row.
        """
        x = bounds.at(self.root)
        chosen = (best + self.bases)[:, self.owners]
        forms = self.weight[chosen] - self.weight[self.rivals]
        errors = self._errors(bounds, x)
        rows = np.arange(len(best))[:, None]
        lost = errors[rows, chosen] + errors[:, self.rivals]
        # the difference of two rows is rounded
        size = np.abs(self.weight)
        ours = OURS.gamma(self.weight.shape[1] + 8) * above(
            product(x.size, np.ascontiguousarray(size.T)) + np.abs(self.bias)
        )
        lost = lost + ours[rows, chosen] + ours[:, self.rivals]
        offset = self.bias[chosen] - self.bias[self.rivals]
        with np.errstate(all="ignore"):
            if method == "interval":
                at_middle = np.matmul(forms, x.mid[:, :, None])[:, :, 0]
                moved = np.matmul(np.abs(forms), x.rad[:, :, None])[:, :, 0]
                moved = np.minimum(above(moved, forms.shape[2]), above(length(forms) * x.ball[:, None]))
                lead = at_middle - above(moved + 2.0**-48 * np.abs(at_middle))
            else:
                linear = LinearBounds(bounds)
                lead = linear.lower(self.root, forms)
            lead = lead + offset - above(lost + 2.0**-50 * (np.abs(lead) + np.abs(offset)))
        lead = np.where(np.isnan(lead), -np.inf, lead)
        lead[chosen == self.rivals] = np.inf
        if influence is not None and method == "linear" and linear.spreads is not None:
            influence[:] = linear.spreads[rows[:, 0], lead.argmin(1)]
        return np.minimum.reduceat(lead, self.firsts, axis=1)

    def _errors(self, bounds: IntervalBounds, x: Interval) -> Floats:
        """R E: the rounding of the logits themselves."""
        norms = length(self.weight), float(length(self.weight.reshape(-1)))
        return bounds.affine(
            x, [(self.weight, *norms)], self.bias, stores=self.stores, radii=self.radii[:1], off=self.radii[1]
        ).error


@dataclass(frozen=True, eq=False)
class LeadBounds:
    """Smallest leads of an extraction, in one arithmetic and over a region."""

    network: TracedNetwork
    arithmetic: Arithmetic
    region: Region | None = None
    dropped: Sequence[Sequence[int]] | None = None

    def layer(self, layer: int, windows: Ints, best: Ints, method: str = "linear") -> Floats:
        """R S: of every column of a layer at some windows."""
        return self._bounded(layer, self.network.book.window(layer, windows), best, method)

    def labels(self, inputs: Ints, best: Ints, method: str = "linear") -> Floats:
        """R: of the labels of some read-outs."""
        layers = len(self.network.blocks)
        steps = self.network.read_steps(inputs)
        possible = self.network.possible(self.arithmetic, inputs)
        if possible is None or method != "linear":
            return self._bounded(layers, replace(steps, possible=possible), best[:, None], method)[:, 0]
        return self.parted(replace(steps, possible=possible), best, np.zeros(len(best)), PARTS).leads

    def parted(self, steps: Steps, best: Ints, wanted: Floats, most: int) -> Parted:
        """The labels of some read-outs; heads that are left out are parted until the leads (R) are as `wanted`."""
        layers = len(self.network.blocks)
        dropped = tuple(self.network.dropped[-1])

        def bounded(some: Steps, labels: Ints) -> tuple[Floats, Floats]:
            influence = np.zeros((len(labels), len(dropped)))
            return self._bounded(layers, some, labels[:, None], "linear", influence)[:, 0], influence

        parameters = Parameters(self.arithmetic)
        bounds = IntervalBounds(self.network.graph, self.arithmetic, steps.rows(np.arange(0)), parameters=parameters)
        return branch(
            bounded, steps, best, wanted, heads=self.network.blocks[-1].heads, dropped=dropped, most=most,
            contributions=cache(lambda head: bounds.contributions(layers - 1, head)),
        )  # fmt: skip

    def _bounded(
        self, layer: int, steps: Steps, best: Ints, method: str, influence: Floats | None = None
    ) -> Floats:  # fmt: skip
        if method not in METHODS:
            raise unknown("method", method, METHODS)
        parameters = Parameters(self.arithmetic)
        graph = self.network.graph
        out = self.dropped[layer] if self.dropped is not None and layer < len(graph.layers) else ()
        choices = Choices.of(graph, layer, parameters, out)
        result = np.full(best.shape, -np.inf)
        widest_array = len(choices.rivals) * max(widest(choices.root), choices.weight.shape[1])
        for rows in _equally_long(steps, max(1, AT_ONCE // widest_array)):
            bounds = IntervalBounds(
                graph, self.arithmetic, steps.rows(rows), parameters=parameters, region=self.region,
                dropped=self.dropped,
            )  # fmt: skip
            if method == "linear":
                LinearBounds(bounds).refine(choices.root)
            moved = None if influence is None else np.zeros((len(rows), influence.shape[1]))
            result[rows] = choices.leads(bounds, best[rows], method, moved)
            if influence is not None:
                influence[rows] = moved
        return result


def _equally_long(steps: Steps, at_once: int) -> Iterator[Ints]:
    """Rows in batches whose words began equally long ago."""
    begun = (steps.symbols >= 0).sum(1)
    for length_ in np.unique(begun):
        rows = np.flatnonzero(begun == length_)
        for begin in range(0, len(rows), at_once):
            yield rows[begin : begin + at_once]


def sharpened(
    bounded: Callable[[Bools, str], Floats], count: int, methods: Sequence[str] = METHODS
) -> Floats:  # fmt: skip
    """Leads by the first method, and by the next where that does not decide a row."""
    left: Bools = np.ones(count, bool)
    result: Floats | None = None
    for method in methods:
        if result is not None:
            left = np.asarray(~((result > 0).reshape(count, -1).all(axis=1)))
            if not left.any():
                break
        leads = bounded(left, method)
        if result is None:
            result = leads
        else:
            result[left] = np.maximum(result[left], leads)
    assert result is not None
    return result


def graph_rounding_errors(
    network: TracedNetwork, extracted: Extracted, format: str, *, assumptions: Assumptions | None = None,
    region: Region | None = None,
) -> RoundingErrors:  # fmt: skip
    """Error bounds of a traced model for every window and read-out of an extraction: see `FORMAT.md`.

    An error is half of what the smallest lead may lose: margin - 2 error is no larger than any lead that a machine of
    the format computes.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    opaque = network.graph.opaque()
    if opaque is not None:
        raise InvalidInput(f"the rounding of {opaque.name} is not bounded; there is no rounding proof for this model.")
    assumptions = assumptions or ASSUMED[format]
    leads = LeadBounds(network, assumptions.arithmetic(format), region or network.region, network.dropped)
    columns: list[Floats] = []
    unit = FORMATS[format].unit
    for number, layer in enumerate(extracted.layers):
        if number == len(network.blocks):  # a delay: nothing is computed
            columns.append(_errors(layer.margins, layer.margins, unit))
            continue
        best, windows, used = layer.tables, layer.windows, layer.used

        def bounded(left: Bools, method: str, number: int = number, best: Ints = best, windows: Ints = windows,
                    used: Bools = used) -> Floats:  # fmt: skip
            found = leads.layer(number, windows[left], best[left], method)
            return np.where(used[left], found, np.inf)

        columns.append(_errors(layer.margins, sharpened(bounded, len(best)), unit))

    def bounded_labels(left: Bools, method: str) -> Floats:
        return leads.labels(extracted.readout_inputs[left], extracted.label_ids[left], method)

    labels = _errors(extracted.label_margins, sharpened(bounded_labels, len(extracted.label_ids)), unit)
    return RoundingErrors(
        format=format, columns=tuple(columns), labels=labels, answers=None,
        assumes=(*assumptions.sentences(format), *network.assumes(assumptions, format)), regions=extracted.regions,
    )  # fmt: skip


def _errors(margins: Floats, leads: Floats, unit: float) -> Floats:
    """Half of what the margin may lose, rounded up, and at least a rounding; infinite where nothing is known."""
    with np.errstate(invalid="ignore"):
        known = np.where(np.isinf(margins), 0.0, margins)
        lost = np.where(np.isinf(margins), 0.0, np.maximum(margins - leads, 0.0))
    return np.nextafter(above(np.maximum(0.5 * lost, unit * known)), np.inf)

"""Rounding errors of a model's logits, bounded for every machine that satisfies stated assumptions.

    R  rows: windows of a layer, or read-outs     S  indices of all heads of a layer

The model is a graph (see `graph/README.md`): a `Backbone` lowered by hand, any other module as it was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput, unknown
from exactstate.extract.extract import digest_graph
from exactstate.extract.graph.arithmetic import ASSUMED, Assumptions
from exactstate.extract.graph.backbone import LoweredBackbone
from exactstate.extract.graph.leads import METHODS, LeadBounds
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.graph.nodes import tensors_below
from exactstate.extract.graph.trace import unwrapped
from exactstate.extract.graph.upper import above, length
from exactstate.extract.network import as_built
from exactstate.extract.result import Extracted, RoundingErrors
from exactstate.extract.verify import verify_format
from exactstate.nn import Backbone
from exactstate.number_formats import FORMATS

MANY = 2048
"""Read-outs, of which the leads are bounded quickly first."""
QUICK_ROWS = 1024


def rounding_errors(
    model: nn.Module, extracted: Extracted, format: str, *, assumptions: Assumptions | None = None, quick: bool = True,
    verify: bool = True,
) -> RoundingErrors:  # fmt: skip
    """Error bounds, in a format of `FORMATS`, for the logits of every window and read-out of an extraction.

    An error is half of what the smallest lead may lose: margin - 2 error is no larger than any lead that a machine of
    the format computes. `float32` means that everything is computed in float32; `bfloat16` and `float16` mean
    `model.to(dtype)`: see `graph/README.md`.

    Where there are thousands of read-outs, a quick bound comes first, and a sharp one only where that does not
    decide; with `quick=False` all are sharp. Where everything is proved, the model is run in the format, as `extract`
    runs it, unless `verify` is False.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    errors = _bounded(_network(unwrapped(model), extracted), extracted, format, assumptions, quick=quick)
    if verify and errors.decide(extracted):
        verify_format(model, extracted, format)
    return errors


def _network(model: nn.Module, extracted: Extracted) -> TracedNetwork | LoweredBackbone:
    """The graph of a model, at the inputs and windows of an extraction."""
    if isinstance(model, Backbone) and as_built(model):
        return LoweredBackbone(model, extracted)
    network = extracted.source
    if not isinstance(network, TracedNetwork):
        raise InvalidInput("rounding is bounded for models that were traced; this machine comes from an adapter.")
    if digest_graph(model, network.traced) != extracted.weights:
        raise InvalidInput("this machine was extracted from other weights; extract the model again.")
    return network


def _bounded(
    network: TracedNetwork | LoweredBackbone, extracted: Extracted, format: str, assumptions: Assumptions | None, *,
    quick: bool,
) -> RoundingErrors:  # fmt: skip
    opaque = network.graph.opaque()
    if opaque is not None:
        raise InvalidInput(f"the rounding of {opaque.name} is not bounded; there is no rounding proof for this model.")
    assumptions = assumptions or ASSUMED[format]
    leads = LeadBounds(network, assumptions.arithmetic(format), network.region, network.dropped)
    columns: list[Floats] = []
    unit = FORMATS[format].unit
    for number, layer in enumerate(extracted.layers):
        if number == len(network.blocks):  # a delay: nothing is computed
            columns.append(_errors(layer.margins, layer.margins, unit))
            continue
        best, windows, used = layer.tables, layer.windows, layer.used

        def of_columns(left: Bools, method: str, number: int = number, best: Ints = best, windows: Ints = windows,
                       used: Bools = used) -> Floats:  # fmt: skip
            found = leads.layer(number, windows[left], best[left], method)
            return np.where(used[left], found, np.inf)

        errors = _errors(layer.margins, sharpened(of_columns, len(best), network.methods), unit)
        columns.append(np.where(used, errors, np.inf))

    best, margins = extracted.label_ids, extracted.label_margins
    if extracted.answer_ids is not None and extracted.answer_margins is not None:
        best, margins = np.stack([best, extracted.answer_ids], 1), np.stack([margins, extracted.answer_margins], 1)

    def of_labels(left: Bools, method: str) -> Floats:
        return leads.labels(extracted.readout_inputs[left], best[left], method)

    known = quick_leads(leads, extracted) if quick and quick_applies(network, extracted, format) else None
    read = _errors(margins, sharpened(of_labels, len(best), network.methods, known), unit)
    return RoundingErrors(
        format=format, columns=tuple(columns), labels=read if read.ndim == 1 else read[:, 0],
        answers=None if read.ndim == 1 else read[:, 1],
        assumes=(*assumptions.sentences(format), *network.assumes(assumptions, format)), regions=extracted.regions,
    )  # fmt: skip


def sharpened(
    bounded: Callable[[Bools, str], Floats], count: int, methods: Sequence[str] = METHODS, known: Floats | None = None
) -> Floats:  # fmt: skip
    """R or R S: the leads that are known, and where these do not decide a row, those of one method after the other."""
    result, left = known, np.ones(count, bool)
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


def quick_applies(network: TracedNetwork | LoweredBackbone, extracted: Extracted, format: str) -> bool:
    """Whether a backbone has very many read-outs, and the format stores its parameters as they are."""
    if len(extracted.readout_inputs) <= MANY or extracted.format != "float64" or network.graph.answers is not None:
        return False
    kind = getattr(torch, format)
    tensors = [tensor for root in (*network.streams, *network.graph.roots) for tensor in tensors_below(root)]
    tensors += [tensor for block in network.blocks for tensor in block.parameters()]
    exact = all(torch.equal(tensor.to(kind).to(torch.float64), tensor.to(torch.float64)) for tensor in tensors)
    return exact and isinstance(network, LoweredBackbone)


def quick_leads(leads: LeadBounds, extracted: Extracted) -> Floats:
    """R: leads of the labels, without computing a logit or the norm of a Jacobian.

    The machine of the extraction satisfies the assumptions about float64: a lead is no further below the margin than
    the largest errors of the logits of both.
    """
    network, wide = leads.network, replace(leads, arithmetic=ASSUMED["float64"].arithmetic("float64"))
    both = [(one, one.choices(len(network.blocks))) for one in (leads, wide)]
    steps, result = network.read_steps(extracted.readout_inputs), extracted.label_margins.copy()
    longest = float(length(both[0][1].weight).max())
    for begin in range(0, len(result), QUICK_ROWS):
        rows = np.arange(begin, min(begin + QUICK_ROWS, len(result)))
        bounded = [(one.bounds(steps.rows(rows), one.streams, quick=True), choices) for one, choices in both]
        apart, other = (bounds.at(choices.root).mid for bounds, choices in bounded)
        off = longest * length(apart - other) + sum(choices.widest_error(bounds) for bounds, choices in bounded)
        result[rows] = result[rows] - above(2.0 * off + 2.0**-50 * result[rows])
    return result


def _errors(margins: Floats, leads: Floats, unit: float) -> Floats:
    """Half of what the margin may lose, rounded up, and at least a rounding; infinite where nothing is known."""
    with np.errstate(invalid="ignore"):
        known = np.where(np.isinf(margins), 0.0, margins)
        lost = np.where(np.isinf(margins), 0.0, np.maximum(margins - leads, 0.0))
    return np.nextafter(above(np.maximum(0.5 * lost, unit * known)), np.inf)

"""Bounds for the labels of very many read-outs: cruder than those of `tracing`, at a hundredth of the work.

    R  read-outs     m  width     n  labels

Three things are saved, for a format that stores the parameters as they are. No Jacobian is formed: its Frobenius norm
is bounded instead of its spectral norm. No logit is computed: the largest error over all labels follows from the norms
of the rows of the read-out. The real network is not computed: it is a machine that satisfies the assumptions about
float64, as is the one that evaluated the margins, so that one bound for float64 covers both.
"""

from __future__ import annotations

import numpy as np
import torch

from exactstate._types import Floats, Ints
from exactstate.extract.result import Extracted
from exactstate.extract.rounding.arithmetic import ASSUMED
from exactstate.extract.rounding.balls import Ball, above, length
from exactstate.extract.rounding.network import AT_ONCE, BoundedNetwork, map_batches, unbounded_is_infinite
from exactstate.extract.rounding.tracing import Traced
from exactstate.nn import Backbone

MANY = 2048
"""Read-outs; for fewer, sharp bounds take no more than a few seconds."""
ROWS = 1024
"""Read-outs in a batch."""


def quick_bounds_apply(model: Backbone, extracted: Extracted, format: str) -> bool:
    """Whether there are many read-outs of one layer, without answers, and the format stores the parameters exactly."""
    if len(extracted.readout_inputs) <= MANY or extracted.format != "float64":
        return False
    if len(model.layers) != 1 or model.answer_head is not None:
        return False
    kind = getattr(torch, format)
    return all(torch.equal(kept.to(kind).to(torch.float64), kept.to(torch.float64)) for kept in model.parameters())


def quick_label_errors(model: Backbone, traced: Traced, inputs: Ints) -> Floats:
    """R: no logit of a label, as computed in the format, is further from the real one, nor from that in float64."""
    tokens = np.arange(len(traced.computed.streams[0]))
    arithmetic = ASSUMED["float64"].arithmetic("float64")
    wide = BoundedNetwork(model, arithmetic, tokens)

    @unbounded_is_infinite
    def bound(some: Ints) -> Floats:
        x, z = wide.decoded(some, "frobenius"), traced.computed.decoded(some, "frobenius")
        apart = Ball(x.mid, above(x.rad + length(z.mid - x.mid)))
        computed = traced.computed.stages
        return above(
            wide.stages.readout.widest_error(apart, arithmetic) + computed.readout.widest_error(z, computed.arithmetic)
        )

    return np.concatenate(map_batches(bound, inputs, AT_ONCE // ROWS))

"""How much of its lead over the others rounding may take from the best output of a map.

    R  rows     n  inputs     e  outputs

A ball moves all outputs together: W x in two entries is apart by (w - v) x, and |w - v| is less than |w| + |v|, often
much less where the lead is small. So a lead can be known where its two ends, each with an error of its own, are not.
"""

from __future__ import annotations

import numpy as np

from detent.automata.running import Ints
from detent.extraction.rounding.affine import Affine
from detent.extraction.rounding.balls import Ball, Floats, above, below, product
from detent.extraction.rounding.formats import EXACT, Arithmetic


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

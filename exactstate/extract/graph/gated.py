"""A sharper ball behind a gated MLP: the norm of its Jacobian, row by row, instead of the norms of its factors.

    R  rows     m  width     h  hidden width

The MLP is D (f(G x + c) * (U x + b)) + a, with f a function of one number. Write g = G x + c and u = U x + b at a
midpoint, and e for how far x is from it. Where g and u are computed as g + G e + p and u + U e + q, their product is
off by

    f U e + f' u G e   and   f q + f' u p   and at most   M |u| (G e + p)^2 / 2 + |f - f(g + G e + p)| |U e + q|

with M no smaller than |f''|. The first two terms are linear in e: followed by D they are J e. The product of the norms
of its factors would be several times the norm of J.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactstate._types import Floats
from exactstate.extract.graph.arithmetic import OURS
from exactstate.extract.graph.functions import FUNCTIONS
from exactstate.extract.graph.nodes import Conv, Function, Multiply, Node
from exactstate.extract.graph.upper import LEAST, OPERATIONS, above, length, narrow, product, spectral

if TYPE_CHECKING:
    from exactstate.extract.graph.intervals import IntervalBounds

SQUARINGS = 2
"""Of a Jacobian in float32: a norm needs few digits, and its error is added."""


class Parts(NamedTuple):
    """The nodes of a gated MLP."""

    gate: Conv
    opened: Function
    up: Conv
    product: Multiply
    down: Conv


def parts_of(down: Node) -> Parts | None:
    """The gated MLP that ends in a node, if one does."""
    if not _linear(down) or not isinstance(down.args[0], Multiply):
        return None
    inside = down.args[0]
    for opened, up in (inside.args, inside.args[::-1]):
        if isinstance(opened, Function) and FUNCTIONS[opened.function].curvature and _linear(up):
            gate = opened.args[0]
            if _linear(gate) and gate.args == up.args:
                return Parts(gate, opened, up, inside, down)  # type: ignore[arg-type]
    return None


def _linear(node: Node) -> bool:
    return isinstance(node, Conv) and node.groups == 1 and [lag for lag, _ in node.taps] == [0]


def ball_behind(bounds: IntervalBounds, parts: Parts, lag: int) -> Floats | None:
    """R: no output of the MLP is further from its midpoint; None where nothing is gained."""
    read, function = bounds.parameters, FUNCTIONS[parts.opened.function]
    maps = [node.taps[0][1] for node in (parts.gate, parts.up, parts.down)]
    x, gate, opened, up, inside, y = (
        bounds.at(node, lag)
        for node in (parts.gate.args[0], parts.gate, parts.opened, parts.up, parts.product, parts.down)
    )
    if not x.ball.any() or any(read.radius(weight) is not None for weight in maps):
        return None
    f, u = np.abs(opened.mid), np.abs(up.mid)
    slope = function.slope(gate.mid)
    # our own value and slope are not the real ones
    ours = OURS.several(64.0) * function.steepest
    steep = above(np.abs(slope) + ours)
    rest = f * up.error + steep * u * gate.error + opened.error * (u + up.rad) + inside.error
    rest = rest + ours * (f * up.rad + u * gate.rad) + OURS.several(64.0) * f * up.rad
    bent = 0.5 * function.curvature * gate.rad * u
    curved = np.minimum(bent.max(-1) * gate.ball, length(bent * gate.rad))
    curved = curved + np.minimum(opened.rad.max(-1) * up.ball, length(opened.rad * up.rad))
    G, U, D = (read.norms(weight) for weight in maps)
    gain = D[1] * (f.max(-1) * U[1] + (steep * u).max(-1) * G[1])
    norm = _frobenius if bounds.quick else _spectral
    gain = np.minimum(gain, norm(bounds, parts, opened.mid, slope * up.mid, steep * u))
    return above(gain * x.ball + D[1] * above(length(above(rest)) + curved) + length(y.error))


def _frobenius(bounds: IntervalBounds, parts: Parts, f: Floats, bent: Floats, size: Floats) -> Floats:
    """R: no smaller than the Frobenius norm of J = D (f U + f' u G), a quadratic form in f and f' u."""
    gate, up, down = (bounds.parameters.array(node.taps[0][1]) for node in (parts.gate, parts.up, parts.down))

    def squares() -> tuple[Floats, ...]:
        crossed = product(np.ascontiguousarray(down.T), down)
        ways = [(up, up), (up, gate), (gate, gate)]
        return tuple(crossed * product(one, np.ascontiguousarray(other.T)) for one, other in ways)

    of_up, both, of_gate = bounds.parameters.kept(parts.down, squares)
    found = np.einsum("ri,ri->r", product(f, of_up) + 2.0 * product(bent, np.ascontiguousarray(both.T)), f)
    found += np.einsum("ri,ri->r", product(bent, of_gate), bent)
    columns = length(np.ascontiguousarray(down.T))
    terms = np.abs(f) @ (columns * length(up)) + size @ (columns * length(gate))
    lost = 4.0 * (gate.shape[0] + gate.shape[1] + OPERATIONS) * 2.0**-52 * np.square(above(terms, len(gate))) + LEAST
    return above(np.sqrt(np.maximum(found, 0.0) + lost))


def _spectral(bounds: IntervalBounds, parts: Parts, f: Floats, bent: Floats, size: Floats) -> Floats:
    """R: no smaller than the norm of J = D (f U + f' u G), which is formed in float32."""
    gate, up, down = (bounds.parameters.array(node.taps[0][1]) for node in (parts.gate, parts.up, parts.down))
    (h, m), kind, most = gate.shape, narrow(), max(1, bounds.AT_ONCE // (gate.size))
    found = []
    for begin in range(0, len(f), most):
        some = slice(begin, begin + most)
        change = f[some].T.astype(kind)[:, :, None] * up.astype(kind)[:, None, :]
        change += bent[some].T.astype(kind)[:, :, None] * gate.astype(kind)[:, None, :]
        jacobian = product(down.astype(kind), change.reshape(h, -1)).reshape(len(down), -1, m)
        found.append(spectral(jacobian.swapaxes(0, 1), SQUARINGS))
    frobenius = [float(length(part.reshape(-1))) for part in (gate, up, down)]
    sizes = length(f * length(up)) + length(size * length(gate))
    lost = (h + 8) * float(np.finfo(kind).eps) * frobenius[2] * sizes
    under = 1.0 + frobenius[0] + frobenius[1] + sizes
    lost = lost + 2.0**-100 * h * m * (1.0 + frobenius[2]) * under
    return above(np.concatenate(found) + lost)

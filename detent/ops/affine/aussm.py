"""One block of the AUSSM: h_t[i, j] = e^(i phi_t[i, j]) h_{t-1}[i, j] + Delta_t[i] B[j] u_t[i], every entry a phase.

    d  channels     n  entries of a channel's state     K, C, R  see `lanes`

Read as Re sum_j C[j] h_t[i, j]. Streams: Delta (d), u (d), and where episodes begin, if anywhere (1). Shared: the map
from u to the phases (d n, d), B (n, 2) and C (n, 2) as (Re, Im). The matrix is diagonal and its entries have modulus
one; where an episode begins it is zero. States are R d n 2 outside, and inside numbers d n C R, as `plane` has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from detent.ops.affine.complex import Plane, plane_of
from detent.ops.affine.scan import sweep, sweep_back
from detent.ops.affine.workspace import Room, lanes, rows

OVER_STEPS = (-5, -4, -2, -1)
"""K, d, C and R of numbers K d n C R."""


def rotations(phases: Tensor, cosine: Tensor | None = None, sine: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(cos, sin), rounded as in every step taken."""
    return torch.cos(phases, out=cosine), torch.sin(phases, out=sine)


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1] * start.shape[2], start.shape[1]


def forward(streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, room: Room) -> tuple[Tensor, Tensor]:
    plane = plane_of(start)
    delta, u, *reset = map(lanes, streams)
    _, h, last = _states(plane, delta, u, reset, shared, start, room)
    y, _ = plane.parts(plane.times(h, plane.beside(shared[2]), h).sum(-3))
    return rows(y, streams[0].shape[1]), plane.outside(last)


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, gain: Tensor, last: Tensor, room: Room
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    plane = plane_of(start)
    delta, u, *reset = map(lanes, streams)
    phase_map, B, C = shared
    g, drive = lanes(gain)[:, :, None], (delta * u)[:, :, None]
    a, h, _ = _states(plane, delta, u, reset, shared, start, room)
    K, d, chunks, R = u.shape
    shape = K, d, len(B), chunks, R
    worth, product = plane.array(room, "worth", shape), plane.array(room, "product", shape)

    torch.mul(g, plane.conjugate_(plane.beside(C)), out=worth)
    steps, gains = [(part,) for part in plane.steps(plane.conjugate_(a))], plane.steps(worth)
    sweep_back(plane.rules, steps, gains, plane.inside(last), (plane.one(a),), gains)

    of_C = plane.pairs(plane.conjugate_(torch.mul(h, g, out=product).sum(OVER_STEPS)))
    of_B = plane.pairs(torch.mul(worth, drive, out=product).sum(OVER_STEPS))
    of_drive, _ = plane.parts(plane.times(worth, plane.conjugate_(plane.beside(B)), product).sum(-3))

    # d(a h)/d(phase) = i a h, so the phase gains Im(conj(a h) lambda)
    pulled = plane.times(a, worth, a)  # of the state before every step: conj(a) lambda
    of_start = plane.steps(pulled)[0][..., 0, :].clone()
    before = plane.conjugate_(plane.before(h, plane.inside(start), product))
    of_phase = room("phase", *shape).copy_(plane.parts(plane.times(before, pulled, before))[1])

    flat, inputs = of_phase.view(K, -1, chunks * R), u.view(K, d, chunks * R)
    of_map = torch.zeros_like(phase_map)
    for k in range(K):
        of_map.addmm_(flat[k], inputs[k].T)
    of_u = of_drive * delta + torch.bmm(phase_map.T.expand(K, -1, -1), flat).view(u.shape)

    grown = [of_drive * u, of_u, *(torch.zeros_like(part) for part in reset)]
    T = gain.shape[1]
    return [rows(part, T) for part in grown], [of_map, of_B, of_C], plane.outside(of_start)


def _states(
    plane: Plane, delta: Tensor, u: Tensor, reset: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, room: Room
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(eigenvalues, every state, the last)."""
    phase_map, B, _ = shared
    K, d, C, R = u.shape
    shape = K, d, len(B), C, R
    a, h, phase = plane.array(room, "a", shape), plane.array(room, "h", shape), room("phase", *shape)
    torch.bmm(phase_map.expand(K, -1, -1), u.view(K, d, C * R), out=phase.view(K, -1, C * R))
    rotations(phase, *plane.parts(a))
    if reset:
        a.mul_(1 - reset[0][:, :, None])
    torch.mul((delta * u)[:, :, None], plane.beside(B), out=h)
    steps, drives = plane.steps(a), plane.steps(h)
    last = sweep(plane.rules, [(part,) for part in steps], drives, plane.inside(start), drives)
    return a, h, last

"""One block of the AUSSM: h_t[i, j] = e^(i phi_t[i, j]) h_{t-1}[i, j] + Delta_t[i] B[j] u_t[i], every entry a phase.

    d  channels     n  entries of a channel's state     K, C, R  see `chunked_scan.to_lanes`

Read as Re sum_j C[j] h_t[i, j]. Streams: Delta (d), u (d), and where episodes begin, if anywhere (1). Shared: the map
from u to the phases (d n, d), B (n, 2) and C (n, 2) as (Re, Im). The matrix is diagonal and its entries have modulus
one; where an episode begins it is zero. States are R d n 2 outside, and inside d n C R numbers in the layout of
`complex_layout`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.ops.affine.chunked_scan import chunked_adjoint, chunked_scan, from_lanes, to_lanes
from exactstate.ops.affine.complex_layout import ComplexLayout, complex_layout
from exactstate.ops.affine.workspace import Workspace

OVER_STEPS = (-5, -4, -2, -1)
"""K, d, C and R of numbers K d n C R."""


def rotations(phases: Tensor, cosine: Tensor | None = None, sine: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(cos, sin), rounded as in every step taken."""
    return torch.cos(phases, out=cosine), torch.sin(phases, out=sine)


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1] * start.shape[2], start.shape[1]


def forward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    layout = complex_layout(start)
    delta, u, *reset = map(to_lanes, streams)
    _, h, last = _states(layout, delta, u, reset, shared, start, workspace)
    y, _ = layout.parts(layout.times(h, layout.beside(shared[2]), h).sum(-3))
    return from_lanes(y, streams[0].shape[1]), layout.outside(last)


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
    workspace: Workspace,
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    layout = complex_layout(start)
    delta, u, *reset = map(to_lanes, streams)
    phase_map, B, C = shared
    g, drive = to_lanes(output_grad)[:, :, None], (delta * u)[:, :, None]
    a, h, _ = _states(layout, delta, u, reset, shared, start, workspace)
    K, d, chunks, R = u.shape
    shape = K, d, len(B), chunks, R
    lam, product = layout.array(workspace, "lam", shape), layout.array(workspace, "product", shape)

    torch.mul(g, layout.conjugate_(layout.beside(C)), out=lam)
    steps, gains = [(part,) for part in layout.steps(layout.conjugate_(a))], layout.steps(lam)
    chunked_adjoint(layout.rules, steps, gains, layout.inside(last), (layout.one(a),), gains)

    grad_C = layout.pairs(layout.conjugate_(torch.mul(h, g, out=product).sum(OVER_STEPS)))
    grad_B = layout.pairs(torch.mul(lam, drive, out=product).sum(OVER_STEPS))
    grad_drive, _ = layout.parts(layout.times(lam, layout.conjugate_(layout.beside(B)), product).sum(-3))

    # d(a h)/d(phase) = i a h, so the phase gains Im(conj(a h) lambda)
    pulled = layout.times(a, lam, a)  # of the state before every step: conj(a) lambda
    grad_start = layout.steps(pulled)[0][..., 0, :].clone()
    before = layout.conjugate_(layout.before(h, layout.inside(start), product))
    grad_phase = workspace("phase", *shape).copy_(layout.parts(layout.times(before, pulled, before))[1])

    flat, inputs = grad_phase.view(K, -1, chunks * R), u.view(K, d, chunks * R)
    grad_map = torch.zeros_like(phase_map)
    for k in range(K):
        grad_map.addmm_(flat[k], inputs[k].T)
    grad_u = grad_drive * delta + torch.bmm(phase_map.T.expand(K, -1, -1), flat).view(u.shape)

    grown = [grad_drive * u, grad_u, *(torch.zeros_like(part) for part in reset)]
    T = output_grad.shape[1]
    return [from_lanes(part, T) for part in grown], [grad_map, grad_B, grad_C], layout.outside(grad_start)


def _states(
    layout: ComplexLayout, delta: Tensor, u: Tensor, reset: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor,
    workspace: Workspace,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(eigenvalues, every state, the last)."""
    phase_map, B, _ = shared
    K, d, C, R = u.shape
    shape = K, d, len(B), C, R
    a, h, phase = layout.array(workspace, "a", shape), layout.array(workspace, "h", shape), workspace("phase", *shape)
    torch.bmm(phase_map.expand(K, -1, -1), u.view(K, d, C * R), out=phase.view(K, -1, C * R))
    rotations(phase, *layout.parts(a))
    if reset:
        a.mul_(1 - reset[0][:, :, None])
    torch.mul((delta * u)[:, :, None], layout.beside(B), out=h)
    steps, drives = layout.steps(a), layout.steps(h)
    last = chunked_scan(layout.rules, [(part,) for part in steps], drives, layout.inside(start), drives)
    return a, h, last

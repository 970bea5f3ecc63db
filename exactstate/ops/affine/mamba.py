"""One block of Mamba-: h_t[i, j] = a_t[i, j] h_{t-1}[i, j] + Delta_t[i] B_t[j] u_t[i], read as sum_j C_t[j] h_t[i, j].

    d  channels     n  entries of a channel's state     K, C, R  see `chunked_scan.to_lanes`

Streams: Delta (d), u (d), B (n), C (n), and where episodes begin, if anywhere (1). Shared: the rates e^alpha (d, n).
The matrix is diagonal with entries a = 2 exp(-Delta e^alpha) - 1; where an episode begins it is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.ops.affine.chunked_scan import Diagonal, chunked_adjoint, chunked_scan, from_lanes, shift, to_lanes
from exactstate.ops.affine.workspace import Workspace


def eigenvalues(delta: Tensor, rate: Tensor, out: Tensor | None = None) -> Tensor:
    """2 exp(-delta rate) - 1, rounded as in every step taken."""
    a = torch.mul(delta, -rate, out=out)
    torch.exp(a, out=a)
    return torch.add(a.new_tensor(-1.0), a, alpha=2, out=a)


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1] * start.shape[2], start.shape[1]


def forward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    delta, u, B, C, *reset = map(to_lanes, streams)
    _, h, last = _states(delta, u, B, reset, shared[0], start, workspace)
    y = torch.mul(h, C[:, None], out=h).sum(2)
    return from_lanes(y, streams[0].shape[1]), last.movedim(-1, 0)


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
    workspace: Workspace,
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    delta, u, B, C, *reset = map(to_lanes, streams)
    rate, g, drive = shared[0], to_lanes(output_grad), delta * u
    a, h, _ = _states(delta, u, B, reset, rate, start, workspace)
    lam, product = workspace("lam", *h.shape), workspace("product", *h.shape)

    torch.mul(g[:, :, None], C[:, None], out=lam)
    steps, gains = [(part,) for part in a.unbind()], lam.unbind()
    chunked_adjoint(Diagonal(), steps, gains, last.movedim(0, -1), (a.new_ones(()),), gains)
    grad_start = a[0, :, :, 0] * lam[0, :, :, 0]
    grad_C = torch.mul(h, g[:, :, None], out=product).sum(1)
    grad_B = torch.mul(lam, drive[:, :, None], out=product).sum(1)
    grad_drive = torch.mul(lam, B[:, None], out=product).sum(2)

    # da / d(delta rate) = -(a + 1), and nothing where an episode begins
    a.add_(1 - reset[0][:, :, None] if reset else 1)
    x = shift(h, start.movedim(0, -1), product).mul_(lam).mul_(a)
    grad_rate = torch.mul(x, delta[:, :, None], out=a).sum((0, 3, 4)).neg_()
    grad_delta = grad_drive * u - torch.mul(x, rate[..., None, None], out=a).sum(2)

    grown = [grad_delta, grad_drive * delta, grad_B, grad_C, *(torch.zeros_like(part) for part in reset)]
    T = output_grad.shape[1]
    return [from_lanes(part, T) for part in grown], [grad_rate], grad_start.movedim(-1, 0)


def _states(
    delta: Tensor, u: Tensor, B: Tensor, reset: Sequence[Tensor], rate: Tensor, start: Tensor,
    workspace: Workspace,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(eigenvalues, every state, the last)."""
    K, d, C, R = u.shape
    shape = K, d, B.shape[1], C, R
    a, h = workspace("a", *shape), workspace("h", *shape)
    eigenvalues(delta[:, :, None], rate[..., None, None], a)
    if reset:
        a.mul_(1 - reset[0][:, :, None])
    torch.mul((delta * u)[:, :, None], B[:, None], out=h)
    last = chunked_scan(Diagonal(), [(part,) for part in a.unbind()], h.unbind(), start.movedim(0, -1), h.unbind())
    return a, h, last

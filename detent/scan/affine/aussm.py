"""One block of the AUSSM: h_t[i, j] = e^(i phi_t[i, j]) h_{t-1}[i, j] + Delta_t[i] B[j] u_t[i], every entry a phase.

    d  channels     n  entries of a channel's state     K, C, R  see `lanes`

Read as Re sum_j C[j] h_t[i, j]. Streams: Delta (d), u (d), and where episodes begin, if anywhere (1). Shared: the map
from u to the phases (d n, d), B (n, 2) and C (n, 2) as (Re, Im). The matrix is diagonal and its entries have modulus
one; where an episode begins it is zero. Complex numbers are pairs of reals throughout, states R d n 2 outside and
2 d n C R inside.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from detent.scan.affine.lanes import lanes, rows, shift
from detent.scan.affine.room import Room
from detent.scan.affine.steps import Diagonal, times, unit
from detent.scan.affine.sweep import sweep, sweep_back

RULES = Diagonal(pairs=True)


def rotations(phases: Tensor, cosine: Tensor | None = None, sine: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(cos, sin), rounded as in every step taken."""
    return torch.cos(phases, out=cosine), torch.sin(phases, out=sine)


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1] * start.shape[2], start.shape[1]


def forward(streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, room: Room) -> tuple[Tensor, Tensor]:
    delta, u, *reset = map(lanes, streams)
    _, h, last = _states(delta, u, reset, shared, start, room)
    y = _over_states(torch.mul(h, _read(shared[2]), out=h))
    return rows(y, streams[0].shape[1]), _outside(last)


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, gain: Tensor, last: Tensor, room: Room
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    delta, u, *reset = map(lanes, streams)
    phase_map, B, _ = shared
    g, drive = lanes(gain)[:, None, :, None], (delta * u)[:, None, :, None]
    a, h, _ = _states(delta, u, reset, shared, start, room)
    worth, product = room("worth", *h.shape), room("product", *h.shape)

    torch.mul(g, _read(shared[2]), out=worth)
    a[:, 1].neg_()
    steps, gains = [(part,) for part in a.unbind()], worth.unbind()
    sweep_back(RULES, steps, gains, _inside(last), (unit(4, a, pairs=True),), gains)
    of_start = times(a[0, ..., 0, :], worth[0, ..., 0, :], pairs=True)
    a[:, 1].neg_()

    of_read = torch.mul(h, g, out=product).sum((0, 2, 4, 5))
    of_C = torch.stack([of_read[0], -of_read[1]], dim=-1)
    of_B = torch.mul(worth, drive, out=product).sum((0, 2, 4, 5)).T
    of_drive = _over_states(torch.mul(worth, _spread(B), out=product))

    # d(a h)/d(phase) = i a h, so the phase gains Im(conj(a h) lambda)
    before = shift(h, _inside(start), product)
    of_phase = room("phase", *h.shape[:1], *h.shape[2:])
    turned = h  # the states are not needed any more
    torch.mul(a[:, :1], before, out=turned)
    turned[:, 0].addcmul_(a[:, 1], before[:, 1], value=-1)
    turned[:, 1].addcmul_(a[:, 1], before[:, 0])
    torch.mul(turned[:, 0], worth[:, 1], out=of_phase)
    of_phase.addcmul_(turned[:, 1], worth[:, 0], value=-1)

    K, d, C, R = u.shape
    flat, inputs = of_phase.view(K, -1, C * R), u.view(K, d, C * R)
    of_map = torch.zeros_like(phase_map)
    for k in range(K):
        of_map.addmm_(flat[k], inputs[k].T)
    of_u = of_drive * delta + torch.bmm(phase_map.T.expand(K, -1, -1), flat).view(K, d, C, R)

    grown = [of_drive * u, of_u, *(torch.zeros_like(part) for part in reset)]
    T = gain.shape[1]
    return [rows(part, T) for part in grown], [of_map, of_B, of_C], _outside(of_start)


def _states(
    delta: Tensor, u: Tensor, reset: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, room: Room
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(eigenvalues, every state, the last)."""
    phase_map, B, _ = shared
    K, d, C, R = u.shape
    n = len(B)
    a, h, phase = room("a", K, 2, d, n, C, R), room("h", K, 2, d, n, C, R), room("phase", K, d * n, C * R)
    torch.bmm(phase_map.expand(K, -1, -1), u.view(K, d, C * R), out=phase)
    rotations(phase.view(K, d, n, C, R), a[:, 0], a[:, 1])
    if reset:
        a.mul_(1 - reset[0][:, :, None, None])
    torch.mul((delta * u)[:, None, :, None], _spread(B), out=h)
    last = sweep(RULES, [(part,) for part in a.unbind()], h.unbind(), _inside(start), h.unbind())
    return a, h, last


def _over_states(x: Tensor) -> Tensor:
    """K 2 d n C R -> K d C R, in two sums: one over both dimensions is ten times slower."""
    return x.sum(3).sum(1)


def _spread(pairs: Tensor) -> Tensor:
    """n 2 -> 2 1 n 1 1: beside states."""
    return pairs.T[:, None, :, None, None]


def _read(C: Tensor) -> Tensor:
    """Re(C h) = Re C Re h - Im C Im h: the factors of the two parts."""
    return _spread(torch.stack([C[:, 0], -C[:, 1]], dim=-1))


def _inside(state: Tensor) -> Tensor:
    """R d n 2 -> 2 d n R."""
    return state.permute(3, 1, 2, 0)


def _outside(state: Tensor) -> Tensor:
    """2 d n R -> R d n 2."""
    return state.permute(3, 1, 2, 0)

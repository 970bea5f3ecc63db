"""Column one-hot matrices chosen from a mixture of a dictionary, forward hard and backward as a softmax.

    N  rows and columns     n  matrices of the dictionary     W  mixtures taken at a time

M = sum_k pi[k] M_k, and column k of P is one at the arg max of column k of M, the lowest row on a tie. The gradient
is the straight-through one: P is differentiated as if it were the softmax of the columns of M. No N x N array per
step outlives the W steps it serves. The dictionary is laid out as N N n: [column, row, matrix].
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.scan.affine.room import Room

CACHED, PARALLEL = 1 << 18, 1 << 26
"""Entries of the matrices that exist at a time, on a CPU and on other devices."""


def tables(mixtures: Tensor, dictionary: Tensor, room: Room) -> Tensor:
    """S n -> S N: the row of the one in every column."""
    N = len(dictionary)
    rank = torch.arange(N, 0, -1, dtype=mixtures.dtype, device=mixtures.device)[:, None]
    made = torch.empty(len(mixtures), N, dtype=torch.int64, device=mixtures.device)
    for here in _pieces(mixtures, N):
        scores = _scores(mixtures[here], dictionary, room)
        # arg max along a middle dimension in four vectorised passes: the best entries are marked by their rank
        best = scores.amax(1, keepdim=True)
        if not bool(torch.isfinite(best).all()):
            raise InvalidInput("the dictionary's mixtures hold NaN or infinity: lower the learning rate or clip.")
        marks = scores.sub_(best).sign_().add_(1).mul_(rank)
        made[here] = (N - marks.amax(1)).long().T
    return made


def pull_back(
    mixtures: Tensor, dictionary: Tensor, moved: tuple[Tensor, Tensor], worth: tuple[Tensor, Tensor], room: Room
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the mixtures and the dictionary, where that of P[j, k] is Re(conj(worth[j]) moved[k]).

    `moved` is D h and `worth` the gradient of P D h, each as (Re, Im), S N.
    """
    N = len(dictionary)
    flat = dictionary.flatten(0, 1)
    of_mixtures, of_dictionary = torch.empty_like(mixtures), torch.zeros_like(flat)
    for here in _pieces(mixtures, N):
        p = _scores(mixtures[here], dictionary, room)
        p.sub_(p.amax(1, keepdim=True)).exp_()
        p.div_(p.sum(1, keepdim=True))
        re, im = (part[here].T[:, None] for part in moved)
        worth_re, worth_im = (part[here].T[None] for part in worth)
        g, weighed = room("gradient", *p.shape), room("weighed", *p.shape)
        torch.mul(re, worth_re, out=g).addcmul_(im, worth_im)
        g.sub_(torch.mul(p, g, out=weighed).sum(1, keepdim=True)).mul_(p)
        columns = g.flatten(0, 1)
        of_mixtures[here] = (flat.T @ columns).T
        of_dictionary.addmm_(columns, mixtures[here])
    return of_mixtures, of_dictionary.view_as(dictionary)


def _scores(mixtures: Tensor, dictionary: Tensor, room: Room) -> Tensor:
    """W n -> N N W: the mixed matrices, [column, row]."""
    N, W = len(dictionary), len(mixtures)
    scores = room("scores", N * N, W)
    torch.mm(dictionary.flatten(0, 1), mixtures.T, out=scores)
    return scores.view(N, N, W)


def _pieces(mixtures: Tensor, N: int) -> Iterator[slice]:
    size = max(16, (CACHED if mixtures.device.type == "cpu" else PARALLEL) // (N * N))
    return (slice(at, at + size) for at in range(0, len(mixtures), size))

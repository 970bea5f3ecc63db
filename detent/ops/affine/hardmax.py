"""Column one-hot matrices chosen from a mixture of a dictionary, forward hard and backward as a softmax.

    N  rows and columns     n  matrices of the dictionary     W  mixtures taken at a time

M = sum_k pi[k] M_k, and column k of P is one at the arg max of column k of M, the lowest row on a tie. The gradient
is the straight-through one: P is differentiated as if it were the softmax of the columns of M. No N x N array per
step outlives the W steps it serves. The dictionary is laid out as N N n: [column, row, matrix].
"""

from __future__ import annotations

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.ops.affine.workspace import Room, together

CACHED, PARALLEL = 1 << 18, 1 << 26
"""Entries of the matrices that exist at a time, on a CPU and on other devices."""
FEWEST = 32
"""Mixtures taken at a time at least: with fewer side by side, a reduction over rows leaves the vector units idle."""


def _choose(mixtures: Tensor, dictionary: Tensor) -> Tensor:
    """S n -> S N: the row of the one in every column, as numbers of this format."""
    N = len(dictionary)
    rank = torch.arange(N, 0, -1, dtype=mixtures.dtype, device=mixtures.device)[:, None]
    made = mixtures.new_empty(len(mixtures), N)

    def go(here: slice, room: Room) -> None:
        scores = _scores(mixtures[here], dictionary, room)
        # arg max along a middle dimension in four vectorised passes: the best entries are marked by their rank
        best = scores.amax(1, keepdim=True)
        if not bool(torch.isfinite(best).all()):
            raise InvalidInput("the dictionary's mixtures hold NaN or infinity: lower the learning rate or clip.")
        marks = scores.sub_(best).sign_().add_(1).mul_(rank)
        made[here] = (N - marks.amax(1)).T

    together(go, _pieces(mixtures, N), lambda: Room(mixtures))
    return made


choose = torch.library.custom_op("detent::choose", _choose, mutates_args=())


@choose.register_fake
def _(mixtures: Tensor, dictionary: Tensor) -> Tensor:
    return mixtures.new_empty(len(mixtures), len(dictionary))


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
        e = _scores(mixtures[here], dictionary, room)
        e.sub_(e.amax(1, keepdim=True)).exp_()
        total = e.sum(1, keepdim=True)
        # the softmax is e / total: a column of its gradient is divided by its total before there are N of it
        re, im = (part[here].T[:, None] / total for part in moved)
        worth_re, worth_im = (part[here].T[None] for part in worth)
        g, weighed = room("gradient", *e.shape), room("weighed", *e.shape)
        torch.mul(re, worth_re, out=g).addcmul_(im, worth_im)
        g.sub_(torch.mul(e, g, out=weighed).sum(1, keepdim=True).div_(total)).mul_(e)
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


def _pieces(mixtures: Tensor, N: int) -> list[slice]:
    size = max(FEWEST, (CACHED if mixtures.device.type == "cpu" else PARALLEL) // (N * N))
    return [slice(at, at + size) for at in range(0, len(mixtures), size)]

"""One block of the PD-SSM: h_t = P_t D_t h_{t-1} + b_t, with P_t chosen from a mixture of a dictionary of matrices.

    N  entries of the state     n  matrices of the dictionary     R, T  rows and steps of the block
    W  mixtures processed at a time

M = sum_k pi[k] M_k, and column k of P is one at the arg max of column k of M, the lowest row on a tie (`choose`). The
gradient is the straight-through one: P is differentiated as if it were the softmax of the columns of M. No N x N array
per step outlives the W steps it serves. The dictionary is laid out as N N n: [column, row, matrix].

Streams: the mixture (n), the rows that `choose` gave for it (N), the diagonal of D and the drive b (N pairs each, so
2 N wide), and 1 at steps that are taken (1). Shared: the dictionary. A step that is not taken has the identity for P.
The output is every state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.affine.chunked_scan import conjugate, times
from exactstate.ops.affine.pd import adjoint_states, states
from exactstate.ops.affine.workspace import Workspace, parallel_map

CACHED, PARALLEL = 1 << 18, 1 << 26
"""Entries of the matrices that exist at a time, on a CPU and on other devices."""
FEWEST = 32
"""Mixtures taken at a time at least: with fewer side by side, a reduction over rows leaves the vector units idle."""


def _choose(mixtures: Tensor, dictionary: Tensor) -> Tensor:
    """S n -> S N: the row of the one in every column, as numbers of this format."""
    if (
        mixtures.ndim != 2 or dictionary.ndim != 3 or not dictionary.shape[0] == dictionary.shape[1] > 0
        or dictionary.shape[2] != mixtures.shape[1] or not mixtures.is_floating_point()
        or mixtures.dtype != dictionary.dtype or mixtures.device != dictionary.device
    ):  # fmt: skip
        got = " and ".join(f"{x.dtype} {tuple(x.shape)} on {x.device}" for x in (mixtures, dictionary))
        raise InvalidInput(
            f"mixtures and dictionary are floating point of one type and device, of shapes S n and N N n; got {got}."
        )
    N = len(dictionary)
    rank = torch.arange(N, 0, -1, dtype=mixtures.dtype, device=mixtures.device)[:, None]
    made = mixtures.new_empty(len(mixtures), N)

    def go(here: slice, workspace: Workspace) -> None:
        scores = _scores(mixtures[here], dictionary, workspace)
        # arg max along a middle dimension in four vectorised passes: the best entries are marked by their rank
        best = scores.amax(1, keepdim=True)
        if not bool(torch.isfinite(best).all()):
            raise InvalidInput("the dictionary's mixtures hold NaN or infinity: lower the learning rate or clip.")
        marks = scores.sub_(best).sign_().add_(1).mul_(rank)
        made[here] = (N - marks.amax(1)).T

    parallel_map(go, _pieces(mixtures, N), lambda: Workspace(mixtures))
    return made


choose = torch.library.custom_op("exactstate::choose", _choose, mutates_args=())


@choose.register_fake
def _(mixtures: Tensor, dictionary: Tensor) -> Tensor:
    return mixtures.new_empty(len(mixtures), len(dictionary))


def hardmax_backward(
    mixtures: Tensor, dictionary: Tensor, moved: tuple[Tensor, Tensor], lam: tuple[Tensor, Tensor], workspace: Workspace
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gradients of the mixtures and the dictionary, where that of P[j, k] is Re(conj(lam[j]) moved[k]).

    `moved` is D h and `lam` the gradient of P D h, each as (Re, Im), S N.
    """
    N = len(dictionary)
    flat = dictionary.flatten(0, 1)
    grad_mixtures, grad_dictionary = torch.empty_like(mixtures), torch.zeros_like(flat)
    for here in _pieces(mixtures, N):
        e = _scores(mixtures[here], dictionary, workspace)
        e.sub_(e.amax(1, keepdim=True)).exp_()
        total = e.sum(1, keepdim=True)
        # the softmax is e / total: a column of its gradient is divided by its total before there are N of it
        re, im = (part[here].T[:, None] / total for part in moved)
        lam_re, lam_im = (part[here].T[None] for part in lam)
        g, weighed = workspace("gradient", *e.shape), workspace("weighed", *e.shape)
        torch.mul(re, lam_re, out=g).addcmul_(im, lam_im)
        g.sub_(torch.mul(e, g, out=weighed).sum(1, keepdim=True).div_(total)).mul_(e)
        columns = g.flatten(0, 1)
        grad_mixtures[here] = (flat.T @ columns).T
        grad_dictionary.addmm_(columns, mixtures[here])
    return grad_mixtures, grad_dictionary.view_as(dictionary)


def _scores(mixtures: Tensor, dictionary: Tensor, workspace: Workspace) -> Tensor:
    """W n -> N N W: the mixed matrices, [column, row]."""
    N, W = len(dictionary), len(mixtures)
    scores = workspace("scores", N * N, W)
    torch.mm(dictionary.flatten(0, 1), mixtures.T, out=scores)
    return scores.view(N, N, W)


def _pieces(mixtures: Tensor, N: int) -> list[slice]:
    size = max(FEWEST, (CACHED if mixtures.device.type == "cpu" else PARALLEL) // (N * N))
    return [slice(at, at + size) for at in range(0, len(mixtures), size)]


WITHOUT_COMPLEX = (torch.float16, torch.bfloat16)
"""Formats in which torch has no complex numbers, or no arithmetic on them."""


def sizes(start: Tensor) -> tuple[int, int]:
    return start.shape[1], 2 * start.shape[1]


def forward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    _, rows, d, b, taken = streams
    table = _table(rows, taken)
    pairs = d.dtype in WITHOUT_COMPLEX
    path = states(table, _numbers(d), _numbers(b), _numbers(start.flatten(1)), pairs=pairs)
    out = _flat(path, pairs)
    return out, out[:, -1].unflatten(-1, (-1, 2))


def backward(
    streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
    workspace: Workspace,
) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
    mixture, rows, d, b, taken = streams
    pairs = d.dtype in WITHOUT_COMPLEX
    scale, begin = _numbers(d), _numbers(start.flatten(1))
    table = _table(rows, taken)
    path = states(table, scale, _numbers(b), begin, pairs=pairs)
    lam, grad_start = adjoint_states(table, scale, _numbers(output_grad), _numbers(last.flatten(1)), pairs=pairs)
    before = torch.cat([begin.unsqueeze(-2), path.narrow(-2, 0, path.shape[-2] - 1)], dim=-2)
    reached = lam.gather(-1, table.expand_as(lam))
    grad_d = times(reached, conjugate(before, pairs=pairs), pairs=pairs)
    moved = times(scale, before, pairs=pairs) * taken.squeeze(-1).unsqueeze(-1)
    grad_mixture, grad_dictionary = hardmax_backward(
        mixture.flatten(0, 1), shared[0], _parts(moved, pairs), _parts(lam, pairs), workspace
    )
    grad_rows, grad_taken = torch.zeros_like(rows), torch.zeros_like(taken)
    grown = [grad_mixture.view_as(mixture), grad_rows, _flat(grad_d, pairs), _flat(lam, pairs), grad_taken]
    return grown, [grad_dictionary], _flat(grad_start, pairs).unflatten(-1, (-1, 2))


def _table(rows: Tensor, taken: Tensor) -> Tensor:
    """R T N, integers."""
    return torch.where(taken > 0, rows.long(), torch.arange(rows.shape[-1], device=rows.device))


def _numbers(x: Tensor) -> Tensor:
    """... 2N -> ... N complex, or 2 ... N where torch has no complex numbers of this format."""
    paired = x.unflatten(-1, (-1, 2))
    if x.dtype in WITHOUT_COMPLEX:
        return paired.movedim(-1, 0).contiguous()
    return torch.view_as_complex(paired.contiguous())


def _flat(x: Tensor, pairs: bool) -> Tensor:
    """The way back: ... 2N."""
    return (x.movedim(0, -1) if pairs else torch.view_as_real(x.resolve_conj())).flatten(-2)


def _parts(x: Tensor, pairs: bool) -> tuple[Tensor, Tensor]:
    """(Re, Im), one row per step."""
    re, im = (x[0], x[1]) if pairs else (x.real, x.imag)
    return re.flatten(0, 1).contiguous(), im.flatten(0, 1).contiguous()

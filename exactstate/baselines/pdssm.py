"""PD-SSM: every step scales the entries of a complex state and then sends each of them to one row.

    B  batch     L  length     m  width     N  entries of the state     n  matrices of the dictionary

    M = sum_k softmax(W x)[k] M_k          P: column k is one at the arg max of column k of M, the lowest row on a tie
    D = diag(r e^(i psi))                  r = sigmoid(MLP(x)), psi = 2 pi sigmoid(MLP'(x))
    h <- P D h + b                         b linear in x
    y = W' (Re h, Im h) + s x              s one factor per entry of x

Terzic et al. 2025. This is the column form: P is one-hot in every column, so P e_k is a basis vector and P is a
transition function on one-hot states, and a product of two matrices P D is again one. With one-hot rows instead, P e_k
may be zero or have several ones, which is no transition function; a form in which rows are one-hot and D stands to the
left of P is also in circulation, and it is not this one.

The dictionary learns through the softmax: forward, P is the hard matrix; backward, it is differentiated as if it were
the softmax of the columns of M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from exactstate.baselines.blocks import Kernel, Workspace, parallel_map
from exactstate.baselines.chunked_scan import (
    ColumnOneHot,
    ColumnOneHotAdjoint,
    chunked_adjoint,
    chunked_scan,
    fill_up,
    in_chunks,
    paired_product,
)
from exactstate.baselines.recurrent import WITHOUT_COMPLEX, Recurrent, Streams, at_least, resolve_affine
from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn.init import fan_in_

CACHED, PARALLEL = 1 << 18, 1 << 26
"""Entries of the matrices that exist at a time, on a CPU and on other devices."""
MIN_MIXTURES = 32
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
    size = max(MIN_MIXTURES, (CACHED if mixtures.device.type == "cpu" else PARALLEL) // (N * N))
    return [slice(at, at + size) for at in range(0, len(mixtures), size)]


class PDSSMBlock(Kernel, name="pdssm"):
    """A block of steps, R rows of T.

    Streams: the mixture (n), the rows that `choose` gave for it (N), the diagonal of D and the drive b (N pairs each,
    so 2 N wide), and 1 at steps that are taken (1). Shared: the dictionary as N N n: [column, row, matrix]. A step that
    is not taken has the identity for P. The output is every state. No N x N array of a step outlives the W steps that
    it serves.
    """

    def sizes(self, start: Tensor) -> tuple[int, int]:
        return start.shape[1], 2 * start.shape[1]

    def forward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, workspace: Workspace
    ) -> tuple[Tensor, Tensor]:
        _, rows, d, b, taken = streams
        out = _flat(states(_table(rows, taken), _numbers(d), _numbers(b), _numbers(start.flatten(1))))
        return out, out[:, -1].unflatten(-1, (-1, 2))

    def backward(
        self, streams: Sequence[Tensor], shared: Sequence[Tensor], start: Tensor, output_grad: Tensor, last: Tensor,
        workspace: Workspace,
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:  # fmt: skip
        mixture, rows, d, b, taken = streams
        scale, begin, table = _numbers(d), _numbers(start.flatten(1)), _table(rows, taken)
        path = states(table, scale, _numbers(b), begin)
        lam, grad_start = adjoint_states(table, scale, _numbers(output_grad), _numbers(last.flatten(1)))
        before = torch.cat([begin.unsqueeze(-2), path.narrow(-2, 0, path.shape[-2] - 1)], dim=-2)
        grad_d = lam.gather(-1, table) * before.conj()
        moved = scale * before * taken
        grad_mixture, grad_dictionary = hardmax_backward(
            mixture.flatten(0, 1), shared[0], _parts(moved), _parts(lam), workspace
        )
        grad_rows, grad_taken = torch.zeros_like(rows), torch.zeros_like(taken)
        grown = [grad_mixture.view_as(mixture), grad_rows, _flat(grad_d), _flat(lam), grad_taken]
        return grown, [grad_dictionary], _flat(grad_start).unflatten(-1, (-1, 2))


def states(table: Tensor, d: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """Every state."""
    tables = in_chunks(fill_up(table, torch.arange(table.shape[-1], device=table.device)))
    scales, drives = in_chunks(fill_up(d, 1.0)), fill_up(b)
    out = torch.empty_like(drives, memory_format=torch.contiguous_format)
    chunked_scan(ColumnOneHot(), list(zip(tables, scales, strict=True)), in_chunks(drives), h0, in_chunks(out))
    return out.narrow(-2, 0, b.shape[-2])


def adjoint_states(table: Tensor, d: Tensor, gains: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """lambda_t = g_t + (P_{t+1} D_{t+1})^H lambda_{t+1}, and lambda before the first step."""
    stay, one = torch.arange(table.shape[-1], device=table.device), d.new_ones((1,))
    tables, scales = in_chunks(fill_up(table, stay)), in_chunks(fill_up(d, 1.0).conj().resolve_conj())
    gains = fill_up(gains)
    out = torch.empty_like(gains, memory_format=torch.contiguous_format)
    steps = list(zip(tables, scales, strict=True))
    chunked_adjoint(ColumnOneHotAdjoint(), steps, in_chunks(gains), last, (stay, one), in_chunks(out))
    before = d.select(-2, 0).conj() * out.select(-2, 0).gather(-1, table.select(-2, 0))
    return out.narrow(-2, 0, table.shape[-2]), before.resolve_conj()


def _table(rows: Tensor, taken: Tensor) -> Tensor:
    """R T N, integers."""
    return torch.where(taken > 0, rows.long(), torch.arange(rows.shape[-1], device=rows.device))


def _numbers(x: Tensor) -> Tensor:
    """... 2N -> ... N complex."""
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())


def _flat(x: Tensor) -> Tensor:
    """The way back: ... 2N."""
    return torch.view_as_real(x.resolve_conj()).flatten(-2)


def _parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """(Re, Im), one row per step."""
    return x.real.flatten(0, 1).contiguous(), x.imag.flatten(0, 1).contiguous()


class PDSSM(Recurrent):
    """A contracting layer: each column of P D has one entry that is not zero, of modulus below one.

    >>> layer = PDSSM(width=128, states=256)
    >>> y, state = layer(torch.randn(2, 100, 128))
    >>> y.shape, torch.view_as_complex(state).shape
    (torch.Size([2, 100, 128]), torch.Size([2, 256]))
    """

    @dataclass(frozen=True, kw_only=True, slots=True)
    class Config:
        width: int
        """m, of the input and the output."""
        states: int
        """N, entries of the state."""
        dictionary: int = 16
        """n, learned matrices that are mixed."""
        hidden: int | None = None
        """Hidden width of the two networks for moduli and phases; by default as many as there are states."""
        chunk: int = 0
        """Steps computed at a time, and computed again for the gradient (0: all)."""

        def __post_init__(self) -> None:
            at_least(1, width=self.width, states=self.states, dictionary=self.dictionary)
            if self.states > 2048:
                raise InvalidConfig(f"states must be at most 2048, which float16 can count; got {self.states}.")
            at_least(1, hidden=1 if self.hidden is None else self.hidden)
            at_least(0, chunk=self.chunk)

    def __init__(
        self, width: int, states: int, dictionary: int = 16, *, hidden: int | None = None, chunk: int = 0,
        backend: str = "auto", generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.config = PDSSM.Config(width=width, states=states, dictionary=dictionary, hidden=hidden, chunk=chunk)
        self.backend = resolve_affine(backend)
        inner = hidden or states
        self.mix_proj = nn.Linear(width, dictionary, bias=False)
        self.dictionary = nn.Parameter(torch.empty(dictionary, states, states))
        self.modulus = nn.Sequential(nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, states))
        self.phase = nn.Sequential(nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, states))
        self.in_proj = nn.Linear(width, 2 * states, bias=False)
        self.out_proj = nn.Linear(2 * states, width, bias=False)
        self.skip = nn.Parameter(torch.empty(width))
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Unit normal matrices, s = 1, zero biases; linear maps as in the NFSM."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                fan_in_(module, generator)
        nn.init.normal_(self.dictionary, generator=generator)
        nn.init.ones_(self.skip)

    def initial_state(self, batch: int) -> Tensor:
        """B N 2, zeros; the last dimension is (Re, Im)."""
        return self.skip.new_zeros(batch, self.config.states, 2)

    def streams(self, rows: Tensor) -> Streams:
        """(mixture, diagonal of D, b, x), complex numbers as 2 N reals."""
        parts = [*self.modulus, *self.phase]
        into_r, out_r, into_psi, out_psi = (part for part in parts if isinstance(part, nn.Linear))
        # one product reads the rows once for all that is narrow
        narrow = linear(rows, torch.cat([self.mix_proj.weight, into_r.weight, into_psi.weight]))
        mixture, for_r, for_psi = narrow.split([self.config.dictionary, *2 * [into_r.out_features]], dim=-1)
        r = out_r(silu(for_r + into_r.bias)).sigmoid()
        psi = 2 * pi * out_psi(silu(for_psi + into_psi.bias)).sigmoid()
        d = torch.stack([r * psi.cos(), r * psi.sin()], dim=-1)
        return mixture.softmax(-1), d.flatten(-2), self.in_proj(rows), rows

    def advance(self, streams: Streams, h: Tensor) -> Tensor:
        mixture, d, b, _ = streams
        scores = torch.einsum("bn,njk->bjk", mixture, self.dictionary)
        soft = scores.softmax(1)
        hard = torch.zeros_like(soft).scatter_(1, scores.argmax(1, keepdim=True), 1)
        P = hard + soft - soft.detach()
        return torch.einsum("bjk,bkc->bjc", P, paired_product(d.view_as(h), h)) + b.view_as(h)

    def read(self, streams: Streams, h: Tensor) -> Tensor:
        return h.flatten(1)

    def scan(
        self, streams: Streams, h: Tensor, taken: Tensor | None, resets: Tensor | None
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        mixture, d, b, _ = streams
        if d.dtype in WITHOUT_COMPLEX:
            return self._loop(streams, h, taken, resets)
        own = torch.ones_like(mixture[..., :1]) if taken is None else taken[..., None].to(d.dtype)
        if resets is not None:
            d = torch.where(resets[..., None], 0, d)
        if taken is not None:
            one = torch.tensor([1, 0], dtype=d.dtype, device=d.device).repeat(self.config.states)
            d, b = torch.where(taken[..., None], d, one), torch.where(taken[..., None], b, 0)
        return self._recur("pdssm", [mixture, self._choose(mixture), d, b, own], [self._laid_out()], h)

    def finish(self, streams: Streams, read: Tensor) -> Tensor:
        return self.out_proj(read).addcmul_(self.skip, streams[3])

    @torch.no_grad()
    def tables(self, x: Tensor) -> Tensor:
        """... m -> ... N: the row of the one in every column of P."""
        return self._choose(self.streams(self._cast(x))[0]).long()

    @torch.no_grad()
    def transitions(self, x: Tensor) -> Tensor:
        """... m -> ... N N: the matrices P D of the steps that these inputs cause, as complex numbers."""
        d = self.streams(self._cast(x))[1]
        d = torch.view_as_complex(d.to(torch.promote_types(d.dtype, torch.float32)).unflatten(-1, (-1, 2)))
        matrices = d.new_zeros(*d.shape, d.shape[-1])
        return matrices.scatter_(-2, self.tables(x).unsqueeze(-2), d.unsqueeze(-2))

    @torch.no_grad()
    def _choose(self, mixture: Tensor) -> Tensor:
        """... n -> ... N: the tables, as numbers of the format of the layer."""
        flat = mixture.reshape(mixture.shape[:-1].numel(), mixture.shape[-1])
        return choose(flat, self._laid_out()).view(*mixture.shape[:-1], self.config.states)

    def _laid_out(self) -> Tensor:
        """The dictionary as [column, row, matrix]."""
        return self.dictionary.permute(2, 1, 0).contiguous()

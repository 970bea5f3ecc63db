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

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from exactstate.errors import InvalidConfig
from exactstate.nn.init import fan_in_
from exactstate.nn.recurrent import Recurrent, Streams, at_least, resolve_affine
from exactstate.ops.affine.chunked_scan import paired_product
from exactstate.ops.affine.pdssm import choose


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

    def extra_repr(self) -> str:
        return f"states={self.config.states}, backend={self.backend!r}"

"""What the affine step h -> A h + b does and how steps compose, for the classes of matrices that stay in their class.

    Diagonal   A = diag(a)                          real or complex numbers of torch
    Shuffle    A = P diag(d), column k of P is e_table[k]: entry k is scaled and goes to row table[k]
    Pullback   A = (P diag(d))^H, the adjoint of a shuffle: entry k is scaled and read at table[k]

A step is a tuple of tensors. Numbers are torch's own, real or complex, or `pairs`: real tensors with a leading
dimension of two, (Re, Im), for the formats in which torch has no complex numbers.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

Step = tuple[Tensor, ...]


class Rules(Protocol):
    """How steps of one class act."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        """A h + drive; `out` may be the drive, never h."""

    def compose(self, first: Step, then: Step) -> Step:
        """The matrix of `then` times that of `first`."""


def times(x: Tensor, y: Tensor, *, pairs: bool) -> Tensor:
    """The product of two arrays of numbers."""
    if not pairs:
        return x * y
    (re, im), (y_re, y_im) = x.unbind(), y.unbind()
    product = re * y
    product_re, product_im = product.unbind()
    product_re.addcmul_(im, y_im, value=-1)
    product_im.addcmul_(im, y_re)
    return product


def add_times(drive: Tensor, x: Tensor, y: Tensor, out: Tensor | None, *, pairs: bool) -> Tensor:
    """drive + x y."""
    if not pairs:
        return torch.addcmul(drive, x, y, out=out)
    (re, im), (y_re, y_im) = x.unbind(), y.unbind()
    total = torch.addcmul(drive, re, y, out=out)
    total_re, total_im = total.unbind()
    total_re.addcmul_(im, y_im, value=-1)
    total_im.addcmul_(im, y_re)
    return total


def conjugate(x: Tensor, *, pairs: bool) -> Tensor:
    """The complex conjugate, written out."""
    return torch.stack([x[0], -x[1]]) if pairs else x.conj().resolve_conj()


def paired_product(x: Tensor, y: Tensor) -> Tensor:
    """The product of numbers whose last dimension is (Re, Im), for the definitions."""
    return torch.stack(
        [x[..., 0] * y[..., 0] - x[..., 1] * y[..., 1], x[..., 0] * y[..., 1] + x[..., 1] * y[..., 0]], dim=-1
    )


def unit(ndim: int, like: Tensor, *, pairs: bool) -> Tensor:
    """One, in a shape of `ndim` dimensions that broadcasts."""
    one = like.new_ones((1,) * ndim)
    return torch.cat([one, torch.zeros_like(one)]) if pairs else one


class Diagonal:
    """Steps (a,): every entry on its own."""

    def __init__(self, *, pairs: bool = False) -> None:
        self.pairs = pairs

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        return add_times(drive, step[0], h, out, pairs=self.pairs)

    def compose(self, first: Step, then: Step) -> Step:
        return (times(first[0], then[0], pairs=self.pairs),)


class Shuffle:
    """Steps (table, d), entries in the last dimension; those that meet in one row are summed."""

    def __init__(self, *, pairs: bool = False) -> None:
        self.pairs = pairs

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        table, d = step
        scaled = times(d, h, pairs=self.pairs)
        total = drive.clone() if out is None else out.copy_(drive)
        return total.scatter_add_(-1, table.expand_as(scaled), scaled)

    def compose(self, first: Step, then: Step) -> Step:
        (table, d), (later, scale) = first, then
        met = scale.gather(-1, table.expand_as(scale))
        return later.gather(-1, table), times(d, met, pairs=self.pairs)


class Pullback:
    """Steps (table, conjugate of d): h[k] <- conj(d[k]) h[table[k]] + drive[k]."""

    def __init__(self, *, pairs: bool = False) -> None:
        self.pairs = pairs

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        table, d = step
        return add_times(drive, d, h.gather(-1, table.expand_as(h)), out, pairs=self.pairs)

    def compose(self, first: Step, then: Step) -> Step:
        (inner, scale), (table, d) = first, then
        met = scale.gather(-1, table.expand_as(scale))
        return inner.gather(-1, table), times(d, met, pairs=self.pairs)

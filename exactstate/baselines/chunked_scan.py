"""Scans in log depth: short runs of steps in every chunk at once, then a scan over the chunks.

    K  steps of a chunk     C  chunks     Z  whatever lies innermost in memory

Step k of all chunks is one tensor of shape (..., C, Z), so a sequence is K of them and Python takes K steps, not
L = K C. Each chunk is first summed up as one affine map; a scan over these (again STEPS at a time) tells the state in
which every chunk begins; then all chunks run. That reads the steps twice and stores nothing but the states: fewer
passes over memory than recursive doubling, and the depth is still STEPS times a logarithm of L.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

Step = tuple[Tensor, ...]


class StepRules(Protocol):
    """How steps of one class act."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        """A h + drive; `out` may be the drive, never h."""

    def compose(self, first: Step, then: Step) -> Step:
        """The matrix of `then` times that of `first`."""


def paired_product(x: Tensor, y: Tensor) -> Tensor:
    """The product of numbers whose last dimension is (Re, Im), for the definitions."""
    return torch.stack(
        [x[..., 0] * y[..., 0] - x[..., 1] * y[..., 1], x[..., 0] * y[..., 1] + x[..., 1] * y[..., 0]], dim=-1
    )


class Diagonal:
    """Steps (a,): every entry on its own."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        return torch.addcmul(drive, step[0], h, out=out)

    def compose(self, first: Step, then: Step) -> Step:
        return (first[0] * then[0],)


class ColumnOneHot:
    """Steps (table, d), entries in the last dimension; those that meet in one row are summed."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        table, d = step
        scaled = d * h
        total = drive.clone() if out is None else out.copy_(drive)
        return total.scatter_add_(-1, table.expand_as(scaled), scaled)

    def compose(self, first: Step, then: Step) -> Step:
        (table, d), (later, scale) = first, then
        met = scale.gather(-1, table.expand_as(scale))
        return later.gather(-1, table), d * met


class ColumnOneHotAdjoint:
    """Steps (table, conjugate of d): h[k] <- conj(d[k]) h[table[k]] + drive[k]."""

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        table, d = step
        return torch.addcmul(drive, d, h.gather(-1, table.expand_as(h)), out=out)

    def compose(self, first: Step, then: Step) -> Step:
        (inner, scale), (table, d) = first, then
        met = scale.gather(-1, table.expand_as(scale))
        return inner.gather(-1, table), d * met


STEPS = 16
"""Steps taken one after another at every level."""


def chunked_scan(
    rules: StepRules, steps: Sequence[Step], drives: Sequence[Tensor], start: Tensor, out: Sequence[Tensor]
) -> Tensor:  # fmt: skip
    """h_t = A_t h_{t-1} + b_t from `start` (... Z) on. Writes every state to `out`, which may be the drives.

    Returns the last state, ... Z.
    """
    h = _begin(rules, *_summary(rules, steps, drives), start)
    for step, drive, place in zip(steps, drives, out, strict=True):
        h = rules.apply(step, h, drive, place)
    return h.select(-2, -1).clone()


def chunked_adjoint(
    rules: StepRules, steps: Sequence[Step], gains: Sequence[Tensor], last: Tensor, identity: Step,
    out: Sequence[Tensor],
) -> None:  # fmt: skip
    """lambda_t = g_t + A_{t+1}^H lambda_{t+1}, with `last` added after the end. `steps` act as A_t^H.

    Writes lambda to `out`, which may be the gains.
    """
    following = tuple(_ahead(part, one) for part, one in zip(steps[0], identity, strict=True))
    order, gains, out = [following, *reversed(steps[1:])], gains[::-1], out[::-1]
    whole, total = _summary(rules, order, gains)
    h = _begin(rules, tuple(part.flip(-2) for part in whole), total.flip(-2), last).flip(-2)
    for step, drive, place in zip(order, gains, out, strict=True):
        h = rules.apply(step, h, drive, place)


def diagonal_adjoint(a: Tensor, gains: Tensor) -> tuple[Tensor, Tensor]:
    """lambda_t = g_t + a_{t+1} lambda_{t+1} of real numbers B L F, and lambda before the first step."""
    steps, filled = fill_up(a, 1.0), fill_up(gains)
    lam = torch.empty_like(filled, memory_format=torch.contiguous_format)
    last, one = torch.zeros_like(gains.select(-2, 0)), a.new_ones(())
    rows = [(part,) for part in in_chunks(steps)]
    chunked_adjoint(Diagonal(), rows, in_chunks(filled), last, (one,), in_chunks(lam))
    return lam.narrow(-2, 0, a.shape[-2]), steps.select(-2, 0) * lam.select(-2, 0)


def in_chunks(x: Tensor) -> tuple[Tensor, ...]:
    """... L Z -> K views of shape ... C Z, with L = C K and step t = c K + k in view k."""
    K = min(x.shape[-2], STEPS)
    return x.unflatten(-2, (-1, K)).unbind(-2)


def fill_up(x: Tensor, value: Tensor | float = 0.0) -> Tensor:
    """The same steps, and behind them as many `value`s as it takes to make whole chunks."""
    L = x.shape[-2]
    missing = -L % min(L, STEPS)
    if not missing:
        return x
    filled = x.new_empty(*x.shape[:-2], L + missing, x.shape[-1])
    filled.narrow(-2, 0, L).copy_(x)
    filled.narrow(-2, L, missing).copy_(torch.as_tensor(value, dtype=x.dtype, device=x.device))
    return filled


def _summary(rules: StepRules, steps: Sequence[Step], drives: Sequence[Tensor]) -> tuple[Step, Tensor]:
    """Every chunk as one affine map: (its matrix, its drive)."""
    whole, total = steps[0], drives[0]
    if total.shape[-2] > 1:  # a single chunk begins at the start, whatever it does
        for step, drive in zip(steps[1:], drives[1:], strict=True):
            whole, total = rules.compose(whole, step), rules.apply(step, total, drive)
    return whole, total


def _begin(rules: StepRules, whole: Step, total: Tensor, start: Tensor) -> Tensor:
    """... C Z: the state in which every chunk begins."""
    C = total.shape[-2]
    begin = torch.empty_like(total)
    begin.select(-2, 0).copy_(start)
    many = C // STEPS * STEPS if C > STEPS else 0
    if many:
        after = torch.empty_like(total.narrow(-2, 0, many))
        turns = range(STEPS)
        steps = [tuple(part[..., k:many:STEPS, :] for part in whole) for k in turns]
        drives, places = ([x[..., k:many:STEPS, :] for k in turns] for x in (total, after))
        chunked_scan(rules, steps, drives, start, places)
        kept = min(many, C - 1)
        begin.narrow(-2, 1, kept).copy_(after.narrow(-2, 0, kept))
    for c in range(max(many, 1), C):
        step = tuple(part.select(-2, c - 1) for part in whole)
        rules.apply(step, begin.select(-2, c - 1), total.select(-2, c - 1), begin.select(-2, c))
    return begin


def _ahead(first: Tensor, one: Tensor) -> Tensor:
    """Step 0 of the chunk that follows each chunk; after the last one comes the identity."""
    shifted = torch.empty_like(first)
    C = first.shape[-2]
    shifted.narrow(-2, 0, C - 1).copy_(first.narrow(-2, 1, C - 1))
    shifted.select(-2, C - 1).copy_(one)
    return shifted


def to_lanes(x: Tensor) -> Tensor:
    """R T f -> K f C R: time in chunks, rows innermost, where vector units need them; zeros follow the last step."""
    R, T, f = x.shape
    K = min(T, STEPS)
    C = -(-T // K)
    filled = pad(x, (0, 0, 0, C * K - T)) if C * K > T else x
    return filled.reshape(R, C, K, f).permute(2, 3, 1, 0).contiguous()


def from_lanes(x: Tensor, T: int) -> Tensor:
    """K f C R -> R T f: the inverse of `to_lanes`."""
    K, f, C, R = x.shape
    return x.permute(3, 2, 0, 1).reshape(R, C * K, f)[:, :T]


def shift(h: Tensor, start: Tensor, out: Tensor) -> Tensor:
    """The state before every step, from those after: K ... C R and ... R -> K ... C R."""
    out[1:] = h[:-1]
    out[0, ..., 1:, :] = h[-1, ..., :-1, :]
    out[0, ..., 0, :] = start
    return out

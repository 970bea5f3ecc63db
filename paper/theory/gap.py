"""Parallel against sequential evaluation of the same untrained recurrence on the same words.

Both runs share the parameters, the words and the coefficients of every step, computed in fp32 and rounded to a format
once; they differ only in the order of multiplications and additions. So the gap between the two states of an affine
recurrence shows its rounding errors: a contracting one (Mamba-, PD-SSM) forgets them, an isometric one (AUSSM)
accumulates them. Tables (NFSM) are composed without rounding, so the gap is exactly zero.

`gap_rows` yields, for every model, format and seed,

    kind "step"          model, format, seed, step, words,
                         gap, the mean over words of max |h_par - h_seq| over the entries of the state at this step, and
                         gap_min, gap_q25, gap_median, gap_q75, gap_max, its quantiles over words,
                         size, the mean over words of max |h_seq|
    kind "distribution"  model, format, seed, words, length, and gap and its quantiles over all words and steps

one by one. States are zero before the first step; complex numbers are two reals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactstate import ops as scan
from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.errors import unknown
from exactstate.nn import NFSM
from exactstate.records import Row
from paper.theory.affine import diagonal_loop, diagonal_scan, pd_loop, pd_scan
from paper.theory.drift import log_spaced

FORMATS = {"fp32": torch.float32, "fp16": torch.float16}
WIDTH, LETTERS = 32, 5
BATCH = 8
"""Words evaluated at a time, so that a run of 2^15 steps fits a small machine."""
QUANTILES = {"gap_min": 0.0, "gap_q25": 0.25, "gap_median": 0.5, "gap_q75": 0.75, "gap_max": 1.0}


class Recurrence(Protocol):
    """Two evaluations of the same steps."""

    def sequential(self, words: Tensor) -> Tensor:
        """B L -> the states after every step, B L ..., step by step."""

    def parallel(self, words: Tensor) -> Tensor:
        """The same in log depth."""


class Diagonal:
    """h_t = a_t h_{t-1} + b_t, entry by entry."""

    def __init__(self, a: Tensor, b: Tensor, *, pairs: bool) -> None:
        self.a, self.b, self.pairs = a, b, pairs

    def sequential(self, words: Tensor) -> Tensor:
        return diagonal_loop(self.a[words], self.b[words], self._zero(words), pairs=self.pairs)

    def parallel(self, words: Tensor) -> Tensor:
        return diagonal_scan(self.a[words], self.b[words], self._zero(words), pairs=self.pairs)

    def _zero(self, words: Tensor) -> Tensor:
        return self.b.new_zeros(len(words), *self.b.shape[1:])


class PermutedDiagonal:
    """h_t = P_t D_t h_{t-1} + b_t, with P_t a table."""

    def __init__(self, table: Tensor, d: Tensor, b: Tensor) -> None:
        self.table, self.d, self.b = table, d, b

    def sequential(self, words: Tensor) -> Tensor:
        return pd_loop(self.table[words], self.d[words], self.b[words], self._zero(words), pairs=True)

    def parallel(self, words: Tensor) -> Tensor:
        return pd_scan(self.table[words], self.d[words], self.b[words], self._zero(words), pairs=True)

    def _zero(self, words: Tensor) -> Tensor:
        return self.b.new_zeros(len(words), *self.b.shape[1:])


class Tables:
    """k_t = sigma_t(k_{t-1}) in every head; states are the one-hot vectors of the indices."""

    def __init__(self, tables: Tensor, heads: Sequence[int]) -> None:
        self.tables, self.heads = tables, tuple(heads)

    def sequential(self, words: Tensor) -> Tensor:
        return self._run(words, "reference")

    def parallel(self, words: Tensor) -> Tensor:
        return self._run(words, "tree")

    def _run(self, words: Tensor, backend: str) -> Tensor:
        start = torch.zeros(len(words), len(self.heads), dtype=torch.int64)
        indices = scan.run(self.tables[words], start, self.heads, backend=backend)
        parts = [torch.nn.functional.one_hot(indices[..., i], d) for i, d in enumerate(self.heads)]
        return torch.cat(parts, dim=-1).float()


@torch.no_grad()
def mamba(dtype: torch.dtype, generator: torch.Generator) -> Recurrence:
    layer, x = MambaMinus(WIDTH, 16, 4, generator=generator), _letters(generator)
    b = layer.advance(layer.streams(x), layer.initial_state(LETTERS))
    return Diagonal(layer.transitions(x).to(dtype), b.to(dtype), pairs=False)


@torch.no_grad()
def aussm(dtype: torch.dtype, generator: torch.Generator) -> Recurrence:
    layer, x = AUSSM(WIDTH, 16, 4, generator=generator), _letters(generator)
    b = layer.advance(layer.streams(x), layer.initial_state(LETTERS))
    return Diagonal(torch.view_as_real(layer.transitions(x)).to(dtype), b.to(dtype), pairs=True)


@torch.no_grad()
def pdssm(dtype: torch.dtype, generator: torch.Generator) -> Recurrence:
    layer, x = PDSSM(WIDTH, 32, generator=generator), _letters(generator)
    _, d, b, _ = (stream.to(dtype) for stream in layer.streams(x))
    return PermutedDiagonal(layer.tables(x), d.unflatten(-1, (-1, 2)), b.unflatten(-1, (-1, 2)))


@torch.no_grad()
def nfsm(dtype: torch.dtype, generator: torch.Generator) -> Recurrence:
    layer, x = NFSM(WIDTH, (16, 16), generator=generator).eval(), _letters(generator)
    tables = [theta.to(dtype).argmax(-2) for theta in layer.logits(x)]
    return Tables(torch.cat(tables, dim=-1), layer.heads)


MODELS: dict[str, Callable[[torch.dtype, torch.Generator], Recurrence]] = {
    "Mamba-": mamba, "AUSSM": aussm, "PD-SSM": pdssm, "NFSM": nfsm,
}  # fmt: skip


def gap_rows(
    models: Sequence[str] = tuple(MODELS), formats: Sequence[str] = tuple(FORMATS), seeds: Sequence[int] = range(5), *,
    words: int = 64, length: int = 1 << 15, per_decade: int = 12,
) -> Iterator[Row]:  # fmt: skip
    """Rows as described above."""
    for model in models:
        if model not in MODELS:
            raise unknown("model", model, MODELS)
    for format in formats:
        if format not in FORMATS:
            raise unknown("number format", format, FORMATS)
    for seed in seeds:
        drawn = torch.randint(LETTERS, (words, length), generator=torch.Generator().manual_seed(seed))
        for model in models:
            for format in formats:
                recurrence = MODELS[model](FORMATS[format], torch.Generator().manual_seed(seed))
                gap, size = gaps(recurrence, drawn)
                about: Row = {"model": model, "format": format, "seed": seed, "words": words}
                for step in log_spaced(length, per_decade):
                    here = {"step": step, **_statistics(gap[:, step - 1]), "size": float(size[:, step - 1].mean())}
                    yield {"kind": "step", **about, **here}
                yield {"kind": "distribution", **about, "length": length, **_statistics(gap)}


@torch.no_grad()
def gaps(recurrence: Recurrence, words: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(max |h_par - h_seq| over the entries of the state: B L, max |h_seq|: B L)."""
    gap, size = [], []
    for batch in words.split(BATCH):
        one, other = (run(batch).flatten(2).double() for run in (recurrence.sequential, recurrence.parallel))
        gap.append((other - one).abs().amax(-1))
        size.append(one.abs().amax(-1))
    return torch.cat(gap).numpy(), torch.cat(size).numpy()


def _letters(generator: torch.Generator) -> Tensor:
    """The embedding of the letters."""
    return torch.randn(LETTERS, WIDTH, generator=generator)


def _statistics(gap: NDArray[np.float64]) -> Row:
    quantiles = np.quantile(gap, list(QUANTILES.values()))
    return {"gap": float(gap.mean())} | {name: float(q) for name, q in zip(QUANTILES, quantiles, strict=True)}

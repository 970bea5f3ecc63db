"""The frontier: how far each word is right, found block by block, looking only at words that are still of interest.

    B  words     L  their length     r  heads     S  their indices

The loss mutes positions after the first error, and beyond `reach` of them it ignores them. So neither their read-out
nor anything after them is computed: the cost of a step follows the first error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from detent.layers import NFSM
from detent.scan.backends import stages
from detent.scan.segments import rows_of
from detent.scan.source import Noise, Source
from detent.scan.tables import cell_dtype
from detent.training.shared import SharedRows

FIRST = 6
"""Positions of the first block, at least; each further block is twice as long."""


@dataclass(frozen=True)
class Walk:
    """Words followed as far as they matter."""

    first: Tensor
    """B: the first position whose likeliest label is wrong; L where there is none."""
    kept: Tensor
    """B: how many positions matter."""
    row: Tensor
    """B L: which shared row stands where; -1 where nothing was computed."""
    states: Tensor
    """(B L) r: the heads after every position."""
    tables: Tensor
    """(B L) S: what every position does."""
    starts: Tensor
    """B r: the heads before the first position."""


def walk(
    block: NFSM, source: Source, rows: SharedRows, wanted: Tensor, *, noise: Noise | None, reach: int
) -> Walk:  # fmt: skip
    """Follow words of equal length; `source` says what stands at which position, `wanted` (B L) the right labels."""
    kernels, heads = stages(block.backend), block.heads
    assert source.index is not None
    B, L = wanted.shape
    starts = torch.tensor(block.home).expand(B, -1).contiguous()
    at, states = starts.clone(), torch.zeros(B * L, len(heads), dtype=cell_dtype(heads))
    tables = torch.zeros(B * L, sum(heads), dtype=cell_dtype(heads))
    row = torch.full((B * L,), -1)
    first = torch.full((B,), L)
    going, begin, width = torch.arange(B), 0, max(reach, FIRST)
    while begin < L and len(going):
        end = min(L, begin + width)
        segments = _window(going, begin, end, L)
        made = kernels.tables(source, segments, heads, noise)
        at[going] = kernels.track(made, segments, at[going], states, heads)
        here = rows_of(segments)
        tables[here] = made
        row[here] = rows.find(source.index[here], states[here], wanted.view(-1)[here])
        wrong = ~rows.right[row[here]].view(len(going), end - begin)
        met = torch.where(wrong.any(dim=1), begin + wrong.int().argmax(dim=1), L)
        first[going] = torch.minimum(first[going], met)
        going = going[first[going] + reach > end]
        begin, width = end, 2 * width
    return Walk(first, (first + reach).clamp(max=L), row.view(B, L), states, tables, starts)


def _window(going: Tensor, begin: int, end: int, length: int) -> Tensor:
    """Segments of the positions begin .. end - 1 of some words."""
    count = torch.full_like(going, end - begin)
    local = torch.arange(len(going)) * (end - begin)
    return torch.stack([going * length + begin, count, count * 0, going, count * 0 + begin, local], dim=1)

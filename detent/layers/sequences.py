"""Sequences of different lengths: which steps are a sequence's own, and packed ones laid side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.scan.layout import lay_out
from detent.scan.segments import LENGTH, ROW


def check_lengths(lengths: Tensor | None, shape: Sequence[int]) -> None:
    """Refuse lengths that the B L rows given do not have."""
    if lengths is not None and not torch.compiler.is_compiling():
        _segments(shape, lengths, None)


def check_index(index: Tensor, distinct: int) -> Tensor:
    """The index as int64, or a refusal where it names a row that is not there."""
    if not torch.compiler.is_compiling():
        wrong = (index < 0) | (index >= distinct)
        if bool(wrong.any()):
            place = wrong.nonzero()[0].tolist()
            raise InvalidInput(
                f"index{place} is {int(index[tuple(place)])}, but there are {distinct} distinct rows "
                f"(0..{distinct - 1})."
            )
    return index.long()


def steps_below(lengths: Tensor, room: int) -> Tensor:
    """B room: whether a step is one of the sequence's own."""
    return torch.arange(room, device=lengths.device) < lengths[:, None]


def side_by_side(boundaries: Tensor, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(row of every step: B T, whether it is one of the sequence's own), for sequences packed back to back."""
    segments = _segments((rows,), None, boundaries).to(device)
    longest = int(segments[:, LENGTH].max()) if len(segments) else 0
    taken = steps_below(segments[:, LENGTH], longest)
    return torch.where(taken, segments[:, ROW, None] + torch.arange(longest, device=device), 0), taken


def beside(mask: Tensor, state: Tensor) -> Tensor:
    """B -> B 1 ..., to stand beside a state."""
    return mask.view(-1, *(1,) * (state.ndim - 1))


def _segments(shape: Sequence[int], lengths: Tensor | None, boundaries: Tensor | None) -> Tensor:
    batch = len(boundaries) - 1 if boundaries is not None else shape[0]
    nowhere = torch.zeros(batch, 1, dtype=torch.int64)
    return lay_out(shape, nowhere, (1,), lengths, boundaries, None, (0,)).segments

"""From what a caller says (batch, lengths, packing, resets, states) to segments and where their states begin.

B  sequences     G  segments     r  heads     N  rows of the flat input
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.scan.segments import LENGTH, ROOM, ROW, cut, of_batch, of_lengths, of_packed
from detent.scan.tables import check_states


class Cuts(NamedTuple):
    """Where resets cut sequences into pieces, and what is left of the sequences."""

    opening: Tensor
    """B: the segment that begins in the sequence's own start state."""
    closing: Tensor
    """B: the segment whose last state is the sequence's."""
    carried: Tensor
    """B booleans: false where a reset at the first step discards the start state."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Segments, the state each one begins in, and where resets have cut, if they have."""

    segments: Tensor
    """G 6."""
    starts: Tensor
    """G r."""
    cuts: Cuts | None = None

    def finals(self, lasts: Tensor) -> Tensor:
        """G ... -> B ...: of what segments end in, what sequences end in; always a tensor of its own."""
        return lasts.clone() if self.cuts is None else lasts[self.cuts.closing.to(lasts.device)]

    def of_finals(self, gradient: Tensor) -> Tensor:
        """B ... -> G ...: the adjoint of `finals`."""
        if self.cuts is None:
            return gradient
        lasts = gradient.new_zeros(len(self.segments), *gradient.shape[1:])
        lasts[self.cuts.closing.to(gradient.device)] = gradient
        return lasts

    def of_starts(self, gradient: Tensor) -> Tensor:
        """G S -> B S: of the gradients before all segments, those that reach the states sequences began in."""
        if self.cuts is None:
            return gradient.clone()
        carried = self.cuts.carried.to(gradient.device)
        return gradient[self.cuts.opening.to(gradient.device)] * carried[:, None]

    @property
    def held_rows(self) -> tuple[Tensor, Tensor]:
        """(rows that only hold a state, the segment whose state they hold)."""
        room = self.segments[:, ROOM]
        if not bool(room.any()):
            return room[:0], room[:0]
        owner = torch.arange(len(self.segments)).repeat_interleave(room)
        begin = (self.segments[:, ROW] + self.segments[:, LENGTH]) - (room.cumsum(0) - room)
        return begin.repeat_interleave(room) + torch.arange(len(owner)), owner


def lay_out(
    shape: Sequence[int], start: Tensor, heads: Sequence[int], lengths: Tensor | None, boundaries: Tensor | None,
    resets: Tensor | None, home: Sequence[int], *, trusted: bool = False,
) -> Layout:  # fmt: skip
    """Segments of an input of B L rows, or of N rows packed between `boundaries`; `home` is where resets go.

    A start that is `trusted` has been checked before.
    """
    if boundaries is not None:
        _check_boundaries(boundaries, shape[0])
        segments = of_packed(boundaries)
    elif lengths is not None:
        _check_lengths(lengths, shape[1])
        segments = of_lengths(lengths, shape[1])
    else:
        segments = of_batch(shape[0], shape[1])
    if not trusted:
        check_states(start, heads, len(segments))
    start = start.long().cpu()
    if resets is None:
        return Layout(segments, start)
    pieces, parent = cut(segments, resets)
    first = torch.ones(len(pieces), dtype=torch.bool)
    first[1:] = parent[1:] != parent[:-1]
    opening = first.nonzero().flatten()
    closing = torch.cat([opening[1:] - 1, torch.tensor([len(pieces) - 1])])[: len(segments)]
    flat = resets.reshape(-1).cpu()
    begins = segments[:, ROW].clamp(max=max(len(flat) - 1, 0))
    carried = ~(flat[begins] & (segments[:, LENGTH] > 0)) if len(flat) else torch.ones(len(segments)).bool()
    starts = torch.tensor(list(home)).expand(len(pieces), -1).clone()
    starts[opening] = torch.where(carried[:, None], start, starts[opening])
    return Layout(pieces, starts, Cuts(opening, closing, carried))


def _check_lengths(lengths: Tensor, room: int) -> None:
    wrong = ((lengths < 0) | (lengths > room)).nonzero().flatten()
    if len(wrong):
        b = int(wrong[0])
        raise InvalidInput(
            f"lengths[{b}] is {int(lengths[b])}; every length lies between 0 and {room}, the rows given."
        )


def _check_boundaries(boundaries: Tensor, rows: int) -> None:
    if len(boundaries) < 1 or int(boundaries[0]) != 0 or int(boundaries[-1]) != rows:
        ends = (int(boundaries[0]), int(boundaries[-1])) if len(boundaries) else ()
        raise InvalidInput(f"cu_seqlens runs from 0 to the number of rows, {rows}; got ends {ends}.")
    if bool((boundaries.diff() < 0).any()):
        place = int((boundaries.diff() < 0).nonzero()[0]) + 1
        raise InvalidInput(f"cu_seqlens never decreases; it does at position {place}.")

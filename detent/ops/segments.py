"""From what a caller says (batch, lengths, packing, resets, states) to segments and where their states begin.

B  sequences     G  segments     r  heads     N  rows of the flat input
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.ops.tables import check_states

# -- Rows in pieces: batches, padding, packed sequences, resets and chunks are all lists of segments.

ROW, LENGTH, ROOM, SEQUENCE, TIME, LOCAL = range(6)


@lru_cache(maxsize=64)
def of_batch(batch: int, length: int) -> Tensor:
    """G 6: one segment per sequence of a full batch."""
    sequence = torch.arange(batch)
    row = sequence * length
    zero = torch.zeros_like(row)
    return torch.stack([row, torch.full_like(row, length), zero, sequence, zero, row], dim=1)


def of_lengths(lengths: Tensor, room: int) -> Tensor:
    """G 6: sequences padded to `room` rows, of which the first `lengths` are read."""
    lengths = lengths.long().cpu()
    sequence = torch.arange(len(lengths))
    zero = torch.zeros_like(sequence)
    return _placed(sequence * room, lengths, room - lengths, sequence, zero)


def of_packed(boundaries: Tensor) -> Tensor:
    """G 6: sequences back to back, sequence i in rows boundaries[i] .. boundaries[i + 1] - 1."""
    boundaries = boundaries.long().cpu()
    sequence = torch.arange(len(boundaries) - 1)
    zero = torch.zeros_like(sequence)
    return _placed(boundaries[:-1], boundaries.diff(), zero, sequence, zero)


def cut(segments: Tensor, resets: Tensor) -> tuple[Tensor, Tensor]:
    """Cut segments before every row that is a reset (N booleans).

    Returns the pieces (G' 6), and for each the segment it came from (G'); the first piece of a segment keeps its
    start unless its own first row is a reset.
    """
    resets = resets.reshape(-1).cpu()
    inside = resets & ~_marks(segments[:, ROW][segments[:, LENGTH] > 0], len(resets))
    parent_of_row = torch.full((len(resets),), -1, dtype=torch.long)
    parent_of_row[rows_of(segments)] = torch.arange(len(segments)).repeat_interleave(segments[:, LENGTH])
    cuts = torch.nonzero(inside & (parent_of_row >= 0)).flatten()
    parent = torch.cat([torch.arange(len(segments)), parent_of_row[cuts]])
    begin = torch.cat([segments[:, ROW], cuts])
    # empty segments share their row with a neighbour, so the parent decides first
    order = torch.argsort(begin + parent * (len(resets) + 1), stable=True)
    parent, begin = parent[order], begin[order]
    end = segments[parent, ROW] + segments[parent, LENGTH]
    final = torch.ones(len(parent), dtype=torch.bool)
    final[:-1] = parent[1:] != parent[:-1]
    stop = torch.where(final, end, torch.cat([begin[1:], begin[:1]]))
    room = torch.where(final, segments[parent, ROOM], 0)
    time = segments[parent, TIME] + begin - segments[parent, ROW]
    return _placed(begin, stop - begin, room, segments[parent, SEQUENCE], time), parent


def windows(segments: Tensor, chunk: int) -> Iterator[Tensor]:
    """The same segments, `chunk` rows of each at a time; chunk 0 means all at once."""
    longest = int(segments[:, LENGTH].max()) if len(segments) else 0
    if chunk <= 0 or longest <= chunk:
        yield segments
        return
    row, length, room, sequence, time, _ = segments.unbind(1)
    for begin in range(0, longest, chunk):
        here = (length - begin).clamp(0, chunk)
        ends_here = (length > begin) & (length <= begin + chunk) | ((begin == 0) & (length == 0))
        yield _placed(row + begin, here, torch.where(ends_here, room, 0), sequence, time + begin)


def rows_of(segments: Tensor) -> Tensor:
    """The row of every local row."""
    length = segments[:, LENGTH]
    shift = (segments[:, ROW] - segments[:, LOCAL]).repeat_interleave(length)
    return torch.arange(len(shift)) + shift


def steps_of(segments: Tensor) -> tuple[Tensor, Tensor]:
    """(sequence, step) of every local row: what names its noise."""
    length = segments[:, LENGTH]
    shift = (segments[:, TIME] - segments[:, LOCAL]).repeat_interleave(length)
    return segments[:, SEQUENCE].repeat_interleave(length), torch.arange(len(shift)) + shift


def _placed(row: Tensor, length: Tensor, room: Tensor, sequence: Tensor, time: Tensor) -> Tensor:
    local = torch.cat([length.new_zeros(1), length.cumsum(0)[:-1]]) if len(length) else length
    return torch.stack([row, length, room, sequence, time, local], dim=1).contiguous()


def _marks(places: Tensor, count: int) -> Tensor:
    marked = torch.zeros(count, dtype=torch.bool)
    marked[places] = True
    return marked


# -- Where the logits of a pass come from, and the noise that is added to them.


@dataclass(frozen=True, slots=True)
class Source:
    """Logits as an affine map of the rows, row by row; or of a few distinct rows that an index points to."""

    input: Tensor
    """N m, or R m with an index."""
    weight: Tensor
    """E m; entry k * d + j of a head scores its move from index k to index j."""
    bias: Tensor
    """E."""
    index: Tensor | None = None
    """N: which of the distinct rows each row is."""
    logits: Tensor | None = None
    """R E: with an index, the logits of the distinct rows, computed once."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Gumbel noise on logits / temperature, named by a seed."""

    seed: int
    temperature: float

    @property
    def word(self) -> int:
        """The seed as 64 unsigned bits."""
        return self.seed & ((1 << 64) - 1)


def refuse_infinite(row: int) -> None:
    """Raise if a pass met logits that are not numbers; `row` is where, or -1."""
    if row >= 0:
        raise InvalidInput(
            f"row {row} of the input gives logits that are NaN or infinite, and no arg max; "
            "look for NaN in the input or for a diverged projection."
        )


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

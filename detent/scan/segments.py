"""Rows in pieces: batches, padding, packed sequences, resets and chunks are all lists of segments.

    G  segments     N  rows of the flat input

A segment is a run of consecutive rows that one state travels through, six int64 each (see native/segments.hpp):
row, length, room, sequence, time, local.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

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

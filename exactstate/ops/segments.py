"""Segments: how batches, padding, packed sequences, resets and chunks are handed to kernels.

    B  sequences     G  segments     r  heads     N  rows of the flat input     S  the sum of the heads' indices

A segment is a run of consecutive input rows that one state travels through. Padding is a segment followed by rows that
hold its last state; a reset splits a segment; a chunk is a window of the next rows of every segment. A list of segments
is a G x 6 integer array on the CPU, whose columns are

    ROW       first row in the flat input and output
    LENGTH    number of rows that are read
    PADDING   number of rows behind them that hold the last state
    SEQUENCE  number of the sequence, and
    TIME      the step of it at which the segment begins: together with the seed they determine the noise
    LOCAL     first row in the buffers of the current call, where segments lie back to back
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.tables import check_states

ROW, LENGTH, PADDING, SEQUENCE, TIME, LOCAL = range(6)


@lru_cache(maxsize=64)
def batch_segments(batch: int, length: int) -> Tensor:
    """G 6: one segment per sequence of a full batch."""
    sequence = torch.arange(batch)
    row = sequence * length
    zero = torch.zeros_like(row)
    return torch.stack([row, torch.full_like(row, length), zero, sequence, zero, row], dim=1)


def padded_segments(lengths: Tensor, padded_length: int) -> Tensor:
    """G 6: sequences of `padded_length` rows each, of which the first `lengths` are read."""
    lengths = lengths.long().cpu()
    sequence = torch.arange(len(lengths))
    zero = torch.zeros_like(sequence)
    return _with_local(sequence * padded_length, lengths, padded_length - lengths, sequence, zero)


def masked_segments(mask: Tensor) -> Tensor:
    """G 6: sequences whose own steps are True in a mask (B L booleans), with padding before or behind them."""
    length = mask.sum(1).cpu()
    # an empty sequence begins with its row: all of it is padding that holds the start
    begin = torch.where(length > 0, (~mask).long().cumprod(1).sum(1).cpu(), 0)
    step = torch.arange(mask.shape[1])
    own = (step >= begin[:, None]) & (step < (begin + length)[:, None])
    if not torch.equal(own, mask.cpu()):
        b = int((own != mask.cpu()).any(1).nonzero()[0])
        raise InvalidInput(
            "lengths as a mask is True for the steps of a sequence, with padding before or behind them; "
            f"in row {b} there is padding between steps."
        )
    sequence = torch.arange(len(mask))
    row, zero = sequence * mask.shape[1] + begin, torch.zeros_like(sequence)
    return _with_local(row, length, mask.shape[1] - begin - length, sequence, zero)


def packed_segments(cu_seqlens: Tensor) -> Tensor:
    """G 6: sequences back to back, sequence i in rows cu_seqlens[i] .. cu_seqlens[i + 1] - 1."""
    cu_seqlens = cu_seqlens.long().cpu()
    sequence = torch.arange(len(cu_seqlens) - 1)
    zero = torch.zeros_like(sequence)
    return _with_local(cu_seqlens[:-1], cu_seqlens.diff(), zero, sequence, zero)


def split_at_resets(segments: Tensor, resets: Tensor) -> tuple[Tensor, Tensor]:
    """Split segments before every row that is a reset (N booleans).

    Returns the pieces (G' 6), and for each the segment it came from (G'); the first piece of a segment keeps its
    start unless its own first row is a reset.
    """
    resets = resets.reshape(-1).cpu()
    first_rows = torch.zeros(len(resets), dtype=torch.bool)
    first_rows[segments[:, ROW][segments[:, LENGTH] > 0]] = True
    parent_of_row = torch.full((len(resets),), -1, dtype=torch.long)
    parent_of_row[rows_of(segments)] = torch.arange(len(segments)).repeat_interleave(segments[:, LENGTH])
    cuts = torch.nonzero(resets & ~first_rows & (parent_of_row >= 0)).flatten()
    parent = torch.cat([torch.arange(len(segments)), parent_of_row[cuts]])
    begin = torch.cat([segments[:, ROW], cuts])
    # empty segments share their row with a neighbour, so the parent decides first
    order = torch.argsort(begin + parent * (len(resets) + 1), stable=True)
    parent, begin = parent[order], begin[order]
    end = segments[parent, ROW] + segments[parent, LENGTH]
    is_last = torch.ones(len(parent), dtype=torch.bool)
    is_last[:-1] = parent[1:] != parent[:-1]
    stop = torch.where(is_last, end, torch.cat([begin[1:], begin[:1]]))
    padding = torch.where(is_last, segments[parent, PADDING], 0)
    time = segments[parent, TIME] + begin - segments[parent, ROW]
    return _with_local(begin, stop - begin, padding, segments[parent, SEQUENCE], time), parent


def windows(segments: Tensor, chunk: int) -> Iterator[Tensor]:
    """The same segments, `chunk` rows of each at a time; chunk 0 means all at once."""
    longest = int(segments[:, LENGTH].max()) if chunk > 0 and len(segments) else 0
    if chunk <= 0 or longest <= chunk:
        yield segments
        return
    row, length, padding, sequence, time, _ = segments.unbind(1)
    for begin in range(0, longest, chunk):
        here = (length - begin).clamp(0, chunk)
        ends_here = (length > begin) & (length <= begin + chunk) | ((begin == 0) & (length == 0))
        yield _with_local(row + begin, here, torch.where(ends_here, padding, 0), sequence, time + begin)


def rows_of(segments: Tensor) -> Tensor:
    """N: the input row of every local row."""
    length = segments[:, LENGTH]
    shift = (segments[:, ROW] - segments[:, LOCAL]).repeat_interleave(length)
    return torch.arange(len(shift)) + shift


def local_rows(segments: Tensor) -> int:
    """N: the rows that all segments read."""
    if not segments.shape[0]:
        return 0
    last = segments[-1].tolist()
    return int(last[LOCAL] + last[LENGTH])


def steps_of(segments: Tensor) -> tuple[Tensor, Tensor]:
    """(sequence, step) of every local row, which determine its noise."""
    length = segments[:, LENGTH]
    shift = (segments[:, TIME] - segments[:, LOCAL]).repeat_interleave(length)
    return segments[:, SEQUENCE].repeat_interleave(length), torch.arange(len(shift)) + shift


def _with_local(row: Tensor, length: Tensor, padding: Tensor, sequence: Tensor, time: Tensor) -> Tensor:
    local = torch.cat([length.new_zeros(1), length.cumsum(0)[:-1]]) if len(length) else length
    return torch.stack([row, length, padding, sequence, time, local], dim=1).contiguous()


class Splits(NamedTuple):
    """How resets have split sequences into segments."""

    first: Tensor
    """B: the segment that begins in the sequence's own start state."""
    last: Tensor
    """B: the segment whose last state is the sequence's."""
    uses_start: Tensor
    """B booleans: false where a reset at the first step discards the start state."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Segments, the state that each one begins in, and how resets have split them, if there are any."""

    segments: Tensor
    """G 6."""
    starts: Tensor
    """G r."""
    splits: Splits | None = None
    leading: tuple[Tensor, Tensor] | None = None
    """(rows before the first steps of sequences, which hold their start; the sequence of each), if there are any."""

    def started(self, start: Tensor) -> Layout:
        """The same segments for sequences that start in other states (B r)."""
        if self.splits is None:
            return replace(self, starts=start.long().cpu())
        starts, first = self.starts.clone(), self.splits.first
        starts[first] = torch.where(self.splits.uses_start[:, None], start.long().cpu(), starts[first])
        return replace(self, starts=starts)

    @property
    def has_reset(self) -> Tensor:
        """B booleans: whether the last state of a sequence does not depend on its start."""
        if self.splits is None:
            return torch.zeros(len(self.segments), dtype=torch.bool)
        return (self.splits.first != self.splits.last) | ~self.splits.uses_start

    def final_states(self, lasts: Tensor) -> Tensor:
        """G ... -> B ...: from the last states of segments to those of sequences; never an alias of `lasts`."""
        return lasts.clone() if self.splits is None else lasts[self.splits.last.to(lasts.device)]

    def final_states_backward(self, grad: Tensor) -> Tensor:
        """B ... -> G ...: the adjoint of `final_states`."""
        if self.splits is None:
            return grad
        lasts = grad.new_zeros(len(self.segments), *grad.shape[1:])
        lasts[self.splits.last.to(grad.device)] = grad
        return lasts

    def starts_backward(self, grad: Tensor) -> Tensor:
        """G S -> B S: from gradients before segments to those of the states that sequences start in."""
        if self.splits is None:
            return grad.clone()
        uses_start = self.splits.uses_start.to(grad.device)
        return grad[self.splits.first.to(grad.device)] * uses_start[:, None]

    @property
    def padding_rows(self) -> tuple[Tensor, Tensor]:
        """(rows that hold a state, the segment whose state they hold)."""
        padding = self.segments[:, PADDING]
        if not bool(padding.any()):
            return padding[:0], padding[:0]
        owner = torch.arange(len(self.segments)).repeat_interleave(padding)
        begin = (self.segments[:, ROW] + self.segments[:, LENGTH]) - (padding.cumsum(0) - padding)
        return begin.repeat_interleave(padding) + torch.arange(len(owner)), owner


def make_layout(
    shape: Sequence[int], start: Tensor, heads: Sequence[int], lengths: Tensor | None, cu_seqlens: Tensor | None,
    resets: Tensor | None, initial_state: Sequence[int], *, checked: bool = False,
    stretch: tuple[int, int] | None = None,
) -> Layout:  # fmt: skip
    """The segments of an input of B L rows, or of N rows packed between `cu_seqlens`.

    `start` (B r) is where sequences begin, `initial_state` (r) where they continue after a reset. `checked` means that
    the start states are known to be in range. `stretch` is for sequences that are split over ranks: (rows of earlier
    ranks, rows of all ranks) of a sequence, or of all packed ones; `lengths` and `cu_seqlens` are then of the whole.
    """
    before, total = stretch or (0, shape[1 if cu_seqlens is None else 0])
    if cu_seqlens is not None:
        _check_cu_seqlens(cu_seqlens, total)
        segments = packed_segments((cu_seqlens - before).clamp(0, shape[0]) if stretch else cu_seqlens)
    elif lengths is not None:
        if lengths.dtype == torch.bool:
            segments = masked_segments(lengths)
        else:
            _check_lengths(lengths, total)
            segments = padded_segments((lengths - before).clamp(0, shape[1]) if stretch else lengths, shape[1])
    else:
        segments = batch_segments(shape[0], shape[1])
    if before:
        segments = segments.clone()
        segments[:, TIME] += before if cu_seqlens is None else (before - cu_seqlens[:-1].long().cpu()).clamp(min=0)
    if not checked:
        check_states(start, heads, len(segments))
    start = start.long().cpu()
    leading = _leading_rows(segments, shape[1]) if lengths is not None and lengths.dtype == torch.bool else None
    if resets is None:
        return Layout(segments, start, None, leading)
    pieces, parent = split_at_resets(segments, resets)
    is_first = torch.ones(len(pieces), dtype=torch.bool)
    is_first[1:] = parent[1:] != parent[:-1]
    first = is_first.nonzero().flatten()
    last = torch.cat([first[1:] - 1, torch.tensor([len(pieces) - 1])])[: len(segments)]
    flat = resets.reshape(-1).cpu()
    begins = segments[:, ROW].clamp(max=max(len(flat) - 1, 0))
    uses_start = ~(flat[begins] & (segments[:, LENGTH] > 0)) if len(flat) else torch.ones(len(segments)).bool()
    starts = torch.tensor(list(initial_state)).expand(len(pieces), -1).clone()
    starts[first] = torch.where(uses_start[:, None], start, starts[first])
    return Layout(pieces, starts, Splits(first, last, uses_start), leading)


def _leading_rows(segments: Tensor, length: int) -> tuple[Tensor, Tensor] | None:
    count = segments[:, ROW] - segments[:, SEQUENCE] * length
    owner = torch.arange(len(segments)).repeat_interleave(count)
    shift = segments[:, SEQUENCE] * length - (count.cumsum(0) - count)
    return (torch.arange(len(owner)) + shift[owner], owner) if len(owner) else None


def _check_lengths(lengths: Tensor, padded_length: int) -> None:
    wrong = ((lengths < 0) | (lengths > padded_length)).nonzero().flatten()
    if len(wrong):
        b = int(wrong[0])
        raise InvalidInput(
            f"lengths[{b}] is {int(lengths[b])}; every length must be between 0 and {padded_length}, the padded length."
        )


def _check_cu_seqlens(cu_seqlens: Tensor, rows: int) -> None:
    if len(cu_seqlens) < 1 or int(cu_seqlens[0]) != 0 or int(cu_seqlens[-1]) != rows:
        ends = (int(cu_seqlens[0]), int(cu_seqlens[-1])) if len(cu_seqlens) else ()
        raise InvalidInput(f"cu_seqlens must run from 0 to the number of rows, {rows}; got ends {ends}.")
    if bool((cu_seqlens.diff() < 0).any()):
        place = int((cu_seqlens.diff() < 0).nonzero()[0]) + 1
        raise InvalidInput(f"cu_seqlens must not decrease; it does at position {place}.")


@dataclass(frozen=True, slots=True)
class LogitSource:
    """What the logits of a pass are computed from: the rows themselves, or a few distinct rows and an index."""

    input: Tensor
    """N m, or R m with an index."""
    weight: Tensor
    """E m; entry k * d + j of a head scores its move from index k to index j."""
    bias: Tensor
    """E."""
    index: Tensor | None = None
    """N: which of the distinct rows each row is."""
    logits: Tensor | None = None
    """R E: with an index, the logits of the distinct rows, for passes that need them."""
    repeats: bool = False
    """Whether the distinct rows were found in an input that has a gradient row by row."""

    @property
    def distinct(self) -> LogitSource:
        """The distinct rows as an input of their own."""
        return LogitSource(self.input, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Noise:
    """Gumbel noise added to logits / temperature; the seed determines all of it."""

    seed: int
    temperature: float

    @property
    def bits(self) -> int:
        """The seed as 64 unsigned bits."""
        return self.seed & ((1 << 64) - 1)


def refuse_infinite(row: int) -> None:
    """Raise InvalidInput if `row` is a row with logits that are not finite; -1 means that there is none."""
    if row >= 0:
        raise InvalidInput(
            f"row {row} of the input gives NaN or infinite logits, which have no arg max; "
            "check the input for NaN and the weights for divergence."
        )

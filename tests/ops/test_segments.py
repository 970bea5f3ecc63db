"""Segments: every row belongs where it should, whatever is cut how."""

from __future__ import annotations

import pytest
import torch

from exactstate.errors import InvalidInput
from exactstate.ops.segments import (
    LENGTH,
    LOCAL,
    PADDING,
    ROW,
    TIME,
    batch_segments,
    make_layout,
    packed_segments,
    padded_segments,
    rows_of,
    split_at_resets,
    steps_of,
    windows,
)


def test_a_batch_is_one_segment_per_sequence():
    segments = batch_segments(3, 4)
    assert segments[:, ROW].tolist() == [0, 4, 8]
    assert rows_of(segments).tolist() == list(range(12))
    sequence, step = steps_of(segments)
    assert sequence.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert step.tolist() == [0, 1, 2, 3] * 3


def test_padding_is_room():
    segments = padded_segments(torch.tensor([2, 0, 3]), 3)
    assert segments[:, LENGTH].tolist() == [2, 0, 3]
    assert segments[:, PADDING].tolist() == [1, 3, 0]
    assert segments[:, LOCAL].tolist() == [0, 2, 2]
    assert rows_of(segments).tolist() == [0, 1, 6, 7, 8]


def test_packed_sequences_lie_back_to_back():
    segments = packed_segments(torch.tensor([0, 2, 2, 5]))
    assert rows_of(segments).tolist() == [0, 1, 2, 3, 4]
    assert steps_of(segments)[1].tolist() == [0, 1, 0, 1, 2]


def test_resets_cut_and_empty_segments_survive():
    segments = padded_segments(torch.tensor([4, 0, 2]), 4)
    resets = torch.zeros(3, 4, dtype=torch.bool)
    resets[0, 0] = resets[0, 2] = resets[2, 1] = True
    resets[1, 1] = resets[2, 3] = True  # in the padding: nothing is read there
    pieces, parent = split_at_resets(segments, resets)
    assert parent.tolist() == [0, 0, 1, 2, 2]
    assert pieces[:, ROW].tolist() == [0, 2, 4, 8, 9]
    assert pieces[:, LENGTH].tolist() == [2, 2, 0, 1, 1]
    assert pieces[:, PADDING].tolist() == [0, 0, 4, 0, 2]
    assert pieces[:, TIME].tolist() == [0, 2, 0, 0, 1]
    assert torch.equal(rows_of(pieces), rows_of(segments))


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 100])
def test_windows_read_every_row_once_and_in_order(chunk):
    segments = padded_segments(torch.tensor([5, 0, 3, 1]), 6)
    parts = list(windows(segments, chunk))
    seen = [[] for _ in range(24)]
    padding = torch.zeros(4, dtype=torch.int64)
    for number, part in enumerate(parts):
        padding += part[:, PADDING]
        for row, step in zip(rows_of(part).tolist(), steps_of(part)[1].tolist(), strict=True):
            seen[row].append((number, step))
    assert [len(visits) for visits in seen] == [1] * 5 + [0] * 7 + [1] * 3 + [0] * 3 + [1] + [0] * 5
    assert padding.tolist() == segments[:, PADDING].tolist()
    assert [seen[row][0][1] for row in range(5)] == [0, 1, 2, 3, 4]


def test_make_layout_splits_at_resets():
    resets = torch.tensor([[False, True, False], [True, False, False]])
    start = torch.tensor([[1], [1]])
    layout = make_layout((2, 3), start, (3,), None, None, resets, (2,))
    assert layout.starts.flatten().tolist() == [1, 2, 2]
    assert layout.splits is not None
    assert layout.splits.first.tolist() == [0, 2]
    assert layout.splits.last.tolist() == [1, 2]
    assert layout.splits.uses_start.tolist() == [True, False]


def test_padding_rows_name_their_segment():
    layout = make_layout((2, 3), torch.tensor([[0], [0]]), (3,), torch.tensor([1, 3]), None, None, (0,))
    rows, owner = layout.padding_rows
    assert rows.tolist() == [1, 2]
    assert owner.tolist() == [0, 0]


def test_make_layout_refuses_states_out_of_range():
    with pytest.raises(InvalidInput, match="that head has 3 indices"):
        make_layout((1, 1), torch.tensor([[3]]), (3,), None, None, None, (0,))

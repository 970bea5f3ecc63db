"""A screen never holds back a label that is possible, and holds back nearly all others."""

from __future__ import annotations

import torch
from torch import nn

from detent.train.chunked_cross_entropy import Screen


def low_rank(generator, *, wide=1.0):
    """A read-out of 1,300 labels in 5 directions of 32, and a little in all others."""
    readout = nn.Linear(32, 1300).double().requires_grad_(False)
    main, across = torch.randn(1300, 5, generator=generator), torch.randn(5, 32, generator=generator)
    readout.weight.copy_(main @ across + wide * 1e-3 * torch.randn(1300, 32, generator=generator))
    readout.bias.copy_(torch.randn(1300, generator=generator))
    return readout


def test_a_screen_lets_every_possible_label_pass_and_few_others():
    """Wanted: all logits, in full."""
    generator = torch.Generator().manual_seed(1)
    readout, features = low_rank(generator), torch.randn(200, 32, generator=generator, dtype=torch.float64)
    screen = Screen.of(readout, 7.0)
    assert screen is not None
    assert screen.directions.shape == (32, 5)
    row, column = screen.possible(features, 2.0)
    assert torch.equal(row, row.sort().values)
    assert int(column.max()) < 1300
    passed = torch.zeros(200, 1300, dtype=torch.bool)
    passed[row, column] = True
    logits = readout(features)
    wanted = logits > logits.max(1, keepdim=True).values - 2.0
    assert bool(passed[wanted].all())
    assert int(passed.sum()) < 2 * int(wanted.sum())

    few = Screen(screen.directions[:, 1:], screen.weight[:, 1:], screen.bias, screen.lacking)
    passed[:] = False
    passed[few.possible(features, 2.0)] = True
    assert not bool(passed[wanted].all()), "a direction less, and nothing noticed"


def test_there_is_no_screen_where_labels_differ_in_every_direction():
    assert Screen.of(low_rank(torch.Generator().manual_seed(1), wide=1000.0), 7.0) is None

"""The chunked cross-entropy is PyTorch's, with its gradient, in float64; a screen passes every label that is possible.

Tolerances as in test_fast_gradient.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from exactstate.train.chunked_cross_entropy import (
    ChunkedCrossEntropy,
    DenseProbs,
    LowRankScreen,
    SparseProbs,
    impossible_below,
    predict,
)
from tests.train.test_fast_gradient import CLOSE, gradients


def low_rank(generator, *, wide=1.0):
    """A read-out of 1,300 labels in 5 directions of 32, and a little in all others."""
    readout = nn.Linear(32, 1300).double().requires_grad_(False)
    main, across = torch.randn(1300, 5, generator=generator), torch.randn(5, 32, generator=generator)
    readout.weight.copy_(main @ across + wide * 1e-3 * torch.randn(1300, 32, generator=generator))
    readout.bias.copy_(torch.randn(1300, generator=generator))
    return readout


def test_low_rank_screen_passes_every_possible_label_and_few_others():
    """Wanted: all logits, in full."""
    generator = torch.Generator().manual_seed(1)
    readout, features = low_rank(generator), torch.randn(200, 32, generator=generator, dtype=torch.float64)
    screen = LowRankScreen.of(readout, 7.0)
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

    few = LowRankScreen(screen.directions[:, 1:], screen.weight[:, 1:], screen.bias, screen.error)
    passed[:] = False
    passed[few.possible(features, 2.0)] = True
    assert not bool(passed[wanted].all()), "a direction less, and nothing noticed"


def test_low_rank_screen_is_none_where_labels_differ_in_every_direction():
    assert LowRankScreen.of(low_rank(torch.Generator().manual_seed(1), wide=1000.0), 7.0) is None


@pytest.mark.parametrize(("sharpness", "kind"), [(1.0, DenseProbs), (500.0, SparseProbs)], ids=["dense", "sparse"])
def test_chunked_cross_entropy_is_that_of_pytorch(monkeypatch, sharpness, kind):
    """In chunks, some of them recomputed; wanted: PyTorch's own function and its gradient."""
    monkeypatch.setattr("exactstate.train.chunked_cross_entropy.CHUNK", 700)
    monkeypatch.setattr("exactstate.train.chunked_cross_entropy.MAX_KEPT", 1500)
    generator = torch.Generator().manual_seed(0)
    readout = nn.Linear(16, 100).double()
    with torch.no_grad():
        readout.weight.copy_(sharpness * torch.randn(100, 16, generator=generator) / 4)
        readout.bias.zero_()
    compare_with_cross_entropy(readout, kind, generator)


def test_chunked_cross_entropy_with_a_screen_is_that_of_pytorch(monkeypatch):
    monkeypatch.setattr("exactstate.train.chunked_cross_entropy.CHUNK", 9_000)
    monkeypatch.setattr("exactstate.train.chunked_cross_entropy.LowRankScreen.of", screens := Counted(LowRankScreen.of))
    generator = torch.Generator().manual_seed(1)
    readout = low_rank(generator, wide=0.01)
    readout.weight.mul_(100.0)
    compare_with_cross_entropy(readout.requires_grad_(), SparseProbs, generator)
    assert [screen is not None for screen in screens.gave] == [True]


class Counted:
    """A function, and what it gave."""

    def __init__(self, function):
        self.function, self.gave = function, []

    def __call__(self, *given):
        self.gave.append(self.function(*given))
        return self.gave[-1]


def compare_with_cross_entropy(readout, kind, generator):
    labels, width = readout.weight.shape
    features = [
        torch.randn(rows, width, generator=generator, dtype=torch.float64, requires_grad=True) for rows in (30, 1)
    ]
    row = torch.tensor([*range(31), 4, 4, 30, 12])  # some rows have several right labels
    label = torch.randint(0, labels, (len(row),), generator=generator)
    with torch.no_grad():
        label[:10] = readout(features[0][:10]).argmax(-1)
    weights = torch.rand(len(row), generator=generator, dtype=torch.float64)
    weights[5:9] = 0
    entropy = ChunkedCrossEntropy(readout)
    predicted = torch.cat([entropy.add(part.detach()) for part in features])
    losses, of_features = entropy.backward(row, label, weights)
    quickly = gradients(readout)
    assert {type(probs) for _, probs in entropy.chunks} == {kind}

    readout.zero_grad(set_to_none=True)
    every = torch.cat(features).detach()[row].requires_grad_()
    logits = readout(every)
    terms = nn.functional.cross_entropy(logits, label, reduction="none")
    (terms * weights).sum().backward()
    torch.testing.assert_close(losses, terms.detach(), **CLOSE)
    assert torch.equal(predicted[row], logits.argmax(-1))
    assert torch.equal(predict(torch.cat(features).detach(), readout.requires_grad_(False)), predicted)
    torch.testing.assert_close(of_features, every.grad, **CLOSE)
    for name, gradient in gradients(readout).items():
        torch.testing.assert_close(quickly[name], gradient, **CLOSE)


def test_impossible_below_is_where_float32_cannot_tell():
    """Float32, 7920 labels: as many as there are, just below the bound, do not move a probability of 1."""
    below = np.float32(np.exp(-impossible_below(7920, torch.float32)))
    assert np.float32(1) + np.float32(7919 * below) == np.float32(1)
    assert np.float32(1) + np.float32(7919 * below * np.exp(1.0)) > np.float32(1)

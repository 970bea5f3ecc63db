"""The chunked cross-entropy is PyTorch's, with its gradient, in float64.

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
    SparseProbs,
    impossible_below,
    predict,
)
from tests.train.test_fast_gradient import CLOSE, gradients


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

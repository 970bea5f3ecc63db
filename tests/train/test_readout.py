"""The read-out of many rows gives PyTorch's cross-entropy and its gradient, in float64; tolerances as in test_quick."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from detent.train.chunked_cross_entropy import All, Listed, Screen, Surprise, impossible, likeliest_of
from tests.train.test_quick import CLOSE, gradients
from tests.train.test_screening import low_rank


@pytest.mark.parametrize(("sharpness", "kind"), [(1.0, All), (500.0, Listed)], ids=["all", "listed"])
def test_the_surprise_of_many_labels_is_the_cross_entropy(monkeypatch, sharpness, kind):
    """In strips, some of them computed again; wanted: PyTorch's own function and its gradient."""
    monkeypatch.setattr("detent.train.chunked_cross_entropy.STRIP", 700)
    monkeypatch.setattr("detent.train.chunked_cross_entropy.ROOM", 1500)
    generator = torch.Generator().manual_seed(0)
    readout = nn.Linear(16, 100).double()
    with torch.no_grad():
        readout.weight.copy_(sharpness * torch.randn(100, 16, generator=generator) / 4)
        readout.bias.zero_()
    compare_with_cross_entropy(readout, kind, generator)


def test_the_surprise_behind_a_screen_is_the_cross_entropy(monkeypatch):
    monkeypatch.setattr("detent.train.chunked_cross_entropy.STRIP", 9_000)
    monkeypatch.setattr("detent.train.chunked_cross_entropy.Screen.of", screens := Counted(Screen.of))
    generator = torch.Generator().manual_seed(1)
    readout = low_rank(generator, wide=0.01)
    readout.weight.mul_(100.0)
    compare_with_cross_entropy(readout.requires_grad_(), Listed, generator)
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
    labels = [torch.randint(0, labels, (len(part),), generator=generator) for part in features]
    with torch.no_grad():
        labels[0][:10] = readout(features[0][:10]).argmax(-1)
    weights = torch.rand(31, generator=generator, dtype=torch.float64)
    weights[3:9] = 0
    entropy = Surprise(readout)
    found = [entropy.add(part.detach(), label) for part, label in zip(features, labels, strict=True)]
    right, surprise = (torch.cat(part) for part in zip(*found, strict=True))
    of_features, quickly = entropy.backward(weights), gradients(readout)
    assert {type(strip[2]) for strip in entropy.strips} == {kind}

    readout.zero_grad(set_to_none=True)
    logits = readout(torch.cat(features))
    terms = nn.functional.cross_entropy(logits, torch.cat(labels), reduction="none")
    (terms * weights).sum().backward()
    torch.testing.assert_close(surprise, terms.detach(), **CLOSE)
    assert torch.equal(right, logits.argmax(-1) == torch.cat(labels))
    assert torch.equal(likeliest_of(torch.cat(features).detach(), readout.requires_grad_(False)), logits.argmax(-1))
    torch.testing.assert_close(of_features, torch.cat([part.grad for part in features]), **CLOSE)
    for name, gradient in gradients(readout).items():
        torch.testing.assert_close(quickly[name], gradient, **CLOSE)


def test_labels_count_as_impossible_where_the_type_cannot_tell():
    """Float32, 7920 labels: as many as there are, just below the bound, do not move a probability of 1."""
    below = np.float32(np.exp(-impossible(7920, torch.float32)))
    assert np.float32(1) + np.float32(7919 * below) == np.float32(1)
    assert np.float32(1) + np.float32(7919 * below * np.exp(1.0)) > np.float32(1)

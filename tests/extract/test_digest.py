"""The digest of weights: equal for equal weights, different after any change."""

from __future__ import annotations

import hashlib
import struct
from copy import deepcopy

import pytest
import torch
from torch import nn

from detent.extract.extract import digest


def model() -> nn.Module:
    linear = nn.Linear(2, 3)
    with torch.no_grad():
        linear.weight.copy_(torch.arange(6.0).view(3, 2))
        linear.bias.copy_(torch.tensor([0.5, -0.0, 2.0]))
    return nn.Sequential(linear)


def test_it_is_the_digest_that_the_docstring_describes() -> None:
    text = b"0.bias float32 3\n" + struct.pack("<3f", 0.5, -0.0, 2.0) + b"\n"
    text += b"0.weight float32 3x2\n" + struct.pack("<6f", *range(6)) + b"\n"
    assert digest(model()) == hashlib.sha256(text).hexdigest()


def test_it_does_not_depend_on_mode_or_layout() -> None:
    other = deepcopy(model()).eval()
    other[0].weight = nn.Parameter(other[0].weight.detach().T.contiguous().T)
    assert not other[0].weight.is_contiguous()
    assert digest(other) == digest(model())


@pytest.mark.parametrize("name", ["0.weight", "0.bias"])
@torch.no_grad()
def test_it_notices_the_smallest_change(name: str) -> None:
    other = model()
    flat = dict(other.named_parameters())[name].view(-1)
    flat[1] = torch.nextafter(flat[1], torch.tensor(9.0))
    assert digest(other) != digest(model())


@torch.no_grad()
def test_it_tells_zeros_shapes_types_and_names_apart() -> None:
    signed = model()
    signed[0].bias[1] = 0.0
    reshaped = model()
    reshaped[0].weight = nn.Parameter(reshaped[0].weight.view(2, 3))
    found = {digest(one) for one in (model(), signed, reshaped, model().double(), nn.ModuleDict({"a": model()}))}
    assert len(found) == 5

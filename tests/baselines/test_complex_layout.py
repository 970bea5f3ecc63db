"""Complex numbers as torch has them and as two arrays: the same states and gradients of an AUSSM."""

from __future__ import annotations

import pytest
import torch

from exactstate.baselines import AUSSM, aussm
from exactstate.baselines.complex_layout import NativeComplex, SplitComplex, complex_layout

ROUNDING = 1e-12
"""Of the largest entry: two orders of the same few hundred operations in float64."""


def outcome(layout: NativeComplex, monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    monkeypatch.setattr(aussm, "complex_layout", lambda _: layout)
    generator = torch.Generator().manual_seed(3)
    layer = AUSSM(6, 5, 3, generator=generator).double()
    x = torch.randn(4, 37, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    state = torch.randn(4, 5, 3, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    resets = torch.rand(4, 37, generator=generator) < 0.1
    lengths = torch.tensor([37, 36, 1, 0])
    y, last = layer(x, state, lengths=lengths, resets=resets)
    (y.square().sum() + last.sin().sum()).backward()
    grown = [part.grad for part in (x, state, *layer.parameters())]
    assert all(part is not None for part in grown)
    return [y.detach(), last.detach(), *(part for part in grown if part is not None)]


def test_both_planes_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for whole, halves in zip(outcome(NativeComplex(), monkeypatch), outcome(SplitComplex(), monkeypatch), strict=True):
        assert float((whole - halves).abs().max()) <= ROUNDING * float(whole.abs().max())


def test_a_wrong_conjugate_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(NativeComplex):
        def conjugate_(self, x: torch.Tensor) -> torch.Tensor:
            return x

    right, wrong = outcome(SplitComplex(), monkeypatch), outcome(Wrong(), monkeypatch)
    assert any(float((one - other).abs().max()) > 1e-3 for one, other in zip(right, wrong, strict=True))


def test_the_format_decides() -> None:
    chosen = {dtype: type(complex_layout(torch.empty(0, dtype=dtype))) for dtype in (torch.float32, torch.bfloat16)}
    assert chosen == {torch.float32: NativeComplex, torch.bfloat16: SplitComplex}

"""Rows whose bits do not depend on their company."""

from __future__ import annotations

import pytest
import torch

from detent.ops import available
from detent.ops.ordered import ordered_linear


@pytest.mark.parametrize("backend", [name for name in available() if name != "tree"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_is_the_same_alone(backend: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(130, 67, dtype=dtype, generator=generator)
    weight, bias = (torch.randn(*shape, dtype=dtype, generator=generator) for shape in ((33, 67), (33,)))
    together = ordered_linear(rows, weight, bias, backend)
    for count in (1, 2, 16, 17, 129):
        assert torch.equal(ordered_linear(rows[:count], weight, bias, backend), together[:count])
    assert torch.allclose(together, torch.nn.functional.linear(rows, weight, bias), atol=1e-4)


@pytest.mark.parametrize("backend", available())
def test_gradients_by_differences(backend: str) -> None:
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((5, 3), (2, 3), (2,))]
    given = [x.requires_grad_() for x in given]
    assert torch.autograd.gradcheck(lambda *x: ordered_linear(*x, backend), given)
    torch.library.opcheck(ordered_linear, (*given, backend))

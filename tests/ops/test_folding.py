"""Projected value vectors, and what every index would have gained."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

from detent.ops import available
from detent.ops.interface import stages
from detent.ops.nfsm_op import fold, folded
from detent.ops.segments import of_lengths, rows_of, windows

HEADS = (4, 1, 3)


def given(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(8, 5, generator=generator, dtype=dtype), torch.randn(7, 15, generator=generator, dtype=dtype)


@pytest.mark.parametrize("backend", available())
def test_each_head_is_projected_by_its_share(backend: str) -> None:
    values, projection = given()
    concatenated = torch.block_diag(*values.split(HEADS))  # S x (r v): an index's value stands in its head's place
    assert torch.allclose(folded(values, projection, HEADS, backend), concatenated @ projection.T, atol=1e-12)


def test_compiled_and_obvious_are_equal_to_the_last_bit() -> None:
    values, projection = given(torch.float32)
    assert torch.equal(folded(values, projection, HEADS, "cpu"), folded(values, projection, HEADS, "reference"))


@pytest.mark.parametrize("backend", available())
def test_gradients_by_differences(backend: str) -> None:
    values, projection = (part.requires_grad_() for part in given())
    assert torch.autograd.gradcheck(lambda *both: folded(*both, HEADS, backend), (values, projection))
    functional = torch.func.grad(lambda part: folded(part, projection, HEADS, backend).square().sum())(values)
    folded(values, projection, HEADS, backend).square().sum().backward()
    assert torch.equal(functional, values.grad)


def test_the_operator_keeps_the_rules() -> None:
    values, projection = (part.requires_grad_() for part in given())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(fold, (values, projection, list(HEADS), "cpu"))


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("lengths", [[9, 4, 0, 7], [0, 0], [40, 33, 1]])
def test_gains_of_the_rows_that_are_read(backend: str, lengths: list[int]) -> None:
    generator = torch.Generator().manual_seed(1)
    segments = of_lengths(torch.tensor(lengths), 40)
    gradient = torch.randn(40 * len(lengths), 7, generator=generator, dtype=torch.float64)
    vectors = torch.randn(8, 7, generator=generator, dtype=torch.float64)
    for window in windows(segments, 16):
        wanted = torch.einsum("nm,sm->ns", gradient[rows_of(window)], vectors)
        assert torch.allclose(stages(backend).gains(gradient, vectors, window), wanted, atol=1e-12)

"""The diagonal scan against its loop, against closed forms and against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.affine import diagonal_loop, diagonal_scan
from tests.ops.affine.close import ROUNDING, distance, gradients

LENGTHS = (1, 3, 16, 17, 64, 257, 1000)
NUMBERS = ("real", "complex", "pairs")


def draw(numbers: str, B: int, L: int, F: int = 5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients with moduli around 0.9, drives and a start."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.complex128 if numbers == "complex" else torch.float64
    two = (2,) if numbers == "pairs" else ()
    a, b = (torch.randn(B, L, F, *two, dtype=dtype, generator=generator) for _ in range(2))
    h0 = torch.randn(B, F, *two, dtype=dtype, generator=generator)
    return (0.9 * a).requires_grad_(), b.requires_grad_(), h0.requires_grad_()


@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_scan_is_the_loop(numbers: str, L: int) -> None:
    given = draw(numbers, 3, L)
    pairs = numbers == "pairs"
    scanned, looped = diagonal_scan(*given, pairs=pairs), diagonal_loop(*given, pairs=pairs)
    assert distance(scanned, looped) < ROUNDING
    for found, wanted in zip(gradients([scanned], given), gradients([looped], given), strict=True):
        assert distance(found, wanted) < ROUNDING


@pytest.mark.parametrize("L", [1, 40, 300])
def test_the_comparison_barks(L: int) -> None:
    a, b, h0 = draw("real", 2, L)
    wrong = a.detach().clone()
    wrong[1, L - 1, 3] += 1e-6
    assert distance(diagonal_scan(wrong, b, h0), diagonal_loop(a, b, h0)) > ROUNDING


def test_pairs_are_complex_numbers() -> None:
    a, b, h0 = draw("complex", 2, 50)
    paired = diagonal_scan(*(torch.view_as_real(x) for x in (a, b, h0)), pairs=True)
    assert distance(torch.view_as_complex(paired.contiguous()), diagonal_scan(a, b, h0)) < ROUNDING


def test_a_geometric_series() -> None:
    ratio, L = 0.75, 500
    h = diagonal_scan(
        torch.full((1, L), ratio, dtype=torch.float64), torch.ones(1, L).double(), torch.zeros(1).double()
    )
    wanted = (1 - ratio ** torch.arange(1, L + 1, dtype=torch.float64)) / (1 - ratio)
    assert distance(h[0], wanted) < ROUNDING


@pytest.mark.parametrize("L", [1, 18])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_gradients_by_differences(numbers: str, L: int) -> None:
    pairs = numbers == "pairs"
    assert torch.autograd.gradcheck(lambda a, b, h0: diagonal_scan(a, b, h0, pairs=pairs), draw(numbers, 1, L, F=2))


@pytest.mark.parametrize("shape", [(0, 7, 3), (2, 0, 3), (2, 7, 0)])
def test_nothing_to_scan(shape: tuple[int, ...]) -> None:
    a = torch.ones(shape)
    for run in (diagonal_scan, diagonal_loop):
        assert run(a, a, torch.zeros(shape[0], shape[2])).shape == shape


def test_more_and_fewer_dimensions() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 40, 3, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    h0 = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator)
    assert distance(diagonal_scan(a, b, h0), diagonal_loop(a, b, h0)) < ROUNDING
    assert (
        distance(diagonal_scan(a[..., 0, 0], b[..., 0, 0], h0[:, 0, 0]), diagonal_loop(a, b, h0)[..., 0, 0]) < ROUNDING
    )


def test_strides_do_not_matter() -> None:
    a, b, h0 = draw("real", 3, 50)
    turned = a.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(diagonal_scan(turned, b, h0), diagonal_scan(a, b, h0))


def test_half_precision_is_half_precision() -> None:
    """The loop rounds as NumPy's float16 does, product and sum; the scan stays within the format's own error."""
    generator = torch.Generator().manual_seed(3)
    a = torch.rand(2, 200, 4, generator=generator).half()
    b, h0 = torch.randn(2, 200, 4, generator=generator).half(), torch.randn(2, 4, generator=generator).half()
    h, path = h0.numpy(), []
    for t in range(200):
        h = a.numpy()[:, t] * h + b.numpy()[:, t]
        path.append(h)
    assert np.array_equal(diagonal_loop(a, b, h0).numpy(), np.stack(path, axis=1))
    scanned = diagonal_scan(a, b, h0)
    assert scanned.dtype == torch.float16
    exact = diagonal_loop(a.double(), b.double(), h0.double())
    unit = torch.finfo(torch.float16).eps
    assert 0 < float((scanned.double() - exact).abs().max()) < 20 * unit * float(exact.abs().max())


def test_counting_to_the_end_of_float16() -> None:
    """2048 + 1 is 2048: a sum that is carried in the format stops there."""
    ones = torch.ones(1, 3000, dtype=torch.float16)
    assert float(diagonal_loop(ones, ones, torch.zeros(1).half())[0, -1]) == 2048


def test_refusals() -> None:
    a, b, h0 = torch.ones(2, 5, 3), torch.ones(2, 5, 3), torch.ones(2, 3)
    with pytest.raises(InvalidInput, match=r"a and b have shape \(B, L, ...\).*got \(2, 4, 3\), \(2, 5, 3\)"):
        diagonal_scan(a[:, :4], b, h0)
    with pytest.raises(InvalidInput, match=r"h0 has shape \(B, ...\).*and \(3,\)\."):
        diagonal_loop(a, b, h0[0])
    with pytest.raises(InvalidInput, match=r"have one type; got torch.float32, torch.float64 and torch.float32"):
        diagonal_scan(a, b.double(), h0)
    with pytest.raises(InvalidInput, match=r"\(Re, Im\) in a last dimension of 2; got torch.float32 of \(2, 5, 3\)"):
        diagonal_scan(a, b, h0, pairs=True)

"""Scans in log depth against their loops, and the loops against closed forms, NumPy and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from paper.theory.affine import diagonal_loop, diagonal_scan, pd_loop, pd_scan
from tests.baselines.close import ROUNDING, distance

LENGTHS = (1, 3, 16, 17, 257, 1000)
NUMBERS = ("real", "complex", "pairs")


def draw(numbers: str, B: int, L: int, F: int = 5, scale: float = 0.9) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tables, coefficients, drives and a start."""
    generator = torch.Generator().manual_seed(0)
    dtype = torch.complex128 if numbers == "complex" else torch.float64
    two = (2,) if numbers == "pairs" else ()
    table = torch.randint(0, F, (B, L, F), generator=generator)
    a, b = (torch.randn(B, L, F, *two, dtype=dtype, generator=generator) for _ in range(2))
    return table, scale * a, b, torch.randn(B, F, *two, dtype=dtype, generator=generator)


@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_diagonal_scan_is_the_loop(numbers: str, L: int) -> None:
    _, *given = draw(numbers, 3, L)
    pairs = numbers == "pairs"
    assert distance(diagonal_scan(*given, pairs=pairs), diagonal_loop(*given, pairs=pairs)) < ROUNDING


@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_pd_scan_is_the_loop(numbers: str, L: int) -> None:
    given, pairs = draw(numbers, 3, L, scale=0.6), numbers == "pairs"
    assert distance(pd_scan(*given, pairs=pairs), pd_loop(*given, pairs=pairs)) < ROUNDING


@pytest.mark.parametrize("L", [1, 40, 300])
def test_the_comparison_barks(L: int) -> None:
    table, a, b, h0 = draw("real", 2, L)
    wrong = a.clone()
    wrong[1, L - 1, 3] += 1e-6
    assert distance(diagonal_scan(wrong, b, h0), diagonal_loop(a, b, h0)) > ROUNDING
    elsewhere = table.clone()
    elsewhere[1, L - 1, 3] = (table[1, L - 1, 3] + 1) % 5
    assert distance(pd_scan(elsewhere, a, b, h0), pd_loop(table, a, b, h0)) > ROUNDING


def test_diagonal_scan_of_a_geometric_series() -> None:
    ratio, L = 0.75, 500
    a = torch.full((1, L, 1), ratio, dtype=torch.float64)
    wanted = (1 - ratio ** torch.arange(1, L + 1, dtype=torch.float64)) / (1 - ratio)
    assert distance(diagonal_scan(a, torch.ones_like(a), torch.zeros(1, 1).double())[0, :, 0], wanted) < ROUNDING


def test_diagonal_scan_of_several_dimensions() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 40, 3, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    h0 = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator)
    assert distance(diagonal_scan(a, b, h0), diagonal_loop(a, b, h0)) < ROUNDING


def test_pd_loop_is_a_product_of_matrices() -> None:
    table, d, b, h0 = (x.numpy() for x in draw("complex", 2, 30))
    path = pd_loop(*draw("complex", 2, 30)).numpy()
    for row in range(2):
        h = h0[row]
        for t in range(30):
            P = np.zeros((5, 5))
            P[table[row, t], np.arange(5)] = 1
            h = P @ np.diag(d[row, t]) @ h + b[row, t]
            assert np.allclose(path[row, t], h)


def test_pd_scan_sums_entries_that_meet() -> None:
    """Everything goes to row 2: what is there is the sum of what was anywhere."""
    L, N = 20, 4
    one, h0 = torch.ones(1, L, N).double(), torch.tensor([[1.0, 2.0, 3.0, 4.0]]).double()
    found = pd_scan(torch.full((1, L, N), 2), one, 0 * one, h0)
    assert torch.equal(found[0], torch.tensor([0.0, 0.0, 10.0, 0.0]).double().expand(L, N))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_pd_scan_of_a_cycle_is_exact(dtype: torch.dtype) -> None:
    """With d = 1 and b = 0 a one-hot state moves as the table says, in any order of merges and any format."""
    L, N = 1000, 7
    table, one = ((torch.arange(N) + 3) % N).expand(2, L, N).contiguous(), torch.ones(2, L, N, dtype=dtype)
    path = pd_scan(table, one, 0 * one, torch.eye(N, dtype=dtype)[:2])
    assert torch.equal(path[0].argmax(-1), (3 * torch.arange(1, L + 1)) % N)
    assert bool((path.sum(-1) == 1).all())


def test_half_precision_is_half_precision() -> None:
    """The loop rounds as NumPy's float16 does, product and sum; the scans stay within the format's own error."""
    generator = torch.Generator().manual_seed(3)
    a = torch.rand(2, 200, 4, generator=generator).half()
    b, h0 = torch.randn(2, 200, 4, generator=generator).half(), torch.randn(2, 4, generator=generator).half()
    h, path = h0.numpy(), []
    for t in range(200):
        h = a.numpy()[:, t] * h + b.numpy()[:, t]
        path.append(h)
    assert np.array_equal(diagonal_loop(a, b, h0).numpy(), np.stack(path, axis=1))
    table, *given = draw("pairs", 2, 100, scale=0.6)
    halves = [x.half() for x in given]
    unit = torch.finfo(torch.float16).eps
    for found, exact in (
        (diagonal_scan(a, b, h0), diagonal_loop(a.double(), b.double(), h0.double())),
        (pd_scan(table, *halves, pairs=True), pd_loop(table, *(x.double() for x in halves), pairs=True)),
    ):
        assert found.dtype == torch.float16
        assert 0 < distance(found.double(), exact) < 20 * unit


def test_diagonal_loop_counts_to_the_end_of_float16() -> None:
    """2048 + 1 is 2048: a sum that is carried in the format stops there."""
    ones = torch.ones(1, 3000, 1, dtype=torch.float16)
    assert float(diagonal_loop(ones, ones, torch.zeros(1, 1).half())[0, -1]) == 2048

"""The scan over P D matrices against its loop and against dense matrices in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.affine import pd_loop, pd_scan
from tests.ops.affine.close import ROUNDING, distance, gradients

LENGTHS = (1, 3, 16, 17, 64, 257, 1000)
NUMBERS = ("real", "complex", "pairs")


def draw(numbers: str, B: int, L: int, N: int = 5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.complex128 if numbers == "complex" else torch.float64
    two = (2,) if numbers == "pairs" else ()
    table = torch.randint(0, N, (B, L, N), generator=generator)
    d, b = (torch.randn(B, L, N, *two, dtype=dtype, generator=generator) for _ in range(2))
    h0 = torch.randn(B, N, *two, dtype=dtype, generator=generator)
    return table, (0.6 * d).requires_grad_(), b.requires_grad_(), h0.requires_grad_()


@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_scan_is_the_loop(numbers: str, L: int) -> None:
    table, *given = draw(numbers, 3, L)
    pairs = numbers == "pairs"
    scanned, looped = pd_scan(table, *given, pairs=pairs), pd_loop(table, *given, pairs=pairs)
    assert distance(scanned, looped) < ROUNDING
    for found, wanted in zip(gradients([scanned], given), gradients([looped], given), strict=True):
        assert distance(found, wanted) < ROUNDING


def test_the_comparison_barks() -> None:
    table, d, b, h0 = draw("complex", 2, 40)
    wrong = table.clone()
    wrong[1, 20, 3] = (wrong[1, 20, 3] + 1) % 5
    assert distance(pd_scan(wrong, d, b, h0), pd_loop(table, d, b, h0)) > ROUNDING


def test_the_loop_is_a_product_of_matrices() -> None:
    table, d, b, h0 = (x.detach().numpy() for x in draw("complex", 2, 30))
    path = pd_loop(*draw("complex", 2, 30)).detach().numpy()
    for row in range(2):
        h = h0[row]
        for t in range(30):
            P = np.zeros((5, 5))
            P[table[row, t], np.arange(5)] = 1
            assert (P.sum(0) == 1).all()
            h = P @ np.diag(d[row, t]) @ h + b[row, t]
            assert np.allclose(path[row, t], h)


def test_entries_that_meet_are_summed() -> None:
    """Everything goes to row 2: what is there is the sum of what was anywhere."""
    L, N = 20, 4
    table = torch.full((1, L, N), 2)
    one = torch.ones(1, L, N, dtype=torch.float64)
    h0 = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    assert torch.equal(pd_scan(table, one, 0 * one, h0)[0], torch.tensor([0.0, 0.0, 10.0, 0.0]).double().expand(L, N))


def test_a_cycle_is_exact() -> None:
    """With d = 1 and b = 0 a one-hot state moves as the table says, in any order of merges and any format."""
    L, N = 1000, 7
    table = ((torch.arange(N) + 3) % N).expand(2, L, N).contiguous()
    for dtype in (torch.float16, torch.float32, torch.float64):
        one = torch.ones(2, L, N, dtype=dtype)
        path = pd_scan(table, one, 0 * one, torch.eye(N, dtype=dtype)[:2])
        assert torch.equal(path[0].argmax(-1), (3 * torch.arange(1, L + 1)) % N)
        assert bool((path.sum(-1) == 1).all())


@pytest.mark.parametrize("L", [1, 18])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_gradients_by_differences(numbers: str, L: int) -> None:
    table, *given = draw(numbers, 1, L, N=2)
    assert torch.autograd.gradcheck(lambda d, b, h0: pd_scan(table, d, b, h0, pairs=numbers == "pairs"), given)


@pytest.mark.parametrize("shape", [(0, 7, 3), (2, 0, 3)])
def test_nothing_to_scan(shape: tuple[int, ...]) -> None:
    d = torch.ones(shape)
    for run in (pd_scan, pd_loop):
        assert run(torch.zeros(shape, dtype=torch.int64), d, d, torch.zeros(shape[0], shape[2])).shape == shape


def test_half_precision() -> None:
    """In float16 the scan stays near what float64 makes of the same numbers, and is float16 throughout."""
    table, d, b, h0 = draw("pairs", 2, 100)
    d, b, h0 = (x.detach().half() for x in (d, b, h0))
    scanned, exact = (
        pd_scan(table, d, b, h0, pairs=True),
        pd_loop(table, d.double(), b.double(), h0.double(), pairs=True),
    )
    assert scanned.dtype == torch.float16
    assert 0 < distance(scanned.double(), exact) < 20 * torch.finfo(torch.float16).eps


def test_refusals() -> None:
    table, d, b, h0 = draw("real", 2, 6)
    with pytest.raises(InvalidInput, match=r"the table has shape \(B, L, N\).*got \(2, 6, 5\), \(2, 5, 5\)"):
        pd_scan(table, d[:, :5], b, h0)
    with pytest.raises(InvalidInput, match=r"d and b \(B, L, N, 2\)"):
        pd_scan(table, d, b, h0, pairs=True)
    with pytest.raises(InvalidInput, match=r"holds int64 rows; got torch.uint8: call .long\(\) on it"):
        pd_scan(table.to(torch.uint8), d, b, h0)
    with pytest.raises(InvalidInput, match=r"sends entries to rows 0..4; got -?\d+..5\."):
        pd_loop(table + (table == table.max()).long(), d, b, h0)
    with pytest.raises(InvalidInput, match=r"have one type; got torch.float64, torch.float32 and torch.float64"):
        pd_scan(table, d, b.float(), h0)

"""Recurrences in blocks: the same for every size of block, and an operator as PyTorch wants it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import exactstate.baselines.aussm
import exactstate.baselines.mamba  # noqa: F401  (each adds its kernel)
from exactstate.baselines import blocks
from exactstate.baselines.blocks import block, recur
from exactstate.baselines.pdssm import choose
from tests.baselines.close import ROUNDING, distance, gradients

KERNELS = ("mamba", "aussm", "pdssm")


def given(kernel: str, B: int, L: int, seed: int = 0) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Streams, parameters and a start for a small recurrence."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    def positive(*shape: int) -> Tensor:
        return torch.rand(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    d, n = 3, 4
    if kernel == "mamba":
        return [positive(B, L, d), normal(B, L, d), normal(B, L, n), normal(B, L, n)], [positive(d, n)], normal(B, d, n)
    if kernel == "aussm":
        return [positive(B, L, d), normal(B, L, d)], [normal(d * n, d), normal(n, 2), normal(n, 2)], normal(B, d, n, 2)
    mixture, scale, drive = positive(B, L, 3), normal(B, L, 2 * n), normal(B, L, 2 * n)
    smaller = (0.4 * scale).detach().requires_grad_()
    taken, dictionary = torch.ones(B, L, 1, dtype=torch.float64), normal(n, n, 3)
    with torch.no_grad():
        rows = choose(mixture.flatten(0, 1), dictionary).view(B, L, n)
    return [mixture, rows, smaller, drive, taken], [dictionary], normal(B, n, 2)


def outcome(kernel: str, B: int, L: int) -> list[Tensor]:
    streams, shared, start = given(kernel, B, L)
    output, last, _ = recur(kernel, streams, shared, start, True)
    inputs = [x for x in (*streams, *shared, start) if x.requires_grad]
    return [output.detach(), last.detach(), *gradients([output, last], inputs)]


@pytest.mark.parametrize("size", [1, 1 << 11])
@pytest.mark.parametrize(("B", "L"), [(1, 1), (3, 70), (20, 131)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_size_of_a_block_does_not_matter(
    kernel: str, B: int, L: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = outcome(kernel, B, L)
    monkeypatch.setattr(blocks, "CACHED", size)
    assert block(B, 10**6, 12, torch.device("cpu"))[1] <= 16 * 16
    for ours, theirs in zip(outcome(kernel, B, L), wanted, strict=True):
        assert distance(ours, theirs) < ROUNDING


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_number_of_threads_does_not_matter(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MIN_NUMBERS", 1)  # so that there is more than one block
    torch.set_num_threads(1)
    wanted = outcome(kernel, 9, 70)
    for count in (2, 3):
        torch.set_num_threads(count)
        for ours, theirs in zip(outcome(kernel, 9, 70), wanted, strict=True):
            assert torch.equal(ours, theirs)
        assert torch.get_num_threads() == count


@pytest.mark.parametrize("kernel", KERNELS)
def test_steps_of_zeros_change_nothing(kernel: str) -> None:
    """What padding relies on: zero streams are the identity (for PD-SSM with D = 1, which the layer says)."""
    streams, shared, start = given(kernel, 2, 50)
    still = [0 * x for x in streams]
    if kernel == "pdssm":
        still[2] = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(4).expand(2, 50, 8).contiguous()
    with torch.no_grad():
        _, last, _ = recur(kernel, still, shared, start, False)
    assert torch.equal(last, start)


@pytest.mark.parametrize(("B", "L"), [(0, 5), (2, 0), (0, 0)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_to_do(kernel: str, B: int, L: int) -> None:
    streams, shared, start = given(kernel, B, L)
    output, last, _ = recur(kernel, streams, shared, start, True)
    assert output.shape[:2] == (B, L)
    assert torch.equal(last, start)
    (grad_start,) = torch.autograd.grad(last.sum() + output.sum(), [start])
    assert torch.equal(grad_start, torch.ones_like(start))


def test_blocks_hold_whole_chunks_and_at_least_some_rows() -> None:
    for B in (1, 2, 16, 256):
        for L in (1, 17, 64, 4096, 1 << 17):
            for numbers in (1, 32, 256, 4096, 1 << 20):
                rows, steps = block(B, L, numbers, torch.device("cpu"))
                assert rows >= 1
                assert steps % 16 == 0
                assert steps >= min(L, 64)
                assert rows <= max(1, B)
                assert rows * 8 < B + 8 or rows * steps * numbers <= blocks.MIN_NUMBERS, "split over eight, unless tiny"


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_operator_is_a_good_citizen(kernel: str) -> None:
    streams, shared, start = given(kernel, 2, 20)
    torch.library.opcheck(recur, (kernel, streams, shared, start, True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_borders_are_kept_only_for_a_backward_pass(kernel: str) -> None:
    streams, shared, start = (
        [x.detach() for x in part] if isinstance(part, list) else part.detach() for part in given(kernel, 2, 20)
    )
    assert len(recur(kernel, streams, shared, start, False)[2]) == 0
    assert len(recur(kernel, streams, shared, start, True)[2]) == 1

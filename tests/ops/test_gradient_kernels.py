"""The compiled kernels of the backward pass against plain torch, at widths, heads and lengths that fill no tile."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from exactstate import native
from exactstate.ops.interface import kernels
from exactstate.ops.segments import LogitSource, Noise, padded_segments
from exactstate.ops.tables import cell_dtype

pytestmark = pytest.mark.skipif(not native.available(), reason="the compiled kernels were not built")

CASES = [
    # heads, width, lengths of the sequences
    ((1,), 1, [3, 0, 1]),
    ((2,), 3, [7]),
    ((3, 1, 2), 5, [1, 2, 3]),
    ((4, 5), 8, [17, 64]),
    ((13,), 16, [50, 0, 49]),
    ((7, 8, 9), 36, [5, 300]),
    ((12,) * 4, 40, [33, 97, 1]),
    ((60, 2), 37, [130]),
    ((12,) * 3, 20, [1000]),
    ((12,), 64, [0]),
    ((12, 3), 24, []),
]


@pytest.fixture(params=CASES, ids=lambda case: f"heads {case[0][:3]} width {case[1]} lengths {case[2]}")
def case(request: pytest.FixtureRequest) -> tuple[tuple[int, ...], int, Tensor]:
    heads, width, lengths = request.param
    return heads, width, torch.tensor(lengths, dtype=torch.int64)


def made(
    heads: tuple[int, ...], width: int, lengths: Tensor, dtype: torch.dtype, padding: int = 2
) -> tuple[LogitSource, Tensor, Tensor, Tensor, Tensor]:
    """(source, segments, starts, states, lambda) of random numbers; some rows are padding, which no segment reads."""
    generator = torch.Generator().manual_seed(11)
    longest = int(lengths.max() if len(lengths) else 0) + padding
    rows, entries = len(lengths) * longest, sum(d * d for d in heads)
    sizes = torch.tensor(heads)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    def indices(many: int) -> Tensor:
        return (torch.rand(many, len(heads), generator=generator) * sizes).long()

    source = LogitSource(numbers(rows, width), numbers(entries, width), numbers(entries))
    segments = padded_segments(lengths, longest)
    states = indices(rows).to(cell_dtype(heads))
    return source, segments, indices(len(lengths)), states, numbers(int(lengths.sum()), sum(heads))


def surrogate(
    backend: str, heads: tuple[int, ...], width: int, lengths: Tensor, dtype: torch.dtype, *, threads: int = 1,
    noise: Noise | None = None, wants_input: bool = True,
) -> list[Tensor]:  # fmt: skip
    """The gradients of input, weight and bias, added to numbers that are there."""
    source, segments, starts, states, lam = made(heads, width, lengths, dtype)
    sums = [torch.full_like(part, 0.25) for part in (source.input, source.weight, source.bias)]
    before = native.set_threads(threads)
    try:
        kernels(backend).surrogate_backward_(
            source, segments, starts, states, lam, heads, noise, 0.7, (sums[0] if wants_input else None, *sums[1:])
        )
    finally:
        native.set_threads(before)
    return sums


@pytest.mark.parametrize("noise", [None, Noise(5, 0.7)], ids=["arg max", "sampled"])
def test_surrogate_gradients_are_the_references(
    case: tuple[tuple[int, ...], int, Tensor], noise: Noise | None
) -> None:  # fmt: skip
    wanted = surrogate("reference", *case, torch.float64, noise=noise)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        found = surrogate("cpu", *case, dtype, noise=noise)
        for part, right in zip(found, wanted, strict=True):
            scale = float(right.abs().max()) if right.numel() else 1.0
            assert torch.allclose(part.double(), right, rtol=0, atol=tolerance * max(1.0, scale))


def test_surrogate_gradients_do_not_depend_on_threads(case: tuple[tuple[int, ...], int, Tensor]) -> None:
    for dtype in (torch.float32, torch.float64):
        one = surrogate("cpu", *case, dtype)
        for threads in (2, 3, 5):
            assert all(map(torch.equal, one, surrogate("cpu", *case, dtype, threads=threads)))
        without = surrogate("cpu", *case, dtype, wants_input=False)
        assert all(map(torch.equal, one[1:], without[1:]))


@pytest.mark.parametrize("heads", [(12,) * 16, (60, 60), (12, 1)])
def test_surrogate_gradients_of_many_rows_on_several_threads(heads: tuple[int, ...]) -> None:
    lengths = torch.tensor([700, 1, 421])
    one = surrogate("cpu", heads, 96, lengths, torch.float32)
    for threads in (2, 4):
        assert all(map(torch.equal, one, surrogate("cpu", heads, 96, lengths, torch.float32, threads=threads)))


def test_surrogate_gradients_where_all_rows_use_one_column() -> None:
    """One group of rows: threads share its inputs instead of columns."""
    heads, lengths = (12,), torch.tensor([4000])
    source, segments, starts, states, lam = made(heads, 128, lengths, torch.float32)
    sums = []
    for threads in (1, 3):
        before = native.set_threads(threads)
        parts = [torch.zeros_like(part) for part in (source.input, source.weight, source.bias)]
        kernels("cpu").surrogate_backward_(
            source, segments, starts * 0, states * 0, lam.clone(), heads, None, 1.0, (parts[0], parts[1], parts[2])
        )
        native.set_threads(before)
        sums.append(parts)
    assert all(map(torch.equal, *sums))
    assert bool(sums[0][1][:12].any())
    assert not bool(sums[0][1][12:].any())


def test_index_gains_are_products_with_the_vectors(case: tuple[tuple[int, ...], int, Tensor]) -> None:
    heads, width, lengths = case
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
        source, segments, *_ = made(heads, width, lengths, dtype)
        vectors = torch.randn(sum(heads), width, dtype=dtype, generator=torch.Generator().manual_seed(3))
        wanted = kernels("reference").index_gains(source.input, vectors, segments)
        found = [kernels("cpu").index_gains(source.input, vectors, segments)]
        before = native.set_threads(3)
        found.append(kernels("cpu").index_gains(source.input, vectors, segments))
        native.set_threads(before)
        assert torch.equal(*found)
        assert torch.allclose(found[0], wanted, rtol=0, atol=tolerance)


def test_read_out_and_its_gradient(case: tuple[tuple[int, ...], int, Tensor]) -> None:
    heads, width, lengths = case
    for dtype in (torch.float64, torch.float32):
        source, _, _, states, _ = made(heads, width, lengths, dtype)
        generator = torch.Generator().manual_seed(4)
        vectors = torch.randn(sum(heads), width, dtype=dtype, generator=generator)
        offset = torch.randn(width, dtype=dtype, generator=generator)
        wanted = kernels("reference").read_out(vectors, offset, states, heads)
        summed = kernels("reference").read_out_backward(source.input.double(), states, heads)
        for threads in (1, 3):
            before = native.set_threads(threads)
            assert torch.equal(kernels("cpu").read_out(vectors, offset, states, heads), wanted)
            found = kernels("cpu").read_out_backward(source.input, states, heads)
            native.set_threads(before)
            assert torch.allclose(found.double(), summed, rtol=0, atol=1e-11 if dtype == torch.float64 else 1e-3)

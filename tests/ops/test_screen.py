"""Tables that sixteen-bit integers decide where they can: those of the reference to the bit, above all at near ties."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from exactstate import native
from exactstate.errors import InvalidInput
from exactstate.ops.interface import kernels
from exactstate.ops.segments import LogitSource, Noise, batch_segments

pytestmark = pytest.mark.skipif(native.why_not() is not None, reason=str(native.why_not()))

ENOUGH = 600
"""Rows from which the integers are used."""
Parts = tuple[Tensor, Tensor, Tensor]


def tables(parts: Parts, heads: tuple[int, ...], backend: str = "cpu", noise: Noise | None = None) -> Tensor:
    rows, weight, bias = (part.contiguous() for part in parts)
    made = kernels(backend).tables(LogitSource(rows, weight, bias), batch_segments(1, len(rows)), heads, noise)
    return made.long()


def parts(heads: tuple[int, ...], m: int, rows: int = ENOUGH, seed: int = 0) -> Parts:
    generator = torch.Generator().manual_seed(seed)
    entries = sum(d * d for d in heads)
    weight = torch.randn(entries, m, generator=generator) / m**0.5
    return torch.randn(rows, m, generator=generator), weight, torch.randn(entries, generator=generator)


@pytest.mark.parametrize("m", [1, 2, 7, 15, 16, 17, 33, 64, 128])
@pytest.mark.parametrize("heads", [(12, 12), (4, 13, 16), (64,), (130,)], ids=str)
def test_screened_tables_are_the_reference(heads: tuple[int, ...], m: int) -> None:
    given = parts(heads, m, rows=ENOUGH + m)
    assert torch.equal(tables(given, heads), tables(given, heads, "reference"))


def spread_out(rows: Tensor, weight: Tensor, bias: Tensor) -> Parts:
    generator = torch.Generator().manual_seed(1)
    over_rows = torch.exp(5 * torch.randn(len(rows), 1, generator=generator))
    over_entries = torch.exp(3 * torch.randn(weight.shape, generator=generator))
    return rows * over_rows, weight * over_entries, bias * torch.exp(4 * torch.randn(len(bias), generator=generator))


def off_by_one_rounding(rows: Tensor, weight: Tensor, bias: Tensor) -> Parts:
    """Columns whose entries are equal up to a few units in the last place."""
    generator = torch.Generator().manual_seed(2)
    same = weight[:12].mean(0).expand_as(weight)
    return rows, same * (1 + 2.0**-23 * torch.randint(-2, 3, weight.shape, generator=generator)), bias * 0


HARD: dict[str, Callable[[Tensor, Tensor, Tensor], Parts]] = {
    "all equal": lambda x, w, b: (x, w * 0, b * 0),
    "rows of zeros": lambda x, w, b: (x * (torch.arange(len(x)) % 3 == 0)[:, None], w, b * 0),
    "small integers": lambda x, w, b: (x.round(), (8 * w).round(), b.round()),
    "equal to rounding": off_by_one_rounding,
    "underflow": lambda x, w, b: (x * 1e-20, w * 1e-20, b * 0),
    "nearly overflow": lambda x, w, b: (x * 1e17, w * 1e17, b * 1e17),
    "larger than any bound": lambda x, w, b: (x * 1e18, w * 1e18, b * 1e35),
    "large biases": lambda x, w, b: (x, w * 1e-3, b * 1e6),
    "one huge input": lambda x, w, b: (torch.cat([x[:, :-1], 1e6 * x[:, -1:]], 1), w, b),
    "all magnitudes": spread_out,
}


@pytest.mark.parametrize("temperature", [None, 1e-9, 0.01, 0.5, 3.0, 1e6, 1e32])
@pytest.mark.parametrize("name", HARD)
def test_near_ties_and_extreme_magnitudes_are_decided_in_floats(name: str, temperature: float | None) -> None:
    heads = (12, 5)
    given, noise = HARD[name](*parts(heads, 48)), None if temperature is None else Noise(7, temperature)
    assert torch.equal(tables(given, heads, noise=noise), tables(given, heads, "reference", noise=noise))


@pytest.mark.parametrize("m", [1, 16, 33, 256])
@pytest.mark.parametrize("heads", [(12, 12), (4, 13, 16), (64,), (130,)], ids=str)
def test_screened_tables_with_noise_are_the_reference(heads: tuple[int, ...], m: int) -> None:
    given, noise = parts(heads, m, rows=ENOUGH + m), Noise(1 << 40, 0.5)
    assert torch.equal(tables(given, heads, noise=noise), tables(given, heads, "reference", noise=noise))


def test_screened_tables_are_the_same_in_registers_of_every_width() -> None:
    """Where this processor has AVX-512, once without it; elsewhere twice the same code."""
    program = (
        "import hashlib; from tests.ops.test_screen import HARD, Noise, parts, tables\n"
        "made = [tables(parts(h, m), h) for h in ((12, 12), (4, 13, 16), (64,)) for m in (1, 33, 64)]\n"
        "made += [tables(change(*parts((12, 5), 48)), (12, 5)) for change in HARD.values()]\n"
        "made += [tables(parts(h, 33), h, noise=Noise(3, 0.7)) for h in ((12, 5), (300,), (1, 2, 3))]\n"
        "print(hashlib.sha256(b''.join(one.numpy().tobytes() for one in made)).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "EXACTSTATE_AVX512": choice}, check=True,
            capture_output=True, text=True, cwd=Path(__file__).parents[2],
        ).stdout
        for choice in ("0", "1")
    }  # fmt: skip
    assert len(digests) == 1


def test_screened_tables_depend_neither_on_threads_nor_on_the_rows_beside_them() -> None:
    heads, before = (12,) * 4, native.threads()
    given = parts(heads, 32, rows=3 * ENOUGH)
    try:
        native.set_threads(1)
        alone = tables(given, heads)
        native.set_threads(3)
        assert torch.equal(tables(given, heads), alone)
    finally:
        native.set_threads(before)
    few = given[0][5:25], *given[1:]  # too few for integers
    assert torch.equal(tables(few, heads), alone[5:25])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
def test_the_first_row_without_finite_logits_is_named(value: float) -> None:
    rows, weight, bias = parts((12, 12), 16)
    rows[[417, 300, 599]] = value
    with pytest.raises(InvalidInput, match="row 300 of the input"):
        tables((rows, 1e3 * weight, bias), (12, 12))


def test_a_weight_that_is_not_finite_is_found() -> None:
    rows, weight, bias = parts((12, 12), 16)
    weight[200, 3] = float("inf")
    with pytest.raises(InvalidInput, match="row 0 of the input"):
        tables((rows, weight, bias), (12, 12))

"""How the scan goes: few steps in Python, and products in the order of time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from exactstate.baselines.chunked_scan import (
    STEPS,
    ColumnOneHot,
    ColumnOneHotAdjoint,
    Diagonal,
    Step,
    chunked_scan,
    fill_up,
    in_chunks,
)


class Counting(Diagonal):
    """Counts what it is asked for."""

    calls = 0

    def apply(self, step: Step, h: Tensor, drive: Tensor, out: Tensor | None = None) -> Tensor:
        self.calls += 1
        return super().apply(step, h, drive, out)


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_the_depth_is_a_logarithm(levels: int) -> None:
    L = STEPS**levels
    a, b = torch.ones(1, L, 1), torch.ones(1, L, 1)
    out, rules = torch.empty_like(b), Counting()
    last = chunked_scan(rules, [(part,) for part in in_chunks(a)], in_chunks(b), torch.zeros(1, 1), in_chunks(out))
    assert torch.equal(out[0, :, 0], torch.arange(1, L + 1).float())
    assert float(last) == L
    assert rules.calls <= 2 * STEPS * levels


@pytest.mark.parametrize(("L", "filled"), [(1, 1), (5, 5), (16, 16), (17, 32), (30, 32), (33, 48)])
def test_whole_chunks(L: int, filled: int) -> None:
    x = torch.arange(2.0 * L).view(2, L, 1)
    whole = fill_up(x, 7.0)
    assert whole.shape == (2, filled, 1)
    assert torch.equal(whole[:, :L], x)
    assert bool((whole[:, L:] == 7).all())
    for k, part in enumerate(in_chunks(whole)):
        assert torch.equal(part, whole[:, k :: min(L, STEPS)])


def dense(step: Step) -> Tensor:
    """P D as a matrix, entry by entry."""
    table, d = step
    matrix = torch.zeros(len(d), len(d), dtype=d.dtype)
    for k in range(len(d)):
        matrix[table[k], k] = d[k]
    return matrix


def test_shuffles_are_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        first, then = (
            (
                torch.randint(0, 6, (6,), generator=generator),
                torch.randn(6, dtype=torch.complex128, generator=generator),
            )
            for _ in range(2)
        )
        h, b = (torch.randn(6, dtype=torch.complex128, generator=generator) for _ in range(2))
        assert torch.allclose(ColumnOneHot().apply(first, h, b), dense(first) @ h + b)
        assert torch.allclose(dense(ColumnOneHot().compose(first, then)), dense(then) @ dense(first))
        back, forth = ((table, d.conj().resolve_conj()) for table, d in (first, then))
        assert torch.allclose(ColumnOneHotAdjoint().apply(back, h, b), dense(first).mH @ h + b)
        composed = ColumnOneHotAdjoint().compose(forth, back)
        assert torch.allclose(ColumnOneHotAdjoint().apply(composed, h, b), dense(first).mH @ dense(then).mH @ h + b)

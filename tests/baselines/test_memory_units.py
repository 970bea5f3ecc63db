"""Memory units as tables: which tables there are, and the scan and its gradient against a loop of the equations."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from exactstate.baselines.memory_units import levels_of, memory_scan, push_tables, values
from exactstate.ops.ordered_linear import ordered_linear
from tests.baselines.close import ROUNDING, distance, gradients
from tests.conftest import backends_under_test

LENGTHS = (0, 1, 2, 16, 17, 65, 300)


def given(n: int, B: int, L: int, d: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(L)
    z = torch.randint(0, 2, (B, L, d), generator=generator).double().requires_grad_()
    s = (2 * torch.randint(0, 2, (B, L, d), generator=generator) - 1).double().requires_grad_()
    start = values(torch.randint(0, n, (B, d), generator=generator), n, torch.float64).requires_grad_()
    return z, s, start


def loop(z: Tensor, s: Tensor, h: Tensor, resets: Tensor | None, n: int, initial_level: int) -> Tensor:
    """The equations, differentiated by autograd."""
    path = []
    for t in range(z.shape[1]):
        if resets is not None:
            h = torch.where(resets[:, t, None], values(torch.tensor(initial_level), n, h.dtype), h)
        push = z[:, t] * s[:, t]
        h = push + (1 - z[:, t]) * h if n == 2 else (h + push).clamp(-(n // 2), n // 2)
        path.append(h)
    return torch.stack(path, dim=1) if path else z.new_empty(z.shape)


def test_the_three_tables_of_two_levels() -> None:
    low, keep, high = push_tables(torch.tensor([-1, 0, 1]), 2).tolist()
    assert (low, keep, high) == ([0, 0], [0, 1], [1, 1])


@pytest.mark.parametrize("n", [3, 5, 7, 301])
def test_more_levels_are_shifts_that_stop(n: int) -> None:
    down, keep, up = push_tables(torch.tensor([-1, 0, 1]), n).tolist()
    assert down == [max(k - 1, 0) for k in range(n)]
    assert keep == list(range(n))
    assert up == [min(k + 1, n - 1) for k in range(n)]


@pytest.mark.parametrize("n", [2, 3, 9])
def test_levels_and_their_values(n: int) -> None:
    levels = torch.arange(n)
    level_values = values(levels, n, torch.float16)
    assert level_values.tolist() == ([-1, 1] if n == 2 else list(range(-(n // 2), n // 2 + 1)))
    assert torch.equal(levels_of(level_values, n), levels)


@pytest.mark.parametrize("resetting", [False, True])
@pytest.mark.parametrize("L", LENGTHS, ids="L{}".format)
@pytest.mark.parametrize(("n", "backend"), list(product((2, 5), backends_under_test())))
def test_the_scan_is_the_loop(n: int, backend: str, L: int, resetting: bool) -> None:
    z, s, start = given(n, 3, L)
    resets = torch.rand(3, L, generator=torch.Generator().manual_seed(1)) < 0.1 if resetting else None
    path, levels = memory_scan(z, s, start, resets, n, n // 3, backend)
    wanted = loop(z, s, start, resets, n, n // 3)
    assert torch.equal(path, wanted)
    assert torch.equal(levels.long(), levels_of(wanted, n))
    if L:
        for ours, theirs in zip(gradients([path], (z, s, start)), gradients([wanted], (z, s, start)), strict=True):
            assert distance(ours, theirs) < ROUNDING


def test_the_comparison_barks() -> None:
    z, s, start = given(2, 3, 40)
    wrong = s.detach().clone()
    wrong[1, 39, 2] *= -1
    set_there = z.detach().clone()
    set_there[1, 39, 2] = 1
    assert not torch.equal(
        memory_scan(set_there, wrong, start, None, 2, 0, "tree")[0], loop(set_there, s, start, None, 2, 0)
    )


@pytest.mark.parametrize("n", [2, 5])
def test_the_operator_is_a_good_citizen(n: int) -> None:
    for resets in (None, torch.zeros(2, 9, dtype=torch.bool)):
        torch.library.opcheck(memory_scan, (*given(n, 2, 9), resets, n, 0, "tree"))


@pytest.mark.parametrize("backend", [name for name in backends_under_test() if name != "tree"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ordered_linear_of_a_row_does_not_depend_on_the_others(backend: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(130, 67, dtype=dtype, generator=generator)
    weight, bias = (torch.randn(*shape, dtype=dtype, generator=generator) for shape in ((33, 67), (33,)))
    together = ordered_linear(rows, weight, bias, backend)
    for count in (1, 2, 16, 17, 129):
        assert torch.equal(ordered_linear(rows[:count], weight, bias, backend), together[:count])
    assert torch.allclose(together, torch.nn.functional.linear(rows, weight, bias), atol=1e-4)


@pytest.mark.parametrize("backend", backends_under_test())
def test_ordered_linear_gradients_by_differences(backend: str) -> None:
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((5, 3), (2, 3), (2,))]
    given = [x.requires_grad_() for x in given]
    assert torch.autograd.gradcheck(lambda *x: ordered_linear(*x, backend), given)
    torch.library.opcheck(torch.ops.exactstate.ordered_linear.default, (*given, backend))

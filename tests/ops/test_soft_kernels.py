"""The compiled pass of soft states against the loop in torch, at sizes that fill no vector, and finite differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from exactstate import native
from exactstate.errors import InvalidInput
from exactstate.nn import soft
from exactstate.nn.soft import soft_states
from tests.cases import pairs

pytestmark = pytest.mark.skipif(not native.available(), reason="the compiled kernels were not built")

HEADS = [(1,), (2, 3), (4,) * 5, (7, 8, 9), (12, 12, 1), (17, 2), (33,)]
SHAPES = [(1, 1), (3, 0), (0, 4), (5, 9), (16, 3), (17, 2), (33, 5)]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}
"""Sums in another order, and in float32 an exponential of two units in the last place."""


def arguments(heads: tuple[int, ...], B: int, L: int, dtype: torch.dtype, special: bool, rows: int) -> dict[str, Any]:
    """Random arguments of `soft_states`; with `rows`, that many distinct ones and an index."""
    generator = torch.Generator().manual_seed(3)
    entries, width = sum(d * d for d in heads), 6

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    def indices(many: int) -> Tensor:
        return (torch.rand(many, len(heads), generator=generator) * torch.tensor(heads)).long()

    return {
        "x": numbers(rows, width) if rows else numbers(B, L, width), "weight": numbers(entries, width),
        "bias": numbers(entries), "heads": heads, "start": indices(B), "temperature": 0.6,
        "row_index": torch.randint(rows, (B, L), generator=generator) if rows else None,
        "lengths": torch.randint(L + 1, (B,), generator=generator) if special else None,
        "resets": torch.rand(B, L, generator=generator) < 0.3 if special else None,
        "initial_state": tuple(indices(1)[0].tolist()),
    }  # fmt: skip


def with_gradients(backend: str, given: dict[str, Any]) -> list[Tensor]:
    """The distributions, and the gradients of inputs, weight and bias."""
    states = soft_states(**given, backend=backend)
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    gradients = torch.autograd.grad(
        (states * weights.to(states)).sum(), [given[name] for name in ("x", "weight", "bias")]
    )
    return [states.detach(), *gradients]


@pytest.mark.parametrize(("heads", "shape", "special", "rows"), pairs(HEADS, SHAPES, [False, True], [0, 3]), ids=str)
def test_compiled_soft_states_are_those_of_the_loop(
    heads: tuple[int, ...], shape: tuple[int, int], special: bool, rows: int
) -> None:  # fmt: skip
    for dtype, tolerance in TOLERANCE.items():
        given = arguments(heads, *shape, dtype, special, rows)
        for got, wanted in zip(with_gradients("cpu", given), with_gradients("reference", given), strict=True):
            torch.testing.assert_close(got, wanted, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("rows", [0, 3], ids=["rows", "index"])
def test_gradients_of_compiled_soft_states_are_finite_differences(rows: int) -> None:
    given = arguments((3, 2), 2, 4, torch.float64, True, rows)

    def states(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return soft_states(**{**given, "x": x, "weight": weight, "bias": bias}, backend="cpu")

    assert torch.autograd.gradcheck(states, (given["x"], given["weight"], given["bias"]))


@pytest.mark.parametrize("rows", [0, 5], ids=["rows", "index"])
def test_soft_states_do_not_depend_on_threads(rows: int) -> None:
    given = arguments((8,) * 12, 40, 30, torch.float32, True, rows)
    before = native.set_threads(1)
    try:
        alone = with_gradients("cpu", given)
        native.set_threads(3)
        together = with_gradients("cpu", given)
    finally:
        native.set_threads(before)
    assert all(torch.equal(got, wanted) for got, wanted in zip(together, alone, strict=True))


def test_steps_beyond_a_length_may_hold_anything() -> None:
    given = arguments((4, 3), 3, 5, torch.float32, False, 0)
    given["lengths"] = torch.tensor([5, 2, 0])
    wanted = with_gradients("cpu", given)
    with torch.no_grad():
        given["x"][1, 2:], given["x"][2] = torch.nan, torch.inf
    states = soft_states(**given, backend="cpu")
    assert torch.equal(states.detach(), wanted[0])


def test_backend_cpu_uses_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for name in ("soft_forward", "soft_indexed"):
        run = getattr(soft, name)

        def counted(*given: Any, name: str = name, run: Any = run) -> Any:
            calls.append(name)
            return run(*given)

        monkeypatch.setattr(soft, name, counted)
    for rows in (0, 3):
        for backend in ("cpu", "reference"):
            soft_states(**arguments((4, 3), 3, 5, torch.float32, False, rows), backend=backend)
    assert calls == ["soft_forward", "soft_indexed"]


def test_kernels_get_no_index_outside_their_arrays() -> None:
    given = arguments((4, 3), 3, 5, torch.float32, False, 3)
    given["row_index"][1, 2] = 3
    with pytest.raises(InvalidInput, match=r"index\[1, 2\] is 3, but there are 3 distinct rows"):
        soft_states(**given, backend="cpu")
    given = arguments((4, 3), 3, 5, torch.float32, False, 0)
    given["start"][2, 1] = 3
    with pytest.raises(InvalidInput, match="the state of sequence 2, head 1 is 3"):
        soft_states(**given, backend="cpu")

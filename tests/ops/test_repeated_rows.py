"""Rows that repeat are computed once: the same tables and states to the bit, the same gradients to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate import native
from exactstate.errors import InvalidInput
from exactstate.nn import NFSM
from exactstate.ops import cpu
from tests.conftest import SAMPLED

pytestmark = pytest.mark.skipif(not native.available(), reason="the compiled kernels were not built")

# float64 sums of a few thousand terms of order one to ten
CLOSE = {"atol": 1e-10, "rtol": 1e-10}


def repeating(count: int, distinct: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(distinct, width, generator=generator, dtype=dtype)
    return rows[torch.randint(distinct, (count,), generator=generator)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 2, 7, 8, 33])
@pytest.mark.parametrize(("count", "distinct"), [(16, 1), (17, 1), (100, 6), (1000, 62)])
def test_repeated_rows_are_those_of_unique(count: int, distinct: int, width: int, dtype: torch.dtype) -> None:
    rows = repeating(count, distinct, width, dtype)
    found = cpu.repeated_rows(rows)
    assert found is not None
    first, index = found
    _, at, which = np.unique(rows.numpy(), axis=0, return_index=True, return_inverse=True)
    assert sorted(at.tolist()) == first.tolist()  # in the order of their first occurrence
    order = np.argsort(np.argsort(at))
    assert np.array_equal(order[which.ravel()], index.numpy())
    assert torch.equal(rows[first][index], rows)


@pytest.mark.parametrize(("count", "distinct"), [(0, 1), (15, 1), (160, 11), (160, 160)])
def test_repeated_rows_finds_none_where_few_repeat(count: int, distinct: int) -> None:
    rows = repeating(count, distinct, 4)
    assert len(torch.unique(rows, dim=0)) > count // cpu.REPETITIONS or count < cpu.REPETITIONS
    assert cpu.repeated_rows(rows) is None


def test_repeated_rows_tells_zeros_and_nans_apart_by_their_bits() -> None:
    rows = torch.tensor([[0.0], [-0.0], [float("nan")]]).repeat(16, 1)
    found = cpu.repeated_rows(rows)
    assert found is not None
    assert found[0].tolist() == [0, 1, 2]
    assert found[1].tolist() == [0, 1, 2] * 16


def test_repeated_rows_that_differ_in_one_bit_are_distinct() -> None:
    rows = torch.zeros(64, 40)
    for place in range(4):
        rows[place::4].view(torch.int32)[:, 13 * place] = 1
    found = cpu.repeated_rows(rows)
    assert found is not None
    assert found[1].tolist() == [0, 1, 2, 3] * 16


LAYERS = {
    "default heads": {"width": 24},
    "odd sizes": {"width": 13, "heads": (5, 1, 4, 12)},
    "large head": {"width": 8, "heads": (300,)},
    "dictionary": {"width": 16, "heads": (4, 3), "dictionary": 3},
    "sampled": {**SAMPLED, "width": 16, "heads": (6, 3)},
    "chunks": {"width": 16, "heads": (6, 3), "chunk": 7},
    "sampled chunks": {**SAMPLED, "width": 16, "heads": (6, 3), "chunk": 7},
    "gate": {"width": 16, "heads": (6, 3), "gate": True},
}


def where(name: str, B: int, L: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(5)
    return {
        "whole": {},
        "lengths": {"lengths": torch.randint(0, L + 1, (B,), generator=generator)},
        "resets": {"resets": torch.rand(B, L, generator=generator) < 0.1},
    }[name]


def run(layer: NFSM, x: Tensor, call: dict[str, object]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    x = x.detach().requires_grad_()
    layer.zero_grad()
    y, state = layer(x, seed=11, **call)
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)).sum().backward()
    grads = {name: part.grad for name, part in [("input", x), *layer.named_parameters()] if part.grad is not None}
    return y.detach(), state, grads


@pytest.mark.parametrize("segments", ["whole", "lengths", "resets"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_pass_over_repeated_rows_is_that_of_all_rows(
    name: str, segments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    B, L = 6, 37
    torch.manual_seed(1)
    layer = NFSM(**LAYERS[name], backend="cpu").double()
    x, call = repeating(B * L, 9, layer.config.width, torch.float64).view(B, L, -1), where(segments, B, L)
    found: list[bool] = []
    look = cpu.repeated_rows
    monkeypatch.setattr(cpu, "repeated_rows", lambda rows: found.append(look(rows) is not None) or look(rows))
    y, state, grads = run(layer, x, call)
    with torch.no_grad():
        exact = layer.eval()(x, **call)
    assert found == [True] * 3  # forward, backward, evaluation
    monkeypatch.setattr(cpu, "repeated_rows", lambda rows: None)
    wanted = run(layer.train(), x, call)
    with torch.no_grad():
        wanted_exact = layer.eval()(x, **call)
    assert torch.equal(y, wanted[0])
    assert torch.equal(state, wanted[1])
    assert all(map(torch.equal, exact, wanted_exact))
    assert set(grads) == set(wanted[2])
    assert "input" in grads
    for part, right in wanted[2].items():
        torch.testing.assert_close(grads[part], right, **CLOSE, msg=lambda text, part=part: f"{part}: {text}")


def test_gradients_of_repeated_rows_do_not_depend_on_threads() -> None:
    torch.manual_seed(1)
    layer = NFSM(40, (12,) * 5, backend="cpu")
    x = repeating(8 * 700, 20, 40).view(8, 700, 40)
    made = []
    for threads in (1, 2, 3):
        before = native.set_threads(threads)
        try:
            made.append(run(layer, x, {})[2])
        finally:
            native.set_threads(before)
    for other in made[1:]:
        assert all(torch.equal(other[part], made[0][part]) for part in made[0])


def test_without_a_gradient_of_the_input() -> None:
    torch.manual_seed(1)
    layer = NFSM(10, (4, 3), backend="cpu").double()
    x = repeating(160, 5, 10, torch.float64).view(2, 80, 10)
    layer(x)[0].square().sum().backward()
    found = layer.weight.grad
    layer.zero_grad()
    layer(x.requires_grad_())[0].square().sum().backward()
    assert found is not None
    assert layer.weight.grad is not None
    assert torch.equal(found, layer.weight.grad)


@pytest.mark.parametrize("training", [True, False])
def test_a_row_without_an_arg_max_has_its_number_in_the_input(training: bool) -> None:
    layer = NFSM(4, (3,), backend="cpu").train(training)
    x = repeating(64, 2, 4)
    x[[7, 40]] = float("nan")
    with torch.set_grad_enabled(training), pytest.raises(InvalidInput, match="row 7 of the input gives NaN"):
        layer(x.view(2, 32, 4))


@pytest.mark.parametrize("padding", [float("nan"), float("inf"), 3e38])
def test_padding_that_has_no_arg_max_is_not_read(padding: float) -> None:
    torch.manual_seed(1)
    layer = NFSM(4, (3, 2), backend="cpu")
    with torch.no_grad():
        layer.weight *= 10  # so that logits of 3e38 overflow
    x, lengths = repeating(96, 3, 4).view(2, 48, 4), torch.tensor([40, 48])
    wanted = run(layer, x, {"lengths": lengths})
    with torch.no_grad():
        wanted_exact = layer.eval()(x, lengths=lengths)
    x[0, 40:] = padding
    found = run(layer.train(), x, {"lengths": lengths})
    with torch.no_grad():
        exact = layer.eval()(x, lengths=lengths)
    assert all(map(torch.equal, found[:2], wanted[:2]))
    assert all(map(torch.equal, exact, wanted_exact))
    for part, right in wanted[2].items():
        torch.testing.assert_close(found[2][part], right, atol=1e-5, rtol=1e-5)  # float32, the sums in another order

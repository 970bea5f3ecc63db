"""The output gate of the NFSM, against its equation, and what must not depend on how a sequence is cut."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import exactstate
from exactstate.errors import InvalidInput
from exactstate.nn import NFSM
from exactstate.nn.pruning import select_indices
from tests.conftest import backends_under_test


def gated(backend: str = "auto", **more: object) -> NFSM:
    settings = {"gate": True, "generator": torch.Generator().manual_seed(3), **more}
    return NFSM(6, (4, 3, 2), backend=backend, **settings)  # type: ignore[arg-type]


def by_equation(layer: NFSM, x: Tensor) -> Tensor:
    """out_proj(values of all heads * SiLU(gate_proj(x)))."""
    assert layer.gate_proj is not None
    parts = layer.one_hot_states(x).split(list(layer.heads), -1)
    values = torch.cat([part @ own for part, own in zip(parts, layer.values.split(list(layer.heads)), strict=True)], -1)
    return layer.out_proj(values * nn.functional.silu(layer.gate_proj(x)))


@pytest.mark.parametrize("backend", backends_under_test())
@pytest.mark.parametrize("length", [1, 2, 37])
def test_gate_is_its_equation_with_its_gradient(backend: str, length: int) -> None:
    layer = gated(backend).double()
    x = torch.randn(2, length, 6, dtype=torch.float64, requires_grad=True)
    parameters = [x, *layer.parameters()]
    y = layer(x)[0]
    expected = by_equation(layer, x)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)  # sums of at most 9 terms in another order
    ours, theirs = (torch.autograd.grad(one.square().sum(), parameters) for one in (y, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)  # sums over at most 74 rows


# PyTorch's SiLU is evaluated by vectors and, at the end of a tensor, by single numbers, whose last bits differ
ROUNDING = {"rtol": 0.0, "atol": 1e-6}


@pytest.mark.parametrize("backend", backends_under_test())
def test_gate_is_the_same_in_one_call_in_pieces_step_by_step_and_by_rows(backend: str) -> None:
    layer, rows, index = gated(backend).eval(), torch.randn(5, 6), torch.randint(0, 5, (3, 29))
    x = rows[index]
    with torch.no_grad():
        whole, last = layer(x)
        first, state = layer(x[:, :11])
        rest, state = layer(x[:, 11:], state)
        assert torch.equal(state, last)
        torch.testing.assert_close(torch.cat([first, rest], 1), whole, **ROUNDING)
        torch.testing.assert_close(layer((rows, index))[0], whole, **ROUNDING)
        state = None
        for t in range(29):
            y, state = layer.step(x[:, t], state)
            torch.testing.assert_close(y, whole[:, t], **ROUNDING)
        assert torch.equal(state, last)


def test_gate_of_removed_heads_goes_with_them() -> None:
    layer = gated().eval()
    with torch.no_grad():
        layer.values[4:7] = 0  # the second head adds nothing
        x = torch.randn(2, 20, 6)
        smaller = select_indices(layer, [range(4), [], range(2)])
        torch.testing.assert_close(smaller(x)[0], layer(x)[0], rtol=0, atol=1e-6)  # fewer terms in a sum


def test_gate_survives_saving(tmp_path) -> None:
    layer = gated().eval()
    layer.save_pretrained(tmp_path)
    x = torch.randn(1, 5, 6)
    with torch.no_grad():
        assert torch.equal(NFSM.from_pretrained(tmp_path).eval()(x)[0], layer(x)[0])


def test_extract_refuses_a_gate_by_the_name_of_its_layer() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.memory, self.readout = nn.Embedding(2, 6), gated(), nn.Linear(6, 2)

        def forward(self, words: Tensor) -> Tensor:
            return self.readout(self.memory(self.embedding(words))[0])

    with pytest.raises(InvalidInput, match=r"does not know output gates, and memory was built with gate=True"):
        exactstate.extract(Model().eval(), symbols=["a", "b"])

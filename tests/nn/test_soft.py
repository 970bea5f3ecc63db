"""Soft states against a loop over steps with matrices, and a softened layer in training and in evaluation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn import NFSM, soften

HEADS = (3, 3, 2, 3)


def build(**options):
    layer = NFSM(5, HEADS, initial_state=(1, 0, 1, 2), generator=torch.Generator().manual_seed(0), **options).double()
    soften(layer, 0.7)
    return layer


def inputs(length, batch=3, width=5):
    return torch.randn(batch, length, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_matrices(layer, x, temperature, state, lengths=None, resets=None):
    """(y, the distributions after the last step): one matrix per head and step, differentiated by autograd."""
    rows, finals = [], []
    for b in range(len(x)):
        held = [torch.eye(d, dtype=x.dtype)[k] for d, k in zip(layer.heads, state[b].tolist(), strict=True)]
        outputs = []
        for t in range(x.shape[1]):
            if lengths is None or t < lengths[b]:
                if resets is not None and resets[b, t]:
                    held = [
                        torch.eye(d, dtype=x.dtype)[k]
                        for d, k in zip(layer.heads, layer.config.initial_state, strict=True)
                    ]
                held = [
                    (theta / temperature).softmax(0) @ s for theta, s in zip(layer.logits(x[b, t]), held, strict=True)
                ]
            values = layer.values.split(layer.heads)
            read = torch.cat([s @ value for s, value in zip(held, values, strict=True)])
            if layer.gate_proj is not None:
                read = read * nn.functional.silu(layer.gate_proj(x[b, t]))
            outputs.append(layer.out_proj(read))
        rows.append(torch.stack(outputs))
        finals.append(torch.cat(held))
    return torch.stack(rows), torch.stack(finals)


@pytest.mark.parametrize("length", [1, 2, 7, 17])
@pytest.mark.parametrize("options", [{}, {"gate": True}, {"dictionary": 3}], ids=str)
def test_soft_pass_and_its_gradients_are_those_of_matrices(length, options):
    layer, x = build(**options), inputs(length).requires_grad_()
    state = torch.tensor([[2, 1, 0, 0], [0, 2, 1, 1], [1, 1, 1, 1]])
    weights = torch.randn(3, length, 5, dtype=torch.float64)
    wanted, finals = by_matrices(layer, x, 0.7, state)
    y, final = layer(x, state)
    torch.testing.assert_close(y, wanted, rtol=1e-10, atol=1e-12)  # float64 sums in another order
    assert [part.argmax(-1).tolist() for part in finals.split(HEADS, 1)] == final.T.tolist()
    leaves = [x, *layer.parameters()]
    for got, expected in zip(
        torch.autograd.grad((y * weights).sum(), leaves), torch.autograd.grad((wanted * weights).sum(), leaves),
        strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


def test_soft_pass_keeps_to_lengths_and_resets():
    layer, x = build(), inputs(9).requires_grad_()
    lengths, resets = torch.tensor([9, 4, 0]), torch.zeros(3, 9, dtype=torch.bool)
    resets[0, 3] = resets[1, 0] = resets[1, 2] = True
    y, final = layer(x, lengths=lengths, resets=resets)
    wanted, finals = by_matrices(layer, x, 0.7, layer.initial_state(3), lengths, resets)
    torch.testing.assert_close(y, wanted, rtol=1e-10, atol=1e-12)
    assert [part.argmax(-1).tolist() for part in finals.split(HEADS, 1)] == final.T.tolist()
    for got, expected in zip(
        torch.autograd.grad(y.square().sum(), [x, layer.weight]),
        torch.autograd.grad(wanted.square().sum(), [x, layer.weight]), strict=True,
    ):  # fmt: skip
        assert torch.isfinite(got).all()
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


def test_soft_pass_of_distinct_rows_and_an_index_is_that_of_the_rows():
    layer, rows = build(), inputs(1, batch=4)[:, 0]
    index = torch.tensor([[0, 3, 3, 1], [2, 2, 0, 1]])
    torch.testing.assert_close(layer((rows, index))[0], layer(rows[index])[0], rtol=1e-10, atol=1e-12)


def test_soft_states_at_a_low_temperature_are_the_exact_ones():
    layer, x = build(), inputs(40)
    exact, _ = layer.eval()(x)
    soften(layer, 1e-4)
    torch.testing.assert_close(layer.train()(x)[0], exact, rtol=0, atol=1e-9)


def test_evaluation_of_a_softened_layer_is_exact():
    layer, x = build(), inputs(33)
    softened = layer.eval()(x)
    assert not torch.allclose(layer.train()(x)[0], softened[0])
    soften(layer, None)
    for got, expected in zip(softened, layer.eval()(x), strict=True):
        assert torch.equal(got, expected)


def test_no_steps_give_the_state_that_came_in():
    layer, state = build(), torch.tensor([[2, 1, 0, 0], [0, 2, 1, 1], [1, 1, 1, 1]])
    y, final = layer(inputs(0), state)
    assert y.shape == (3, 0, 5)
    assert torch.equal(final, state)


def test_soften_reaches_every_layer_of_a_model_and_refuses_other_temperatures():
    model = nn.Sequential(nn.Linear(5, 5), NFSM(5, (2,)), nn.Sequential(NFSM(5, (3, 2))))
    soften(model, 2.0)
    assert [module.soft_temperature for module in model.modules() if isinstance(module, NFSM)] == [2.0, 2.0]
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidConfig, match="positive and finite, or None"):
            soften(model, wrong)


@pytest.mark.parametrize(
    ("options", "arguments", "name"),
    [
        ({"noise": True}, {}, "noise=True"),
        ({}, {"carry_gradient": True}, "carry_gradient=True"),
        ({}, {"cu_seqlens": torch.tensor([0, 4, 7])}, "cu_seqlens"),
    ],
)
def test_soft_states_refuse_what_they_cannot_do(options, arguments, name):
    x = inputs(7)[0] if "cu_seqlens" in arguments else inputs(7)
    with pytest.raises(InvalidInput, match=f"soft states do not work with {name}"):
        build(**options)(x, **arguments)

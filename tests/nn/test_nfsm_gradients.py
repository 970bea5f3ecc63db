"""The layer's estimator is the one-hot model differentiated by autograd, given the same noise."""

from __future__ import annotations

import pytest
import torch

from exactstate import native
from exactstate.nn import NFSM
from exactstate.ops.tables import one_hot
from tests.conftest import SAMPLED, backends_under_test
from tests.nn.one_hot_model import run_one_hot

# float64 sums of a few thousand terms of order one to ten; rounding is 1e-16 each
TOLERANCE = {"atol": 1e-10, "rtol": 1e-10}

SHAPES = {
    "one head": {"width": 8, "heads": (5,)},
    "three heads": {"width": 24, "heads": (4, 3, 2)},
    "equal heads": {"width": 17, "heads": (3, 3, 3)},
    "a single index": {"width": 5, "heads": (1, 2)},
    "wide": {"width": 33, "heads": (19,)},
    "dictionary": {"width": 12, "heads": (4, 3), "dictionary": 5},
    "own initial state": {"width": 8, "heads": (4, 3), "initial_state": (2, 1)},
    "cold": {"width": 8, "heads": (4,), "temperature": 0.1},
}


def build(name, backend, generator, **more):
    return NFSM(**{**SAMPLED, **SHAPES[name], **more}, backend=backend, generator=generator).double()


def gradients(layer, y, last, x, start, generator):
    """Gradients of a loss that sees every output and the last state, for everything that has one."""
    weights = torch.randn(y.shape, dtype=y.dtype, generator=generator)
    loss = (y * weights).sum() + (y**2).mean() + (last * torch.arange(last.shape[1], dtype=y.dtype)).sum()
    named = {"input": x, "state": start, **dict(layer.named_parameters())}
    found = torch.autograd.grad(loss, named.values(), allow_unused=True)
    return {name: gradient for name, gradient in zip(named, found, strict=True) if gradient is not None}


def check(layer, x, start, seed, generator, **where):
    seeds = generator.get_state()
    y, last = layer(x, start, seed=seed, carry_gradient=True, **where)
    found = gradients(layer, y, last, x, start, generator)
    generator.set_state(seeds)
    wanted_y, wanted_last = run_one_hot(layer, x, start, seed, noisy=layer.training and layer.config.noise, **where)
    wanted = gradients(layer, wanted_y, wanted_last, x, start, generator)
    torch.testing.assert_close(y, wanted_y, **TOLERANCE)
    assert torch.equal(last, wanted_last)
    assert set(found) == set(wanted)
    assert {"input", "state", "weight", "bias", "values"} <= set(found)
    for name in wanted:
        torch.testing.assert_close(
            found[name], wanted[name], **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}"
        )


def inputs(layer, B, L, generator):
    x = torch.randn(B, L, layer.config.width, dtype=torch.float64, generator=generator).requires_grad_()
    states = torch.stack([torch.randint(0, d, (B,), generator=generator) for d in layer.heads], dim=1)
    return x, one_hot(states, layer.heads, torch.float64).requires_grad_()


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("backend", backends_under_test())
@pytest.mark.parametrize("name", SHAPES)
def test_every_gradient_is_autograds(name, backend, generator):
    layer = build(name, backend, generator)
    check(layer, *inputs(layer, 2, 13, generator), seed=11, generator=generator)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("backend", backends_under_test())
@pytest.mark.parametrize("chunk", [1, 4, 13, 100])
def test_chunks_change_nothing(chunk, backend, generator):
    layer = build("three heads", backend, generator, chunk=chunk)
    check(layer, *inputs(layer, 2, 13, generator), seed=-3, generator=generator)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("chunk", [0, 4])
@pytest.mark.parametrize("backend", backends_under_test())
def test_padding_and_resets(backend, chunk, generator):
    layer = build("own initial state", backend, generator, chunk=chunk)
    x, start = inputs(layer, 4, 13, generator)
    lengths = torch.tensor([13, 0, 1, 8])
    resets = torch.rand(4, 13, generator=generator) < 0.25
    resets[3, 0] = True
    check(layer, x, start, 5, generator, lengths=lengths)
    check(layer, x, start, 5, generator, resets=resets)
    check(layer, x, start, 5, generator, lengths=lengths, resets=resets)


@pytest.mark.parametrize("backend", backends_under_test())
def test_without_noise_in_training_every_gradient_is_autograds(backend, generator):
    layer = build("three heads", backend, generator, noise=False)
    x, start = inputs(layer, 3, 17, generator)
    assert layer.training
    check(layer, x, start, 7, generator)


@pytest.mark.parametrize("backend", backends_under_test())
def test_without_noise_the_estimator_is_the_quiet_one(backend, generator):
    layer = build("three heads", backend, generator).eval()
    check(layer, *inputs(layer, 2, 9, generator), seed=0, generator=generator)


@pytest.mark.parametrize("backend", backends_under_test())
def test_shared_rows_are_the_same_rows(backend, generator):
    layer = build("three heads", backend, generator)
    rows = torch.randn(4, 24, dtype=torch.float64, generator=generator).requires_grad_()
    index = torch.randint(0, 4, (3, 30), generator=generator)
    for chunk in (0, 7):
        layer.config = NFSM.Config(width=24, heads=(4, 3, 2), chunk=chunk)
        found, wanted = [], []
        for x, kept in (((rows, index), found), (rows[index], wanted)):
            y, state = layer(x, seed=4)
            gradient = torch.autograd.grad((y**2).sum(), [rows, *layer.parameters()])
            kept.extend([y, state, *gradient])
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, **TOLERANCE)


@pytest.mark.parametrize("backend", backends_under_test())
def test_packed_sequences_are_the_same_sequences(backend, generator):
    layer = build("three heads", backend, generator)
    lengths, L = torch.tensor([5, 0, 9, 1]), 9
    x, start = inputs(layer, 4, L, generator)
    boundaries = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    read = torch.arange(L) < lengths[:, None]
    y, last = layer(x, start, lengths=lengths, seed=6, carry_gradient=True)
    packed, packed_last = layer(x[read], start, cu_seqlens=boundaries, seed=6, carry_gradient=True)
    assert torch.equal(packed, y[read])
    assert torch.equal(packed_last, last)
    along = (read[..., None] * torch.randn(4, L, 24, dtype=torch.float64, generator=generator)).detach()
    one = torch.autograd.grad((y * along).sum() + last.square().sum(), [x, start, *layer.parameters()])
    two = torch.autograd.grad(
        (packed * along[read]).sum() + packed_last.square().sum(), [x, start, *layer.parameters()]
    )
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a, b, **TOLERANCE)


@pytest.mark.parametrize("backend", backends_under_test())
def test_the_gradient_crosses_calls_when_asked_to(backend, generator):
    """Two calls with the carried one-hot state give the gradient of one long call (noise off, so both see the same)."""
    layer = build("three heads", backend, generator).eval()
    x, start = inputs(layer, 2, 20, generator)

    def loss(y):
        return (y * torch.arange(y.shape[1], dtype=y.dtype)[:, None]).square().sum()

    whole, _ = layer(x, start)
    wanted = torch.autograd.grad(loss(whole), [x, start, layer.weight])
    first, state = layer(x[:, :8], start, carry_gradient=True)
    second, _ = layer(x[:, 8:], state)
    found = torch.autograd.grad(loss(torch.cat([first, second], dim=1)), [x, start, layer.weight])
    assert torch.equal(torch.cat([first, second], dim=1), whole)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-9)  # the loss is of order 1e5


def test_a_wrong_gradient_is_noticed(generator, monkeypatch):
    """The oracle barks: an estimator that divides by the temperature twice does not pass."""
    from exactstate.ops import cpu

    honest = cpu.surrogate_backward_

    def dishonest(source, segments, starts, states, lam, heads, noise, temperature, gradients):
        lam.mul_(1 / temperature)
        honest(source, segments, starts, states, lam, heads, noise, temperature, gradients)

    monkeypatch.setattr(cpu, "surrogate_backward_", dishonest)
    layer = build("three heads", "cpu", generator)
    with pytest.raises(AssertionError):
        check(layer, *inputs(layer, 2, 9, generator), seed=11, generator=generator)


# of the largest entry: float32 sums of 800 terms in another order err by about sqrt(800) 2^-24
SINGLE = 5e-6


def test_single_precision_agrees_too(generator):
    found = {}
    x = torch.randn(4, 200, 64, generator=generator)
    for backend in ("reference", "cpu"):
        layer = NFSM(64, (16, 5), **SAMPLED, backend=backend, generator=torch.Generator().manual_seed(3))
        y, state = layer(x, seed=1)
        y.square().sum().backward()
        found[backend] = [y.detach(), state, *(parameter.grad for parameter in layer.parameters())]
    assert torch.equal(found["cpu"][0], found["reference"][0])
    assert torch.equal(found["cpu"][1], found["reference"][1])
    for one, other in zip(found["cpu"][2:], found["reference"][2:], strict=True):
        assert float((one - other).abs().max() / other.abs().max()) < SINGLE


@pytest.mark.skipif(not native.available(), reason="no compiled kernels here")
@pytest.mark.parametrize("heads", [(12,) * 16, (2,), (20, 1, 3)])
def test_gradients_of_several_blocks_of_rows_agree_for_any_number_of_threads(generator, heads):
    x = torch.randn(3, 450, 70, dtype=torch.float64, generator=generator)
    found, before = [], native.threads()
    try:
        for backend, threads in (("tree", 1), ("cpu", 1), ("cpu", 2), ("cpu", 7)):
            native.set_threads(threads)
            rows = x.clone().requires_grad_()
            layer = NFSM(70, heads, **SAMPLED, backend=backend, generator=torch.Generator().manual_seed(3)).double()
            layer(rows, seed=1)[0].square().mean().backward()
            found.append([rows.grad, *(parameter.grad for parameter in layer.parameters())])
    finally:
        native.set_threads(before)
    for parts in zip(*found, strict=True):
        assert all(torch.equal(parts[1], part) for part in parts[2:])
        torch.testing.assert_close(parts[1], parts[0], **TOLERANCE)

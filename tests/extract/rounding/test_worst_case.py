"""The bound is real: no machine leaves it, whatever its format, order and way to normalise; and it is not idle.

Against the network in fifty digits. The factor between the bound and the worst error that was found is asserted.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache

import numpy as np
import pytest
import torch

from exactstate.extract.rounding import Assumptions, bounds
from exactstate.number_formats import NETWORK_FORMATS
from exactstate.ops import interface as backends
from tests.conftest import backends_under_test
from tests.extract.rounding.adversary import Adversary, worst
from tests.extract.rounding.examples import build, flat, rows_of
from tests.extract.rounding.machines import MOMENTS, ORDERS, Machine, Network
from tests.extract.rounding.real import Real

TOKENS = np.arange(3)


@lru_cache(maxsize=8)
def known(width):
    """(model, rows, logits of the tokens and labels of the rows in real numbers)."""
    model = build(width)
    rows = rows_of(model, 6)
    return model, rows, Real(model).one_layer(TOKENS, rows)


@lru_cache(maxsize=32)
def bounded(width, format, assumptions=None):
    """(logits, their bounds, labels, their bounds)."""
    model, rows, _ = known(width)
    found = bounds(model, format, assumptions=assumptions)
    labels, _ = found.traced.read_out(rows)
    return flat(found.theta), flat(found.logits), *labels


def used_up(computed, width, format, assumptions=None):
    """The largest share of its bound that any logit and any label is off by, from real numbers and from theta."""
    _, _, real = known(width)
    theta, errors, labels, label_errors = bounded(width, format, assumptions)
    logits = [np.abs(computed[0] - true) / errors for true in (real[0], theta)]
    said = [np.abs(computed[1] - true) / label_errors for true in (real[1], labels)]
    return np.max(logits), np.max(said)


def machines(format, seed, **settings):
    draw = np.random.default_rng(seed)
    for order in ORDERS:
        for moments in MOMENTS:
            for apart in (False, True):
                yield Machine(format, order, moments, draw, bias_apart=apart, **settings)


@pytest.mark.parametrize("width", [8, 13])
def test_bounds_theta_is_the_real_network(width):
    _, _, real = known(width)
    theta, errors, labels, label_errors = bounded(width, "float64")
    assert (np.abs(theta - real[0]) <= errors).all()
    assert (np.abs(labels - real[1]) <= label_errors).all()
    assert max(errors.max(), label_errors.max()) < 1e-10


@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("width", [8, 13])
def test_bounds_cover_every_machine(format, width):
    model, rows, _ = known(width)
    shares = [
        used_up(Network(model, machine).one_layer(TOKENS, rows), width, format) for machine in machines(format, seed=0)
    ]
    assert np.max(shares) <= 1
    # the rounding of machines is not malicious; within two orders of magnitude all the same
    assert np.max(shares, axis=0)[0] > 1 / 200


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
def test_bounds_cover_machines_with_nothing_but_the_format(format):
    model, rows, _ = known(8)
    assumed = Assumptions(inside="same")
    theta, errors, _, _ = bounded(8, format, assumed)
    if format == "float16":
        assert errors.max() < np.ptp(theta)
    for machine in machines(format, seed=1, same=True):
        with np.errstate(over="ignore"):
            computed = Network(model, machine).one_layer(TOKENS, rows)
        assert np.max(used_up(computed, 8, format, assumed)) <= 1


def by_torch(model, rows):
    """Logits of the tokens and of the labels, by torch in the type of the parameters."""
    (layer,), tokens, rows = model.layers, torch.arange(3), torch.as_tensor(rows)
    block, h = layer.block, model.encode(tokens)
    moves = flat([part.double().numpy() for part in block.logits(layer.block_input(h)[0])])
    values, weight, bias = (block._cast(part) for part in (block.values, block.out_proj.weight, block.out_proj.bias))
    kernels = backends.kernels(block.backend)
    y = kernels.read_out(
        kernels.project_values(values, weight, block.heads), bias, rows[:, 1:].contiguous(), block.heads
    )
    return moves, model.label_logits(layer.feed_forward(h[rows[:, 0]] + y.to(h.dtype))).double().numpy()


def reordered(model, generator):
    """The same function of tokens, with the dimensions of every sum in another order."""
    model = deepcopy(model)
    width = torch.randperm(model.width, generator=generator)
    written = (".down.", ".out_proj.", "encoder_norm.", "final_norm.", ".norm1.", ".norm2.")
    read = ("gate.weight", "up.weight", "embedding.weight", "readout.weight", "block.weight")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if any(part in f".{name}" for part in written):
                parameter.copy_(parameter[width].clone())
            elif name.endswith(read):
                parameter.copy_(parameter[:, width].clone())
        for mlp in (model.encoder, model.layers[0].mlp, model.decoder):
            hidden = torch.randperm(len(mlp.gate.bias), generator=generator)
            for linear in (mlp.gate, mlp.up):
                linear.weight.copy_(linear.weight[hidden].clone())
                linear.bias.copy_(linear.bias[hidden].clone())
            mlp.down.weight.copy_(mlp.down.weight[:, hidden].clone())
    return model


@torch.no_grad()
@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("backend", backends_under_test())
def test_bounds_cover_torch_in_any_order(format, backend, generator):
    model, rows, real = known(13)
    model = deepcopy(model)
    model.layers[0].block.backend = backend
    for _ in range(10):
        model = reordered(model, generator)
        np.testing.assert_allclose(by_torch(deepcopy(model).double(), rows)[1], real[1], rtol=1e-9)
        computed = by_torch(deepcopy(model).to(getattr(torch, format)), rows)
        assert np.max(used_up(computed, 13, format)) <= 1


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_bounds_are_within_a_factor_of_the_worst_machine(format):
    model, rows, _ = known(13)
    _, errors, _, label_errors = bounded(13, format)
    assumed = bounds(model, format).assumptions
    arithmetic = assumed.arithmetic(format)
    # the adversary pushes from the network of the stored parameters
    stored = deepcopy(model).to(getattr(torch, format))
    adversary = Adversary(stored, store=arithmetic.unit, inner=arithmetic.inner.unit, assumed=assumed)
    factors = [errors[0, e] / worst(adversary, lambda: adversary.logits(0), e) for e in range(len(errors[0]))]
    row = rows[0].tolist()
    behind = [label_errors[0, e] / worst(adversary, lambda: adversary.labels(row), e) for e in range(5)]
    assert min(factors) >= 1
    assert max(factors) < 20
    assert min(behind) >= 1
    if format != "bfloat16":  # there, errors are no longer small and their products count
        assert max(behind) < 100


def test_bounds_that_are_shrunk_are_exceeded():
    """The guards above bark: a hundredth of the bound is too little for some order, a twentieth for the worst."""
    model, rows, _ = known(8)
    shares = [used_up(Network(model, m).one_layer(TOKENS, rows), 8, "float32")[0] for m in machines("float32", seed=0)]
    assert max(shares) > 1 / 100
    assumed = bounds(model, "float32").assumptions
    adversary = Adversary(model, store=0.0, inner=2.0**-24, assumed=assumed)
    errors = bounded(8, "float32")[1]
    assert worst(adversary, lambda: adversary.logits(0), 0) > errors[0, 0] / 20


@pytest.mark.slow
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_bounds_at_full_width(format):
    """No oracle of fifty digits here; theta, which was held to it above, takes its place."""
    model = build(128, ((5, 3),), symbols=3, labels=40)
    rows, found = rows_of(model, 8), bounds(model, format)
    labels, _ = found.traced.read_out(rows)
    for machine in machines(format, seed=2):
        moves, said = Network(model, machine).one_layer(TOKENS, rows)
        assert (np.abs(moves - flat(found.theta)) <= flat(found.logits)).all()
        assert (np.abs(said - labels.theta) <= labels.errors).all()
    arithmetic = found.assumptions.arithmetic(format)
    stored = deepcopy(model).to(getattr(torch, format))
    adversary = Adversary(stored, store=arithmetic.unit, inner=arithmetic.inner.unit, assumed=found.assumptions)
    factors = [flat(found.logits)[0, e] / worst(adversary, lambda: adversary.logits(0), e) for e in range(3)]
    assert min(factors) >= 1
    assert max(factors) < 20

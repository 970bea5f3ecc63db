"""The bound is real: no machine leaves it, whatever its format, order and way to normalize; and it is not idle.

Whole backbones, against the network in fifty digits. The factor between the bound and the worst error that was found is
asserted.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache

import numpy as np
import pytest
import torch

from exactstate.extract import extract, rounding_errors
from exactstate.extract.graph import leads as leads_module
from exactstate.extract.graph.arithmetic import ASSUMED, Assumptions
from exactstate.number_formats import NETWORK_FORMATS
from exactstate.ops import interface as backends
from tests.conftest import backends_under_test
from tests.extract.graph.adversary import Adversary, worst
from tests.extract.graph.examples import Bounded, build, flat, rows_of
from tests.extract.graph.machines import MOMENTS, ORDERS, Machine, Network
from tests.extract.graph.real import Real

TOKENS = np.arange(3)


@lru_cache(maxsize=8)
def known(width):
    """(model, rows, logits of the tokens and labels of the rows in real numbers)."""
    model = build(width)
    rows = rows_of(model, 6)
    return model, rows, Real(model).one_layer(TOKENS, rows)


@lru_cache(maxsize=32)
def bounded(width, format, assumptions=None, quick=False):
    """Intervals of the logits of the tokens and of the labels."""
    model, rows, _ = known(width)
    found = Bounded(model, format, assumptions=assumptions, quick=quick)
    return found.logits(0, TOKENS[:, None]), found.labels(rows)


def used_up(computed, width, format, assumptions=None, quick=False):
    """The largest share of its bound that any logit and any label is off by."""
    pairs = zip(computed, bounded(width, format, assumptions, quick), strict=True)
    return [np.max(np.abs(values - found.mid) / found.rad) for values, found in pairs]


def machines(format, seed, **settings):
    draw = np.random.default_rng(seed)
    for order in ORDERS:
        for moments in MOMENTS:
            for apart in (False, True):
                yield Machine(format, order, moments, draw, bias_apart=apart, **settings)


@pytest.mark.parametrize("width", [8, 13])
def test_real_network_is_inside(width):
    _, _, real = known(width)
    for true, found in zip(real, bounded(width, "float64"), strict=True):
        assert (np.abs(found.mid - true) <= found.rad).all()
        assert found.rad.max() < 1e-10


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("format", NETWORK_FORMATS)
@pytest.mark.parametrize("width", [8, 13])
def test_bounds_cover_every_machine(format, width, quick):
    model, rows, _ = known(width)
    shares = [
        used_up(Network(model, machine).one_layer(TOKENS, rows), width, format, quick=quick)
        for machine in machines(format, seed=0)
    ]
    assert np.max(shares) <= 1
    # the rounding of machines is not malicious; within two orders of magnitude all the same
    assert np.max(shares, axis=0)[0] > 1 / 200


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
def test_bounds_cover_machines_with_nothing_but_the_format(format):
    model, rows, _ = known(8)
    assumed = Assumptions(inside="same")
    if format == "float16":
        assert all(found.rad.max() < np.inf for found in bounded(8, format, assumed)[:1])
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


def factors_to_the_worst(model, format, found, entries, row=None):
    """The bound over the error of a machine whose every operation errs in the direction that hurts most."""
    arithmetic = ASSUMED[format].arithmetic(format)
    stored = deepcopy(model).to(getattr(torch, format))
    adversary = Adversary(stored, store=arithmetic.unit, inner=arithmetic.inner.unit, assumed=ASSUMED[format])
    reads = (lambda: adversary.logits(0)) if row is None else (lambda: adversary.labels(row))
    return [found.rad[0, entry] / worst(adversary, reads, entry) for entry in range(entries)]


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_bounds_are_within_a_factor_of_the_worst_machine(format):
    model, rows, _ = known(13)
    logits, labels = bounded(13, format)
    factors = factors_to_the_worst(model, format, logits, logits.rad.shape[1])
    behind = factors_to_the_worst(model, format, labels, 5, rows[0].tolist())
    assert min(factors) >= 1
    assert max(factors) < 15
    assert min(behind) >= 1
    if format != "bfloat16":  # there, errors are no longer small and their products count
        assert max(behind) < 80


def test_bounds_that_are_shrunk_are_exceeded():
    """The guards above bark: a hundredth of the bound is too little for some order, a fifteenth for the worst."""
    model, rows, _ = known(8)
    shares = [used_up(Network(model, m).one_layer(TOKENS, rows), 8, "float32")[0] for m in machines("float32", seed=0)]
    assert max(shares) > 1 / 100
    assert max(factors_to_the_worst(model, "float32", bounded(8, "float32")[0], 1)) < 15


@pytest.mark.slow
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_bounds_at_full_width(format):
    model = build(128, ((5, 3),), symbols=3, labels=40)
    rows, found = rows_of(model, 8), Bounded(model, format)
    logits, labels = found.logits(0, TOKENS[:, None]), found.labels(rows)
    for machine in machines(format, seed=2):
        moves, said = Network(model, machine).one_layer(TOKENS, rows)
        assert (np.abs(moves - logits.mid) <= logits.rad).all()
        assert (np.abs(said - labels.mid) <= labels.rad).all()
    factors = factors_to_the_worst(model, format, logits, 3)
    assert min(factors) >= 1
    assert max(factors) < 15


INPUTS = np.array([[0, 0, 0], [1, 2, 1], [2, 1, 0], [0, 1, 1]])
"""Of the second layer: a token, and the indices of the first layer."""
WINDOWS = ([[-1, 0]], [[0, 1]]), ([[-1, 0]], [[0, 1], [3, 2]])
"""Of each layer, those of words that began equally long ago."""
READS = np.array([[0, 1, 1], [3, 0, 1]])
"""Of the read-out: an input of the second layer, and its indices."""


@pytest.fixture(scope="module")
def stack():
    return build(7, ((3, 2), (2, 2)), reach=2, dictionary=5, answers=3)


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_bounds_cover_every_machine_on_a_stack(stack, format):
    """Two layers, a convolution, a dictionary."""
    found, draw = Bounded(stack, format, inputs=[INPUTS]), np.random.default_rng(0)
    logits = [[found.logits(layer, np.array(some)) for some in WINDOWS[layer]] for layer in (0, 1)]
    labels = found.labels(READS)
    assert labels.mid.shape == (2, stack.labels + 3)
    largest = []
    for order in ORDERS:
        for moments in MOMENTS:
            network = Network(stack, Machine(format, order, moments, draw))
            h = network.encode(TOKENS)
            above = network.above(0, h[INPUTS[:, 0]], INPUTS[:, 1:])
            for layer, stream in enumerate((h, above)):
                seen = network.normalise(layer, stream)
                for some, intervals in zip(WINDOWS[layer], logits[layer], strict=True):
                    at = [np.where(n[:, None] >= 0, seen[n], np.float32(0)) for n in np.array(some).T]
                    off = np.abs(network.logits(layer, network.convolve(layer, at)) - intervals.mid)
                    assert (off <= intervals.rad).all()
                    largest.append((off / intervals.rad).max())
            said = network.label(network.above(1, above[READS[:, 0]], READS[:, 1:]))
            off = np.abs(said - labels.mid[:, : stack.labels])
            assert (off <= labels.rad[:, : stack.labels]).all()
    assert max(largest) > 1 / 300


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_convolution_of_taps_that_cancel_is_as_uncertain_as_its_terms(format):
    model, draw = build(8, reach=2, seed=4), np.random.default_rng(0)
    with torch.no_grad():
        weight = model.layers[0].conv.weight
        weight[:, 0], weight[:, 1] = 96.0, -96.0
        model.embedding.weight[1] = model.embedding.weight[0] * 1.001
    found = Bounded(model, format).logits(0, np.array([[0, 1], [1, 0]]))
    for order in ORDERS:
        network = Network(model, Machine(format, order, "two passes", draw))
        seen = network.normalise(0, network.encode(TOKENS))
        computed = network.logits(0, network.convolve(0, [seen[[0, 1]], seen[[1, 0]]]))
        assert (np.abs(computed - found.mid) <= found.rad).all()


# Leads: what a margin may lose


def alike(labels):
    """Read-outs that differ in little: a lead is small, and so is what moves it."""
    model = build(16, labels=labels)
    with torch.no_grad():
        weight = model.readout.weight
        model.readout.weight.copy_(weight[:1] + 0.05 * (weight - weight[:1]))
        model.readout.bias.copy_(torch.linspace(0.0, 0.6, labels))
    return model


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_no_machine_loses_more_than_the_errors_of_an_extraction(format, many, quick, monkeypatch):
    """`many`: as for thousands of labels, without differences of rows."""
    monkeypatch.setattr(leads_module, "WIDE", 0 if many else 1 << 30)
    monkeypatch.setattr("exactstate.extract.rounding.MANY", 0 if quick else 1 << 30)
    model = alike(9).to(getattr(torch, format)).float()  # so that every format stores the parameters
    machine = extract(model, verify=False)
    errors = rounding_errors(model, machine, format, verify=False)
    rows, best = machine.readout_inputs, machine.label_ids
    for order in ORDERS:
        network = Network(model, Machine(format, order, MOMENTS[0], np.random.default_rng(1)))
        said = network.label(network.above(0, network.encode(rows[:, 0]), rows[:, 1:])).astype(float)
        chosen = said[np.arange(len(best)), best]
        said[np.arange(len(best)), best] = -np.inf
        assert (chosen - said.max(1) >= machine.label_margins - 2 * errors.labels).all()


def test_leads_prove_what_single_logits_do_not():
    model = alike(5)
    machine = extract(model, verify=False)
    errors = rounding_errors(model, machine, "float16", verify=False)
    logits = Bounded(model, "float16").labels(machine.readout_inputs)
    assert (machine.label_margins > 2 * errors.labels).all()
    assert not (machine.label_margins > 2 * logits.rad.max(1)).all()

"""`Traced`: bounds at windows and read-outs, and how much of a lead rounding may take."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.extract.network import EvaluatedNetwork
from exactstate.extract.rounding import BoundedLogits, Traced, bounds
from exactstate.extract.rounding import network as rounding_network
from exactstate.extract.rounding.arithmetic import EXACT
from exactstate.extract.rounding.tracing import _apart, at_risk
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.rounding.examples import build, flat, rows_of
from tests.extract.rounding.machines import MOMENTS, ORDERS, Machine, Network
from tests.extract.rounding.real import Real

HEADS = ((3, 2), (2, 2))
INPUTS = np.array([[0, 0, 0], [1, 2, 1], [2, 1, 0], [0, 1, 1]])
"""Of the second layer: a token, and the indices of the first layer."""
WINDOWS = np.array([[-1, 0], [0, 1], [3, 2]])
READS = np.array([[0, 1, 1], [3, 0, 1]])
"""Of the read-out: an input of the second layer, and its indices."""


def really(network):
    """Logits of both layers at their windows, and labels of the read-outs, by the oracle."""
    h = [network.encode(token) for token in range(3)]
    above = [network.above(0, h[row[0]], row[1:]) for row in INPUTS]
    layers = []
    for layer, stream in enumerate((h, above)):
        seen = [network.normalise(layer, x) for x in stream]
        nothing = [0.0 * value for value in seen[0]]
        at = [[seen[i] if i >= 0 else nothing for i in window] for window in windows(layer)]
        layers.append(np.array([network.logits(layer, network.convolve(layer, window)) for window in at], float))
    said = [network.label(network.above(1, above[row[0]], row[1:])) for row in READS]
    return *layers, np.array(said, float)


def computed_by(network):
    """The same on a machine, all rows at once."""
    h = network.encode(np.arange(3))
    above = network.above(0, h[INPUTS[:, 0]], INPUTS[:, 1:])
    layers = []
    for layer, stream in enumerate((h, above)):
        seen = network.normalise(layer, stream)
        at = [np.where(numbers[:, None] >= 0, seen[numbers], np.float32(0)) for numbers in windows(layer).T]
        layers.append(network.logits(layer, network.convolve(layer, at)))
    return *layers, network.label(network.above(1, above[READS[:, 0]], READS[:, 1:]))


def windows(layer):
    return WINDOWS[:2] if layer == 0 else WINDOWS


def traced_of(model, format):
    traced = Traced(model, format)
    traced.add_inputs(1, INPUTS[:1])
    traced.add_inputs(1, INPUTS[1:])
    return traced


@pytest.fixture(scope="module")
def stack():
    model = build(7, HEADS, reach=2, dictionary=5, answers=3)
    return model, really(Real(model))


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_traced_covers_every_machine_on_a_stack(stack, format):
    model, real = stack
    traced, draw = traced_of(model, format), np.random.default_rng(0)
    labels, answers = traced.read_out(READS)
    found = [traced.logits(layer, windows(layer)) for layer in (0, 1)]
    theta = [flat([head.theta for head in heads]) for heads in found] + [labels.theta]
    errors = [flat([head.errors for head in heads]) for heads in found] + [labels.errors]
    assert answers is not None
    assert answers.theta.shape == (2, 3)
    for mine, true in zip(theta, real, strict=True):
        np.testing.assert_allclose(mine, true, rtol=1e-12, atol=1e-12)
    largest = []
    for order in ORDERS:
        for moments in MOMENTS:
            computed = computed_by(Network(model, Machine(format, order, moments, draw)))
            shares = [np.max(np.abs(c - r) / e) for c, r, e in zip(computed, real, errors, strict=True)]
            assert max(shares) <= 1
            largest.append(shares)
    assert np.max(largest, axis=0)[0] > 1 / 300


def test_bounded_logits_count_the_distance_of_the_two_networks():
    real, computed = (np.array([[1.0]]), np.array([[0.25]])), (np.array([[3.0]]), np.array([[0.5]]))
    found = BoundedLogits.between(real, computed)
    assert found.theta == [[1.0]]
    assert 2.75 <= found.errors[0, 0] < 2.7501


def test_traced_tables_are_those_of_the_evaluated_network(stack):
    model, _ = stack
    evaluated, traced = EvaluatedNetwork(model, 3, "float64"), traced_of(model, "float32")
    evaluated.add_inputs(1, INPUTS)
    for layer in (0, 1):
        mine, other = traced.tables(layer, windows(layer)), evaluated.tables(layer, windows(layer))
        assert np.array_equal(mine.best, other.best)
        np.testing.assert_allclose(mine.margins, other.margins, rtol=1e-9)
        assert mine.errors.shape == mine.margins.shape
    (said, answered), *_ = evaluated.read_out(READS)
    labels, answers = traced.labels(READS)
    assert answers is not None
    assert answered is not None
    for mine, other in ((labels, said), (answers, answered)):
        assert np.array_equal(mine.best, other.best)
        np.testing.assert_allclose(mine.margins, other.margins, rtol=1e-9)


def test_map_batches_gives_the_same_for_every_batch_size(stack, monkeypatch):
    model, _ = stack
    whole = traced_of(model, "float32")
    monkeypatch.setattr(rounding_network, "AT_ONCE", 1)
    parts = traced_of(model, "float32")
    for one, other in zip(whole.labels(READS), parts.labels(READS), strict=True):
        assert np.array_equal(one.best, other.best)
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-3)
    np.testing.assert_allclose(whole.tables(1, WINDOWS).errors, parts.tables(1, WINDOWS).errors, rtol=1e-3)


TOKENS = np.arange(3)


def shares(model, rows, format):
    """(theta, best, the share at risk of every lead)."""
    traced = Traced(model, format)
    x, z = traced.real.decoded(rows), traced.computed.decoded(rows)
    real, computed = traced.real.stages.readout, traced.computed.stages.readout
    theta = real(x.mid)
    best = theta.argmax(-1)
    return theta, best, at_risk(real, x, computed, z, traced.computed.stages.arithmetic, best)


def lost(theta, best, said):
    """The share of every lead that a machine has lost or won."""
    rows = np.arange(len(best))
    lead, gap = (part[rows, best][:, None] - part for part in (theta, said))
    return np.abs(gap - lead) / np.where(lead > 0, lead, np.inf)


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_at_risk_covers_every_machine(format):
    model = build(13)
    rows, draw = rows_of(model, 6), np.random.default_rng(3)
    theta, best, share = shares(model, rows, format)
    assert (share[np.arange(len(best)), best] == 0).all()
    for order in ORDERS:
        for moments in MOMENTS:
            _, said = Network(model, Machine(format, order, moments, draw)).one_layer(TOKENS, rows)
            assert (lost(theta, best, said) <= share).all()


def test_at_risk_of_float32_does_not_cover_float16():
    """The bound for float32 is none for float16: the comparison above can fail."""
    model = build(13)
    rows = rows_of(model, 6)
    theta, best, share = shares(model, rows, "float32")
    coarse = Machine("float16", ORDERS[0], MOMENTS[0], np.random.default_rng(0))
    _, said = Network(model, coarse).one_layer(TOKENS, rows)
    assert (lost(theta, best, said) > share).any()


def test_apart_is_an_upper_bound_of_the_distance():
    stages = Traced(build(16, labels=9), "float32").real.stages
    best, weight = np.array([3, 0, 3, 8]), stages.readout.weight
    true = np.linalg.norm(weight[best][:, None] - weight, axis=-1)
    bound = _apart(stages.readout, best)
    assert (bound >= true).all()
    assert (bound <= true + 1e-6).all()


def alike(labels=5):
    """Read-outs that differ in little: a lead is small, and so is what moves it."""
    model = build(16, labels=labels)
    with torch.no_grad():
        weight = model.readout.weight
        model.readout.weight.copy_(weight[:1] + 0.05 * (weight - weight[:1]))
        model.readout.bias.copy_(torch.linspace(0.0, 0.6, labels))
    return model


def test_bounded_argmax_proves_leads_that_single_logits_do_not():
    model = alike()
    rows = rows_of(model, 8)
    found = bounds(model, "float16")
    ends, _ = found.traced.read_out(rows)
    sorted_ = np.sort(ends.theta, axis=-1)
    assert (sorted_[:, -1] - sorted_[:, -2] < 2 * ends.errors.max(-1)).all()
    decided = found.readout(rows)
    assert decided.proved.all()
    for order in ORDERS:
        machine = Machine("float16", order, MOMENTS[0], np.random.default_rng(1))
        _, said = Network(model, machine).one_layer(TOKENS, rows)
        assert np.array_equal(said.argmax(-1), decided.best)


def test_bounded_argmax_keeps_errors_that_prove():
    model = build(13)
    rows = rows_of(model, 6)
    found = bounds(model, "float32")
    ends, _ = found.traced.read_out(rows)
    decided = found.readout(rows)
    assert decided.proved.all()
    assert np.array_equal(decided.errors, ends.errors.max(-1))


def test_at_risk_in_real_numbers_is_almost_nothing():
    model = build(13)
    rows = rows_of(model, 6)
    traced = Traced(model, "float32")
    x, readout = traced.real.decoded(rows), traced.real.stages.readout
    best = readout(x.mid).argmax(-1)
    assert at_risk(readout, x, readout, x, EXACT, best).max() < 1e-8

"""Stacks, convolutions, dictionaries, answers: windows of numbered inputs, against fifty digits and odd machines."""

from __future__ import annotations

import numpy as np
import pytest

from detent.extract.network import Evaluated
from detent.extract.rounding import Bounded, Traced
from detent.extract.rounding import batches as batching
from tests.extract.rounding.examples import build, flat
from tests.extract.rounding.machines import MOMENTS, ORDERS, Machine, Network
from tests.extract.rounding.real import Real

FORMATS = ("float32", "float16", "bfloat16")
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
    traced.enter(1, INPUTS[:1])
    traced.enter(1, INPUTS[1:])
    return traced


@pytest.fixture(scope="module")
def stack():
    model = build(7, HEADS, reach=2, dictionary=5, answers=3)
    return model, really(Real(model))


@pytest.mark.parametrize("format", FORMATS)
def test_no_machine_leaves_the_bounds_of_a_stack(stack, format):
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


def test_the_distance_of_the_two_networks_is_counted():
    real, computed = (np.array([[1.0]]), np.array([[0.25]])), (np.array([[3.0]]), np.array([[0.5]]))
    found = Bounded.between(real, computed)
    assert found.theta == [[1.0]]
    assert 2.75 <= found.errors[0, 0] < 2.7501


def test_choices_are_those_of_the_network_that_is_explored(stack):
    model, _ = stack
    evaluated, traced = Evaluated(model, 3, "float64"), traced_of(model, "float32")
    evaluated.enter(1, INPUTS)
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


def test_batches_of_any_size_give_the_same(stack, monkeypatch):
    model, _ = stack
    whole = traced_of(model, "float32")
    monkeypatch.setattr(batching, "AT_ONCE", 1)
    parts = traced_of(model, "float32")
    for one, other in zip(whole.labels(READS), parts.labels(READS), strict=True):
        assert np.array_equal(one.best, other.best)
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-3)
    np.testing.assert_allclose(whole.tables(1, WINDOWS).errors, parts.tables(1, WINDOWS).errors, rtol=1e-3)

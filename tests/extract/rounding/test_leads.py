"""Leads are known better than their ends: no machine takes more of one than it may, and close rows risk less."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from detent.extract.rounding import bounds
from detent.extract.rounding.formats import EXACT
from detent.extract.rounding.tracing import Traced, _apart, at_risk
from tests.extract.rounding.examples import build, rows_of
from tests.extract.rounding.machines import MOMENTS, ORDERS, Machine, Network

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


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
def test_no_machine_takes_more_than_is_at_risk(format):
    model = build(13)
    rows, draw = rows_of(model, 6), np.random.default_rng(3)
    theta, best, share = shares(model, rows, format)
    assert (share[np.arange(len(best)), best] == 0).all()
    for order in ORDERS:
        for moments in MOMENTS:
            _, said = Network(model, Machine(format, order, moments, draw)).one_layer(TOKENS, rows)
            assert (lost(theta, best, said) <= share).all()


def test_a_coarser_machine_takes_more():
    """The bound for float32 is none for float16: the comparison above can fail."""
    model = build(13)
    rows = rows_of(model, 6)
    theta, best, share = shares(model, rows, "float32")
    coarse = Machine("float16", ORDERS[0], MOMENTS[0], np.random.default_rng(0))
    _, said = Network(model, coarse).one_layer(TOKENS, rows)
    assert (lost(theta, best, said) > share).any()


def test_distances_are_no_less_than_they_are():
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


def test_a_lead_is_known_where_its_ends_are_not():
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


def test_what_is_proved_anyway_stays_as_it_is():
    model = build(13)
    rows = rows_of(model, 6)
    found = bounds(model, "float32")
    ends, _ = found.traced.read_out(rows)
    decided = found.readout(rows)
    assert decided.proved.all()
    assert np.array_equal(decided.errors, ends.errors.max(-1))


def test_real_numbers_risk_almost_nothing():
    model = build(13)
    rows = rows_of(model, 6)
    traced = Traced(model, "float32")
    x, readout = traced.real.decoded(rows), traced.real.stages.readout
    best = readout(x.mid).argmax(-1)
    assert at_risk(readout, x, readout, x, EXACT, best).max() < 1e-8

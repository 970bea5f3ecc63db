"""Quick bounds of many read-outs: never below the sharp ones, and replaced by them where they do not decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from exactstate.extract import extract, rounding_errors
from exactstate.extract.rounding import Traced
from exactstate.extract.rounding import quick as quick_module
from exactstate.extract.rounding.quick import quick_bounds_apply, quick_label_errors
from tests.extract.rounding.examples import build, rows_of
from tests.extract.rounding.machines import MOMENTS, ORDERS, Machine, Network


@pytest.fixture
def model():
    return build(16, ((4, 3),), labels=20)


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(quick_module, "MANY", 0)


def test_quick_label_errors_cover_every_machine(model):
    rows = rows_of(model, 12)
    errors = quick_label_errors(model, Traced(model, "float32"), rows)
    with torch.no_grad():
        wide = model.double()
        block = wide.layers[0].block
        values = block.values[torch.from_numpy(rows[:, 1:]) + torch.tensor([0, 4])].flatten(1)
        stream = wide.encode(torch.from_numpy(rows[:, 0])) + block.out_proj(values)
        theta = wide.readout(wide.decode(wide.layers[0].feed_forward(stream))).numpy()
    model.float()
    for order, moments in zip(ORDERS, MOMENTS, strict=False):
        network = Network(model, Machine("float32", order, moments, np.random.default_rng(0)))
        computed = network.label(network.above(0, network.encode(rows[:, 0]), rows[:, 1:]))
        off = np.abs(computed - theta).max(-1)
        assert (off <= errors).all()
    assert (errors < 0.05).all()


def test_rounding_errors_of_many_read_outs_are_no_smaller_than_sharp_ones(model, many):
    machine = extract(model)
    quick, sharp = (rounding_errors(model, machine, "float32", quick=quick) for quick in (True, False))
    assert (quick.labels > sharp.labels).all()
    assert (quick.labels < 30 * sharp.labels).all()
    assert all(map(np.array_equal, quick.columns, sharp.columns))


def test_rounding_errors_are_sharp_where_quick_ones_do_not_decide(model, many):
    machine = extract(model)
    quick, sharp = (rounding_errors(model, machine, "float32", quick=quick) for quick in (True, False))
    close = replace(machine, label_margins=2.0 * np.where(np.arange(len(sharp.labels)) % 2, quick.labels, 1e9))
    found = rounding_errors(model, close, "float32")
    assert np.array_equal(found.labels[::2], quick.labels[::2])
    assert (found.labels[1::2] != quick.labels[1::2]).all()
    again = rounding_errors(model, close, "float32", quick=False)
    np.testing.assert_allclose(found.labels[1::2], again.labels[1::2], rtol=1e-9)


def test_rounding_errors_of_few_read_outs_are_sharp(model):
    machine = extract(model)
    quick, sharp = (rounding_errors(model, machine, "float32", quick=quick) for quick in (True, False))
    assert np.array_equal(quick.labels, sharp.labels)


def test_quick_bounds_apply_where_the_format_stores_the_parameters(model, many):
    machine = extract(model)
    assert quick_bounds_apply(model, machine, "float32")
    assert not quick_bounds_apply(model, machine, "bfloat16")
    assert quick_bounds_apply(model.bfloat16(), machine, "bfloat16")
    assert not quick_bounds_apply(model.float(), replace(machine, format="float32"), "float32")
    assert not quick_bounds_apply(build(8, ((3, 2), (2, 2))), machine, "float32")
    assert not quick_bounds_apply(build(8, answers=3), machine, "float32")


def test_quick_bounds_apply_to_many_read_outs(model):
    assert not quick_bounds_apply(model, extract(model), "float32")

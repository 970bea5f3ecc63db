"""One layer without a convolution: what the bounds say, what is refused, and the coarsest format."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.errors import InvalidInput, UnknownName
from exactstate.extract.rounding import Assumptions, bounds, coarsest
from exactstate.nn import Backbone
from tests.extract.rounding.examples import build, rows_of


def test_bounds_columns_are_those_of_theta():
    model = build(9, ((4, 1, 3),), symbols=5)
    found = bounds(model, "float32")
    with torch.no_grad():
        logits = model.layers[0].block.logits(model.layers[0].block_input(model.encode(torch.arange(5)))[0])
    for head, theta, errors, by_torch in zip(found.columns, found.theta, found.logits, logits, strict=True):
        assert theta.shape == errors.shape == by_torch.shape
        assert np.array_equal(head.best, by_torch.argmax(1).numpy())
        assert np.array_equal(head.errors, errors.max(1))
        if theta.shape[1] > 1:
            top = np.sort(theta, axis=1)
            np.testing.assert_allclose(head.margins, top[:, -1] - top[:, -2], rtol=1e-9)
            assert (head.margins <= top[:, -1] - top[:, -2]).all()
        else:
            assert np.isinf(head.margins).all()
            assert head.proved.all()


def test_bounds_readout_is_that_of_the_model():
    model = build(9, ((4, 1, 3),), symbols=5, labels=7)
    rows = rows_of(model, 40)
    said = bounds(model, "float32").readout(rows)
    block = model.layers[0].block
    with torch.no_grad():
        words = block.values[torch.from_numpy(rows[:, 1:]) + torch.tensor([0, 4, 5])].flatten(1)
        h = model.encode(torch.from_numpy(rows[:, 0])) + block.out_proj(words)
        labels = model.label_logits(model.layers[0].feed_forward(h)).double().numpy()
    assert np.array_equal(said.best, labels.argmax(-1))
    assert (np.abs(labels.max(-1) - np.sort(labels)[:, -2] - said.margins) <= 2 * said.errors).all()


def test_bounds_of_fewer_symbols_and_no_rows():
    model = build(symbols=6)
    found = bounds(model, "float32", symbols=2)
    assert found.theta[0].shape == (2, 3, 3)
    np.testing.assert_allclose(found.theta[0], bounds(model, "float32").theta[0][:2], rtol=1e-12)
    none = found.readout(np.zeros((0, 3), int))
    assert none.best.shape == none.errors.shape == (0,)


def test_holds_when_margins_exceed_twice_the_errors():
    model = build()
    found = bounds(model, "bfloat16")
    assert bounds(model, "float32").holds()
    assert not found.holds()
    nothing = [np.zeros_like(head.best, bool) for head in found.columns]
    assert found.holds(nothing)
    for head, column in enumerate(found.columns):
        nothing[head][:] = column.margins > 2 * column.errors
    assert found.holds(nothing)
    for head in nothing:
        kept = head.copy()
        head[:] = True
        assert not found.holds(nothing)
        head[:] = kept


def test_bounds_do_not_prove_a_tie():
    model = build()
    with torch.no_grad():
        block = model.layers[0].block
        block.weight[1], block.bias[1] = block.weight[0], block.bias[0]
        block.bias[:2] += 100.0
    column = bounds(model, "float64").columns[0]
    assert not column.proved[:, 0].any()
    assert column.proved[:, 1:].all()


def test_coarsest_format():
    model = build()
    with torch.no_grad():  # every column is decided, and every label is ahead of label 1 by the difference of biases
        model.layers[0].block.bias[[0, 4, 8, 9, 12]] += 50.0
        model.readout.weight[:] = model.readout.weight[0].clone()
    found = []
    for ahead in (0.0, 1e-4, 0.02, 3.0):
        with torch.no_grad():
            model.readout.bias.copy_(torch.tensor([0.0, ahead, 0.0, 0.0, 0.0]))
        found.append(coarsest(model, rows_of(model, 4)))
    assert found == [None, "float32", "float16", "bfloat16"]
    used = [np.zeros((3, d), bool) for d in (3, 2)]
    with torch.no_grad():
        model.layers[0].block.bias.zero_()
        model.layers[0].block.weight.zero_()
    assert coarsest(model, rows_of(model, 4)) is None
    assert coarsest(model, rows_of(model, 4), used=used) == "bfloat16"


def test_bounds_are_infinite_for_numbers_too_large_for_the_format():
    model = build()
    with torch.no_grad():
        model.embedding.weight.mul_(3000.0)
    assert np.isinf(bounds(model, "float16").logits[0]).all()
    assert np.isfinite(bounds(model, "bfloat16").logits[0]).all()
    with torch.no_grad():
        model.readout.weight[0, 0] = 1e5
    assert np.isinf(bounds(model, "float16").readout(rows_of(model, 3)).errors).all()
    assert not bounds(model, "float16").holds()


def test_bounds_are_infinite_for_sums_too_long_for_sixteen_bits():
    model = build(64, hidden=256)
    assert np.isinf(bounds(model, "bfloat16", assumptions=Assumptions(inside="same")).logits[0]).all()
    assert np.isfinite(bounds(model, "bfloat16").logits[0]).all()


def test_bounds_grow_with_weaker_assumptions():
    model = build()
    usual = bounds(model, "float32").logits[0]
    for weaker in ({"basic": 1.0}, {"exp": 1000.0}, {"root": 100.0}, {"divide": 100.0}, {"variance": 40.0}):
        assert (bounds(model, "float32", assumptions=Assumptions(**weaker)).logits[0] > usual).all()


def test_bounds_refuse_models_they_do_not_cover():
    with pytest.raises(UnknownName, match=r"unknown format 'double'"):
        bounds(build(), "double")
    with pytest.raises(InvalidInput, match=r"tables of 2 layers with a kernel size of 1 depend on more than"):
        bounds(build(heads=((3,), (2,))), "float32")
    with pytest.raises(InvalidInput, match=r"layer 0 holds a Identity"):
        bounds(Backbone(3, 2, [torch.nn.Identity()], width=4), "float32")
    broken = build()
    with torch.no_grad():
        broken.final_norm.bias[2] = float("nan")
    with pytest.raises(InvalidInput, match=r"parameter 'final_norm.bias' is not finite"):
        bounds(broken, "float32")
    for rows in (np.array([[0, 0]]), np.array([[0, 3, 0]]), np.array([[-1, 0, 0]]), np.array([0, 0, 0])):
        with pytest.raises(InvalidInput, match=r"an index of every head, below \(3, 3, 2\); got int64 of shape"):
            bounds(build(), "float32").readout(rows)

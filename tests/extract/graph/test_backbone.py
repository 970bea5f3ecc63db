"""A backbone that was lowered by hand: it computes what the model computes, bounded as if it had been traced."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from exactstate.errors import InvalidInput, UnknownName
from exactstate.extract import Extracted, extract, rounding_errors
from exactstate.extract.graph.arithmetic import ASSUMED, EXACT, Assumptions
from exactstate.extract.graph.backbone import LoweredBackbone
from exactstate.extract.graph.leads import LeadBounds
from exactstate.extract.graph.network import TracedNetwork
from exactstate.extract.network import EvaluatedNetwork
from exactstate.extract.rounding import quick_applies
from exactstate.nn import Backbone
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.graph.examples import build

MODELS = {
    "one layer": lambda: build(13),
    "dictionary": lambda: build(8, dictionary=5, seed=3),
    "two layers, convolution, answers": lambda: build(7, ((3, 2), (2, 2)), reach=2, answers=3),
}


def read(model: Backbone) -> Extracted:
    return extract(model.double(), verify=False)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_graph_computes_what_the_model_computes(name: str) -> None:
    model = MODELS[name]()
    machine = read(model)
    network, evaluated = LoweredBackbone(model, machine), EvaluatedNetwork(model, len(machine.symbols), "float64")
    bounds = LeadBounds(network, EXACT)
    for number, layer in enumerate(machine.layers):
        if number:
            evaluated.add_inputs(number, layer.inputs)
        found = evaluated.tables(number, layer.windows)
        proved = bounds.layer(number, layer.windows, layer.tables, "interval")
        assert np.array_equal(found.best, layer.tables)
        assert (proved <= found.margins).all()
        np.testing.assert_allclose(proved, found.margins, rtol=1e-8, atol=1e-11)
    best, margins = machine.label_ids, machine.label_margins
    if machine.answer_ids is not None:
        best, margins = np.stack([best, machine.answer_ids], 1), np.stack([margins, machine.answer_margins], 1)
    np.testing.assert_allclose(bounds.labels(machine.readout_inputs, best, "interval"), margins, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_tracing_gives_the_same_bounds_as_lowering_by_hand(format: str) -> None:
    model = build(13)
    machine, symbols = read(model), model.vocabulary
    arithmetic = ASSUMED[format].arithmetic(format)
    windows, best = machine.layers[0].windows, machine.layers[0].tables
    by_hand = LeadBounds(LoweredBackbone(model, machine), arithmetic)
    traced = LeadBounds(TracedNetwork(model, symbols, "float64"), arithmetic)
    one, other = (leads.layer(0, windows, best, "interval") for leads in (by_hand, traced))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    one, other = (leads.labels(machine.readout_inputs, machine.label_ids, "interval") for leads in (by_hand, traced))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_answers_are_bounded_beside_labels() -> None:
    model = MODELS["two layers, convolution, answers"]()
    machine = read(model)
    errors = rounding_errors(model, machine, "float32", verify=False)
    assert errors.answers is not None
    assert machine.answer_margins is not None
    assert (errors.answers < 1e-2).all()
    assert not np.array_equal(errors.answers, errors.labels)


def test_models_whose_rounding_is_not_bounded_are_refused() -> None:
    model = build()
    machine = read(model)
    with pytest.raises(UnknownName, match=r"unknown format 'double'"):
        rounding_errors(model, machine, "double")
    with pytest.raises(InvalidInput, match=r"layer 0 holds a Identity"):
        rounding_errors(Backbone(3, 2, [torch.nn.Identity()], width=4), machine, "float32")
    with torch.no_grad():
        model.final_norm.bias[2] = float("nan")
    with pytest.raises(InvalidInput, match=r"parameter 'final_norm.bias' is not finite"):
        rounding_errors(model, machine, "float32")


def test_ties_are_not_proved() -> None:
    model = build()
    with torch.no_grad():
        block = model.layers[0].block
        block.weight[1], block.bias[1] = block.weight[0], block.bias[0]
        block.bias[:2] += 100.0
    machine = read(model)
    errors = rounding_errors(model, machine, "float64", verify=False).columns[0]
    proved = machine.layers[0].margins > 2 * errors
    assert not proved[:, 0].any()
    assert proved[:, 1:][machine.layers[0].used[:, 1:]].all()


def test_numbers_too_large_for_a_format_have_no_bound() -> None:
    model = build()
    machine = read(model)
    with torch.no_grad():
        model.embedding.weight.mul_(3000.0)
    errors = {format: rounding_errors(model, machine, format, verify=False) for format in ("float16", "bfloat16")}
    used = machine.layers[0].used
    assert (errors["float16"].columns[0][used] > 1e300).all()
    assert (errors["bfloat16"].columns[0][used] < 1e300).all()


def test_sums_too_long_for_sixteen_bits_have_no_bound() -> None:
    model = build(64, hidden=256)
    machine = read(model)
    same = rounding_errors(model, machine, "bfloat16", assumptions=Assumptions(inside="same"), verify=False)
    usual = rounding_errors(model, machine, "bfloat16", verify=False)
    used = machine.layers[0].used
    assert (same.columns[0][used] > 1e300).all()
    assert (usual.columns[0][used] < 1e300).all()


def test_weaker_assumptions_give_larger_bounds() -> None:
    model = build()
    machine = read(model)
    usual = rounding_errors(model, machine, "float32", verify=False).columns[0]
    used = machine.layers[0].used
    for weaker in ({"basic": 1.0}, {"exp": 1000.0}, {"root": 100.0}, {"divide": 100.0}, {"variance": 40.0}):
        weak = rounding_errors(model, machine, "float32", assumptions=Assumptions(**weaker), verify=False)
        assert (weak.columns[0] > usual)[used].all()


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactstate.extract.rounding.MANY", 0)


def test_quick_bounds_are_no_smaller_than_sharp_ones(many: None) -> None:
    model = build(16, ((4, 3),), labels=20)
    machine = extract(model, verify=False)
    quick, sharp = (rounding_errors(model, machine, "float32", quick=quick, verify=False) for quick in (True, False))
    assert (quick.labels > sharp.labels).all()
    assert (quick.labels < 30 * sharp.labels).all()
    assert all(map(np.array_equal, quick.columns, sharp.columns))
    close = replace(machine, label_margins=1.9 * np.where(np.arange(len(sharp.labels)) % 2, quick.labels, 1e9))
    found = rounding_errors(model, close, "float32", verify=False)
    assert (found.labels[1::2] != quick.labels[1::2]).all()
    again = rounding_errors(model, close, "float32", quick=False, verify=False)
    np.testing.assert_allclose(found.labels[1::2], again.labels[1::2], rtol=1e-9)


def test_quick_bounds_apply_where_the_format_stores_the_parameters(many: None) -> None:
    model = build(16, ((4, 3),), labels=20)
    machine = extract(model, verify=False)

    def applies(model: Backbone, machine: Extracted, format: str) -> bool:
        return quick_applies(LoweredBackbone(model, machine), machine, format)

    assert applies(model, machine, "float32")
    assert not applies(model, machine, "bfloat16")
    assert applies(model.bfloat16(), machine, "bfloat16")
    assert not applies(model.float(), replace(machine, format="float32"), "float32")
    asked = build(8, answers=3)
    assert not applies(asked, extract(asked, verify=False), "float32")


def test_quick_bounds_apply_to_many_read_outs() -> None:
    model = build(16, ((4, 3),), labels=20)
    machine = extract(model, verify=False)
    assert not quick_applies(LoweredBackbone(model, machine), machine, "float32")

"""A backbone that was lowered by hand: it computes what the model computes, and its bounds are none the larger."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.extract import Extracted, extract
from exactstate.extract.graph import leads as leads_module
from exactstate.extract.graph.backbone import LoweredBackbone
from exactstate.extract.graph.leads import LeadBounds, graph_rounding_errors
from exactstate.extract.network import EvaluatedNetwork
from exactstate.extract.rounding.arithmetic import ASSUMED, EXACT
from exactstate.extract.rounding.bounds import _rounding_errors
from exactstate.nn import Backbone
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.rounding.examples import build

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
@pytest.mark.parametrize("name", list(MODELS))
def test_bounds_are_no_larger_than_those_made_for_backbones(name: str, format: str) -> None:
    model = MODELS[name]()
    machine = read(model)
    ours = graph_rounding_errors(LoweredBackbone(model, machine), machine, format)
    theirs = _rounding_errors(model, machine, format, None, quick=True)
    pairs = [(layer.margins, one, other) for layer, one, other in
             zip(machine.layers, ours.columns, theirs.columns, strict=True)]  # fmt: skip
    pairs.append((machine.label_margins, ours.labels, theirs.labels))
    if machine.answer_margins is not None and ours.answers is not None and theirs.answers is not None:
        pairs.append((machine.answer_margins, ours.answers, theirs.answers))
    for margins, one, other in pairs:
        proved = margins > 2 * other
        assert (one <= 1.03 * other)[proved].all()


@torch.no_grad()
def test_quick_bounds_hold_and_are_no_smaller_than_sharp_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(13, labels=9).float()
    machine = extract(model, verify=False)
    network = LoweredBackbone(model, machine)
    sharp = graph_rounding_errors(network, machine, "float32")
    monkeypatch.setattr(leads_module, "MANY", 0)
    quick = graph_rounding_errors(network, machine, "float32")
    assert (quick.labels >= sharp.labels).all()
    assert (quick.labels < 30 * sharp.labels).all()
    assert (quick.labels > sharp.labels).any()
    assert ASSUMED["float32"].sentences("float32") == quick.assumes

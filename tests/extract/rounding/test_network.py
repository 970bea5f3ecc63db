"""Single stages of a layer: the convolution and the block's voice, on machines that store after every operation."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.extract.rounding import ASSUMED
from exactstate.extract.rounding.arithmetic import EXACT
from exactstate.extract.rounding.balls import Ball
from exactstate.extract.rounding.network import BackboneStages
from exactstate.number_formats import NETWORK_FORMATS
from tests.extract.rounding.examples import build
from tests.extract.rounding.machines import STORE, Machine, Network


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_convolve_of_taps_that_cancel_is_as_uncertain_as_its_terms(format):
    model, draw = build(16, reach=3), np.random.default_rng(0)
    weight = model.layers[0].conv.weight.detach()
    weight[:, 0], weight[:, 1] = 0.75, -0.75
    stages = BackboneStages(model, ASSUMED[format].arithmetic(format)).layers[0]
    x = STORE[format]((100 * draw.normal(size=(50, 16))).astype(np.float32))
    window = [x, STORE[format](x + np.float32(0.1)), 0 * x]
    found = stages.convolve([Ball.points(part.astype(float)) for part in window])
    computed = Network(model, Machine(format, "forwards", "two passes", draw)).convolve(0, window)
    shares = np.linalg.norm(computed - found.mid, axis=1) / found.rad
    assert 0.02 < shares.max() <= 1


def test_convolve_maps_a_window_of_balls_into_the_ball():
    model, draw = build(6, reach=2), np.random.default_rng(1)
    stages = BackboneStages(model, EXACT).layers[0]
    window = [Ball(draw.normal(size=(3, 6)), np.full(3, rad)) for rad in (0.0, 0.4)]
    found = stages.convolve(window)
    taps, bias = stages.taps
    for direction in draw.normal(size=(500, 3, 6)):
        newest = window[1].mid + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        y = bias + window[0].mid * taps[0] + newest * taps[1]
        assert (np.linalg.norm(y / (1 + np.exp(-y)) - found.mid, axis=1) <= found.rad).all()


@pytest.mark.parametrize("format", NETWORK_FORMATS)
def test_read_values_covers_every_machine(format):
    model, draw = build(16), np.random.default_rng(2)
    indices = np.array([[k, j] for k in range(3) for j in range(2)])
    found = BackboneStages(model, ASSUMED[format].arithmetic(format)).layers[0].read_values(indices)
    network = Network(model, Machine(format, "forwards", "two passes", draw))
    words = network.p["layers.0.block.values"][indices + np.array([0, 3])].reshape(6, -1)
    said = network.machine.store(network.affine("layers.0.block.out_proj", words, store=False))
    shares = np.linalg.norm(said - found.mid, axis=1) / found.rad
    assert 0.01 < shares.max() <= 1

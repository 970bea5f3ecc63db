"""Single stages of a layer: the convolution and the block's voice, on machines that store after every operation."""

from __future__ import annotations

import numpy as np
import pytest

from detent.extract.rounding import ASSUMED
from detent.extract.rounding.balls import Ball
from detent.extract.rounding.formats import EXACT
from detent.extract.rounding.network import Stages
from tests.extract.rounding.examples import build
from tests.extract.rounding.machines import STORE, Machine, Network

FORMATS = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("format", FORMATS)
def test_taps_that_cancel_are_as_uncertain_as_their_parts(format):
    model, draw = build(16, reach=3), np.random.default_rng(0)
    weight = model.layers[0].conv.weight.detach()
    weight[:, 0], weight[:, 1] = 0.75, -0.75
    stages = Stages(model, ASSUMED[format].arithmetic(format)).layers[0]
    x = STORE[format]((100 * draw.normal(size=(50, 16))).astype(np.float32))
    window = [x, STORE[format](x + np.float32(0.1)), 0 * x]
    found = stages.convolve([Ball.points(part.astype(float)) for part in window])
    computed = Network(model, Machine(format, "forwards", "two passes", draw)).convolve(0, window)
    shares = np.linalg.norm(computed - found.mid, axis=1) / found.rad
    assert 0.02 < shares.max() <= 1


def test_a_window_of_balls():
    model, draw = build(6, reach=2), np.random.default_rng(1)
    stages = Stages(model, EXACT).layers[0]
    window = [Ball(draw.normal(size=(3, 6)), np.full(3, rad)) for rad in (0.0, 0.4)]
    found = stages.convolve(window)
    taps, bias = stages.taps
    for direction in draw.normal(size=(500, 3, 6)):
        newest = window[1].mid + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        y = bias + window[0].mid * taps[0] + newest * taps[1]
        assert (np.linalg.norm(y / (1 + np.exp(-y)) - found.mid, axis=1) <= found.rad).all()


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_block_says(format):
    model, draw = build(16), np.random.default_rng(2)
    indices = np.array([[k, j] for k in range(3) for j in range(2)])
    found = Stages(model, ASSUMED[format].arithmetic(format)).layers[0].speak(indices)
    network = Network(model, Machine(format, "forwards", "two passes", draw))
    words = network.p["layers.0.block.values"][indices + np.array([0, 3])].reshape(6, -1)
    said = network.machine.store(network.affine("layers.0.block.out_proj", words, store=False))
    shares = np.linalg.norm(said - found.mid, axis=1) / found.rad
    assert 0.01 < shares.max() <= 1

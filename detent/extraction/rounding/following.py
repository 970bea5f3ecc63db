"""One network followed through numbered inputs and windows, as an extraction numbers them.

    R  rows     m  width     r  heads     e  entries of all heads' logits     k  reach

An *input* of the first layer is a token; one of a higher layer is an input of the layer below and the indices that
layer has moved to. A *window* is the numbers of the last k inputs, the newest last, -1 before the word began.
"""

from __future__ import annotations

import numpy as np

from detent.automata.running import Ints
from detent.extraction.rounding.affine import Entries
from detent.extraction.rounding.balls import Ball
from detent.extraction.rounding.batches import each
from detent.extraction.rounding.formats import Arithmetic
from detent.extraction.rounding.network import Stages
from detent.models import Backbone


class Followed:
    """A network in one arithmetic, and the residual streams of the inputs it was shown."""

    def __init__(self, model: Backbone, arithmetic: Arithmetic, tokens: Ints) -> None:
        self.stages = Stages(model, arithmetic)
        self.jacobian = self.stages.encoder.gate.weight.size
        encoded = each(self.stages.encode, tokens, self.jacobian)
        self.streams = [Ball.joined(encoded)] + [Ball.points(np.zeros((0, model.width)))] * (len(model.layers) - 1)

    def enter(self, layer: int, inputs: Ints) -> None:
        """R (1 + r): inputs of a layer above the first."""
        above = each(lambda some: self.above(layer - 1, some), inputs, self.jacobian)
        self.streams[layer] = Ball.joined([self.streams[layer], *above])

    def logits(self, layer: int, windows: Ints) -> Entries:
        """R k -> R e."""
        stages = self.stages.layers[layer]
        return stages.logits(stages.convolve([self._remembered(layer, numbers) for numbers in windows.T]))

    def decoded(self, inputs: Ints) -> Ball:
        """R (1 + r), above the last layer -> R m: what labels and answers are read from."""
        return self.stages.decode(self.above(len(self.streams) - 1, inputs))

    def above(self, layer: int, inputs: Ints) -> Ball:
        """The residual stream above a layer."""
        stages = self.stages.layers[layer]
        return stages.mix(self.streams[layer][inputs[:, 0]], stages.speak(inputs[:, 1:]))

    def _remembered(self, layer: int, numbers: Ints) -> Ball:
        seen, begun = self.stages.layers[layer].normalise(self.streams[layer][numbers]), numbers >= 0
        return Ball(np.where(begun[:, None], seen.mid, 0.0), np.where(begun, seen.rad, 0.0))

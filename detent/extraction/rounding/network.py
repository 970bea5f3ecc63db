"""The stages of a backbone on balls: what every machine of a given arithmetic computes lies in them.

    R  rows     m  width     r  heads     e  entries of all heads' logits

The midpoints are the real network with the parameters as the format stores them. A matrix product, a layer norm, a
SiLU, a product and a sum are operations: computed inside in the arithmetic's inner format and stored in the format. The
logits of an NFSM are computed in the inner format from stored inputs and weights and are not stored, which is what
`NFSM` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detent.automata.running import Ints
from detent.extraction.network import offsets
from detent.extraction.rounding.affine import Affine, Entries, add, stored
from detent.extraction.rounding.balls import Ball, above, length
from detent.extraction.rounding.formats import EXACT, OURS, Arithmetic
from detent.extraction.rounding.gating import silu
from detent.extraction.rounding.parameters import Reader, refuse
from detent.layers import NFSM
from detent.models import Backbone
from detent.models.backbone import Layer

quiet = np.errstate
"""Bounds that are lost are infinite, and arithmetic with infinities is meant."""


class Stages:
    """A backbone of NFSM layers, stage by stage, in one arithmetic."""

    def __init__(self, model: Backbone, arithmetic: Arithmetic) -> None:
        refuse(model)
        read, self.arithmetic = Reader(arithmetic.store), arithmetic
        self.sharp = arithmetic is not EXACT  # a bound of our own rounding alone can afford to be crude
        self.embedding = read.array(model.embedding.weight)
        self.encoder, self.encoded = read.gated(model.encoder), read.normalising(model.encoded)
        self.layers = [LayerStages(layer, arithmetic, sharp=self.sharp) for layer in model.layers]  # type: ignore[arg-type]
        self.final, self.decoder = read.normalising(model.final), read.gated(model.decoder)
        self.readout = read.affine(model.readout)
        self.reply = None if model.reply is None else read.affine(model.reply)

    @quiet(all="ignore")
    def encode(self, tokens: Ints) -> Ball:
        """R -> R m: what depends on the token alone."""
        embedded = Ball.points(self.embedding[tokens])
        return self.encoded.apply(self.encoder.apply(embedded, self.arithmetic, sharp=self.sharp), self.arithmetic)

    @quiet(all="ignore")
    def decode(self, h: Ball) -> Ball:
        """The last layer norm and MLP."""
        return self.decoder.apply(self.final.apply(h, self.arithmetic), self.arithmetic, sharp=self.sharp)


class LayerStages:
    """One layer: normalise, convolve, choose, speak, mix."""

    def __init__(self, layer: Layer, arithmetic: Arithmetic, *, sharp: bool) -> None:
        assert isinstance(layer.block, NFSM)
        read, block, convolution = Reader(arithmetic.store), layer.block, layer.convolution
        self.arithmetic, self.sharp, self.heads = arithmetic, sharp, block.heads
        self.before, self.after = read.normalising(layer.before), read.normalising(layer.after)
        self.taps = None if convolution is None else (read.array(convolution.weight).T, read.array(convolution.bias))
        self.mixture = None if block.mixture is None else read.affine(block.mixture)
        self.moves = Affine(read.array(block.weight), read.array(block.bias))
        self.values, self.projection = read.array(block.values), read.affine(block.projection)
        self.mlp = read.gated(layer.mlp)

    @quiet(all="ignore")
    def normalise(self, h: Ball) -> Ball:
        """What the convolution remembers, or, where there is none, what the block reads."""
        return self.before.apply(h, self.arithmetic)

    @quiet(all="ignore")
    def convolve(self, window: Sequence[Ball]) -> Ball:
        """What the block reads, of the last normalised inputs, the newest last; points at zero before the first."""
        if self.taps is None:
            return window[-1]
        taps, bias = self.taps
        y, reach = np.tile(bias, (len(window[0]), 1)), np.tile(np.abs(bias), (len(window[0]), 1))
        off, rad = np.zeros_like(y), np.zeros(len(y))
        for x, w in zip(window, taps, strict=True):
            y, reach = y + x.mid * w, reach + np.abs(w) * (np.abs(x.mid) + x.rad[:, None])
            off, rad = off + np.abs(w) * x.rad[:, None], rad + np.abs(w).max() * x.rad
        errors = OURS.gamma(len(window) + 1) * reach
        for _ in range(len(window) + 1):  # every product and every sum is an operation of its own
            errors = errors + self.arithmetic.gamma(1) * (reach + errors) + self.arithmetic.inner.tiny
            errors = errors + stored(reach + errors, self.arithmetic)
        return silu(Ball.around(y, rad + length(above(errors))), above(off + errors), self.arithmetic)

    @quiet(all="ignore")
    def logits(self, u: Ball) -> Entries:
        """R e, of what the block reads."""
        if self.mixture is not None:
            u = self.mixture.apply(u, self.arithmetic, stores=0)
        return self.moves.entries(u, self.arithmetic, stores=0)

    @quiet(all="ignore")
    def speak(self, indices: Ints) -> Ball:
        """R r -> R m: the projected value vectors of the indices that the heads are in."""
        words = self.values[indices + np.array(offsets(self.heads))].reshape(
            len(indices), self.projection.weight.shape[1]
        )
        return self.projection.apply(Ball.points(words), self.arithmetic, stores=1)

    @quiet(all="ignore")
    def mix(self, h: Ball, y: Ball) -> Ball:
        """The residual stream above the layer, of that below it and what the block says."""
        h = add(h, y, self.arithmetic)
        mixed = self.mlp.apply(self.after.apply(h, self.arithmetic), self.arithmetic, sharp=self.sharp)
        return add(h, mixed, self.arithmetic)

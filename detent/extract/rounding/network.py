"""One network followed through numbered inputs and windows, as an extraction numbers them.

    R  rows     m  width     r  heads     e  entries of all heads' logits     k  reach

An *input* of the first layer is a token; one of a higher layer is an input of the layer below and the indices that
layer has moved to. A *window* is the numbers of the last k inputs, the newest last, -1 before the word began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from detent._types import Floats, Ints
from detent.errors import InvalidInput
from detent.extract.network import offsets
from detent.extract.rounding.balls import Ball, above, length
from detent.extract.rounding.batches import each
from detent.extract.rounding.formats import EXACT, OURS, Arithmetic, Format
from detent.extract.rounding.layers import Affine, Entries, Gated, Normalising, add, silu, stored
from detent.nn import NFSM, Backbone, GatedMLP
from detent.nn.backbone import BackboneLayer

# -- The parameters of a backbone as a format stores them, in float64.


@dataclass(frozen=True)
class Reader:
    """Rounds parameters to a format, to nearest with ties to even, as `model.to(dtype)` does."""

    format: Format

    def array(self, parameter: Tensor) -> Floats:
        kept = parameter.detach()
        if self.format.name != "real":
            kept = kept.to(getattr(torch, self.format.name))
        return np.array(kept.to("cpu", torch.float64).numpy())

    def affine(self, linear: nn.Linear) -> Affine:
        return Affine(self.array(linear.weight), self.array(linear.bias))

    def normalising(self, norm: nn.LayerNorm) -> Normalising:
        return Normalising(self.array(norm.weight), self.array(norm.bias), norm.eps)

    def gated(self, mlp: GatedMLP) -> Gated:
        return Gated(self.affine(mlp.gate), self.affine(mlp.up), self.affine(mlp.down))


def refuse(model: Backbone) -> None:
    """Models of which nothing can be said."""
    for place, layer in enumerate(model.layers):
        if not isinstance(layer.block, NFSM):
            raise InvalidInput(
                f"rounding is bounded for NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
            )
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise InvalidInput(f"parameter {name!r} is not finite everywhere; such weights describe no machine.")


# -- The stages of a backbone on balls: what every machine of a given arithmetic computes lies in them.

quiet = np.errstate
"""Bounds that are lost are infinite, and arithmetic with infinities is meant."""


class Stages:
    """A backbone of NFSM layers, stage by stage, in one arithmetic."""

    def __init__(self, model: Backbone, arithmetic: Arithmetic) -> None:
        refuse(model)
        read, self.arithmetic = Reader(arithmetic.store), arithmetic
        self.sharp = arithmetic is not EXACT  # a bound of our own rounding alone can afford to be crude
        self.embedding = read.array(model.embedding.weight)
        self.encoder, self.encoded = read.gated(model.encoder), read.normalising(model.encoder_norm)
        self.layers = [LayerStages(layer, arithmetic, sharp=self.sharp) for layer in model.layers]  # type: ignore[arg-type]
        self.final, self.decoder = read.normalising(model.final_norm), read.gated(model.decoder)
        self.readout = read.affine(model.readout)
        self.reply = None if model.answer_head is None else read.affine(model.answer_head)

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

    def __init__(self, layer: BackboneLayer, arithmetic: Arithmetic, *, sharp: bool) -> None:
        assert isinstance(layer.block, NFSM)
        read, block, convolution = Reader(arithmetic.store), layer.block, layer.conv
        self.arithmetic, self.sharp, self.heads = arithmetic, sharp, block.heads
        self.before, self.after = read.normalising(layer.norm1), read.normalising(layer.norm2)
        self.taps = None if convolution is None else (read.array(convolution.weight).T, read.array(convolution.bias))
        self.mixture = None if block.mix_proj is None else read.affine(block.mix_proj)
        self.moves = Affine(read.array(block.weight), read.array(block.bias))
        self.values, self.projection = read.array(block.values), read.affine(block.out_proj)
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

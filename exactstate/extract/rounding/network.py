"""A backbone computed on balls: whatever a machine of a given arithmetic computes lies inside them.

    R  rows     m  width     r  heads     e  entries of all heads' logits     k  kernel size

An *input* of the first layer is a token; one of a higher layer is an input of the layer below and the indices that
layer has moved to. A *window* is the numbers of the last k inputs, the newest last, -1 before the word began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import Floats, Ints
from exactstate.errors import InvalidInput
from exactstate.extract.result import head_offsets
from exactstate.extract.rounding.arithmetic import EXACT, OURS, Arithmetic
from exactstate.extract.rounding.balls import Ball, above, length
from exactstate.extract.rounding.layers import Affine, Entries, Gated, JacobianNorm, Norm, add, silu, stored
from exactstate.nn import NFSM, Backbone, GatedMLP
from exactstate.nn.backbone import BackboneLayer
from exactstate.number_formats import Format

AT_ONCE = 1 << 22
"""Numbers in the largest array of a batch."""
Result = TypeVar("Result")

unbounded_is_infinite = np.errstate(all="ignore")
"""Decorator: a bound that is lost is infinite, and arithmetic with infinities is intended."""


@dataclass(frozen=True)
class ParameterReader:
    """Rounds parameters to a format, to nearest with ties to even, as `model.to(dtype)` does."""

    format: Format

    def array(self, parameter: Tensor) -> Floats:
        kept = parameter.detach()
        if self.format.name != "real":
            kept = kept.to(getattr(torch, self.format.name))
        return np.array(kept.to("cpu", torch.float64).numpy())

    def affine(self, linear: nn.Linear) -> Affine:
        return Affine(self.array(linear.weight), self.array(linear.bias))

    def norm(self, norm: nn.LayerNorm) -> Norm:
        return Norm(self.array(norm.weight), self.array(norm.bias), norm.eps)

    def gated(self, mlp: GatedMLP) -> Gated:
        return Gated(self.affine(mlp.gate), self.affine(mlp.up), self.affine(mlp.down))


def check_model(model: Backbone) -> None:
    """Raise the error for a model whose rounding cannot be bounded."""
    for place, layer in enumerate(model.layers):
        if not isinstance(layer.block, NFSM):
            raise InvalidInput(
                f"rounding is bounded for NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
            )
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise InvalidInput(f"parameter {name!r} is not finite everywhere; such weights describe no machine.")


class BackboneStages:
    """A backbone of NFSM layers, stage by stage, in one arithmetic."""

    def __init__(self, model: Backbone, arithmetic: Arithmetic) -> None:
        check_model(model)
        read, self.arithmetic = ParameterReader(arithmetic.store), arithmetic
        # a bound of our own rounding alone can afford to be crude
        self.norm: JacobianNorm = "product" if arithmetic is EXACT else "spectral"
        self.embedding = read.array(model.embedding.weight)
        self.encoder, self.encoded = read.gated(model.encoder), read.norm(model.encoder_norm)
        self.layers = [LayerStages(layer, arithmetic) for layer in model.layers]  # type: ignore[arg-type]
        self.final, self.decoder = read.norm(model.final_norm), read.gated(model.decoder)
        self.readout = read.affine(model.readout)
        self.reply = None if model.answer_head is None else read.affine(model.answer_head)

    @unbounded_is_infinite
    def encode(self, tokens: Ints) -> Ball:
        """R -> R m: what depends on the token alone."""
        embedded = Ball.points(self.embedding[tokens])
        return self.encoded.apply(self.encoder.apply(embedded, self.arithmetic, norm=self.norm), self.arithmetic)

    @unbounded_is_infinite
    def decode(self, h: Ball, norm: JacobianNorm) -> Ball:
        """The last layer norm and MLP."""
        return self.decoder.apply(self.final.apply(h, self.arithmetic), self.arithmetic, norm=norm)


class LayerStages:
    """One layer: norm, convolution, logits of the NFSM, its values, MLP."""

    def __init__(self, layer: BackboneLayer, arithmetic: Arithmetic) -> None:
        assert isinstance(layer.block, NFSM)
        read, block, convolution = ParameterReader(arithmetic.store), layer.block, layer.conv
        self.arithmetic, self.heads = arithmetic, block.heads
        self.before, self.after = read.norm(layer.norm1), read.norm(layer.norm2)
        self.taps = None if convolution is None else (read.array(convolution.weight).T, read.array(convolution.bias))
        self.mixture = None if block.mix_proj is None else read.affine(block.mix_proj)
        self.moves = Affine(read.array(block.weight), read.array(block.bias))
        self.values, self.projection = read.array(block.values), read.affine(block.out_proj)
        self.mlp = read.gated(layer.mlp)

    @unbounded_is_infinite
    def normalize(self, h: Ball) -> Ball:
        """What the convolution remembers, or, where there is none, what the block reads."""
        return self.before.apply(h, self.arithmetic)

    @unbounded_is_infinite
    def convolve(self, window: Sequence[Ball]) -> Ball:
        """What the block reads, of the last normalised inputs, the newest last; points at zero before the first."""
        if self.taps is None:
            return window[-1]
        taps, bias = self.taps
        y, magnitude = np.tile(bias, (len(window[0]), 1)), np.tile(np.abs(bias), (len(window[0]), 1))
        off, rad = np.zeros_like(y), np.zeros(len(y))
        for x, w in zip(window, taps, strict=True):
            y, magnitude = y + x.mid * w, magnitude + np.abs(w) * (np.abs(x.mid) + x.rad[:, None])
            off, rad = off + np.abs(w) * x.rad[:, None], rad + np.abs(w).max() * x.rad
        errors = OURS.gamma(len(window) + 1) * magnitude
        for _ in range(len(window) + 1):  # every product and every sum is an operation of its own
            errors = errors + self.arithmetic.gamma(1) * (magnitude + errors) + self.arithmetic.inner.tiny
            errors = errors + stored(magnitude + errors, self.arithmetic)
        return silu(Ball.around(y, rad + length(above(errors))), above(off + errors), self.arithmetic)

    @unbounded_is_infinite
    def logits(self, u: Ball) -> Entries:
        """R e, of what the block reads."""
        if self.mixture is not None:
            u = self.mixture.apply(u, self.arithmetic, stores=0)
        return self.moves.entries(u, self.arithmetic, stores=0)

    @unbounded_is_infinite
    def read_values(self, indices: Ints) -> Ball:
        """R r -> R m: the projected value vectors of the indices that the heads are in."""
        values = self.values[indices + np.array(head_offsets(self.heads))].reshape(
            len(indices), self.projection.weight.shape[1]
        )
        return self.projection.apply(Ball.points(values), self.arithmetic, stores=1)

    @unbounded_is_infinite
    def mix(self, h: Ball, y: Ball, norm: JacobianNorm) -> Ball:
        """The residual stream above the layer, from that below it and the output of the block."""
        h = add(h, y, self.arithmetic)
        mixed = self.mlp.apply(self.after.apply(h, self.arithmetic), self.arithmetic, norm=norm)
        return add(h, mixed, self.arithmetic)


class BoundedNetwork:
    """A network in one arithmetic, with the residual streams of its numbered inputs so far."""

    def __init__(self, model: Backbone, arithmetic: Arithmetic, tokens: Ints) -> None:
        self.stages = BackboneStages(model, arithmetic)
        self.jacobian = self.stages.encoder.gate.weight.size
        encoded = map_batches(self.stages.encode, tokens, self.jacobian)
        self.streams = [Ball.joined(encoded)] + [Ball.points(np.zeros((0, model.width)))] * (len(model.layers) - 1)

    def add_inputs(self, layer: int, inputs: Ints) -> None:
        """R (1 + r): inputs of a layer above the first."""
        streams = map_batches(lambda some: self.residual_above(layer - 1, some), inputs, self.jacobian)
        self.streams[layer] = Ball.joined([self.streams[layer], *streams])

    def logits(self, layer: int, windows: Ints) -> Entries:
        """R k -> R e."""
        stages = self.stages.layers[layer]
        return stages.logits(stages.convolve([self._normalized(layer, numbers) for numbers in windows.T]))

    def decoded(self, inputs: Ints, norm: JacobianNorm | None = None) -> Ball:
        """R (1 + r), above the last layer -> R m: what labels and answers are read from."""
        norm = norm or self.stages.norm
        return self.stages.decode(self.residual_above(len(self.streams) - 1, inputs, norm), norm)

    def residual_above(self, layer: int, inputs: Ints, norm: JacobianNorm | None = None) -> Ball:
        """The residual stream above a layer."""
        stages = self.stages.layers[layer]
        streams, values = self.streams[layer][inputs[:, 0]], stages.read_values(inputs[:, 1:])
        return stages.mix(streams, values, norm or self.stages.norm)

    def _normalized(self, layer: int, numbers: Ints) -> Ball:
        normalized, begun = self.stages.layers[layer].normalize(self.streams[layer][numbers]), numbers >= 0
        return Ball(np.where(begun[:, None], normalized.mid, 0.0), np.where(begun, normalized.rad, 0.0))


def batches(rows: Ints, width: int) -> Iterator[Ints]:
    """Yields at least one batch, so that empty input gives an empty result of the right shape."""
    at_once = max(1, AT_ONCE // width)
    for begin in range(0, max(1, len(rows)), at_once):
        yield rows[begin : begin + at_once]


def map_batches(work: Callable[[Ints], Result], rows: Ints, width: int) -> list[Result]:
    """The results of `work` for every batch, in order, on all cores.

    Each thread takes whole batches: the products of a batch are small, and threads that shared one would wait for each
    other at every product.
    """
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(work, batches(rows, width)))
    finally:
        torch.set_num_threads(threads)

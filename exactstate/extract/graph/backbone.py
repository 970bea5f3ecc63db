"""A `Backbone` as a graph, lowered by hand: the nodes that tracing would give, without `torch.export`.

    R  rows     m  width     r  heads of a layer     k  kernel size

The graph is cut at the residual stream that each layer reads. An *input* of a layer has a number, as in an extraction:
of the first layer it is a token, of a layer above an input of the layer below and the indices that this has moved to.
What a `Stream` node may be is bounded once for every input, and the layer reads it by its number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from exactstate._types import Ints
from exactstate.errors import InvalidInput
from exactstate.extract.graph.arithmetic import Arithmetic, Assumptions
from exactstate.extract.graph.nodes import (
    Add,
    Begin,
    Conv,
    Function,
    Graph,
    Input,
    LayerCall,
    Multiply,
    Node,
    Normalize,
    Scale,
    Shift,
    State,
    Stream,
)  # fmt: skip
from exactstate.extract.graph.steps import Steps
from exactstate.extract.result import Extracted
from exactstate.nn import NFSM, Backbone, GatedMLP
from exactstate.nn.backbone import BackboneLayer
from exactstate.nn.conv import CausalConvolution


def affine(linear: nn.Linear, x: Node, name: str) -> Node:
    return Conv(size=linear.out_features, args=(x,), taps=((0, linear.weight),), bias=linear.bias, name=name)


def layer_norm(norm: nn.LayerNorm, x: Node, name: str) -> Node:
    return Normalize(
        size=x.size, args=(x,), gain=norm.weight, bias=norm.bias, epsilon=norm.eps, own_epsilon=norm.eps, centered=True,
        name=name,
    )  # fmt: skip


def gated(mlp: GatedMLP, x: Node, name: str) -> Node:
    gate = affine(mlp.gate, x, f"{name}.gate")
    opened = Function(size=gate.size, args=(gate,), function="silu", name=f"{name} (silu)")
    product = Multiply(size=gate.size, args=(opened, affine(mlp.up, x, f"{name}.up")), name=f"{name} (product)")
    return affine(mlp.down, product, f"{name}.down")


def convolved(conv: CausalConvolution, x: Node, name: str) -> Node:
    """Taps are added to the bias one after the other, the earliest first; before the word began, x is zero."""
    begun = Begin(size=x.size, args=(x,), name=name)
    y: Node | None = None
    for tap, weight in enumerate(conv.weight.T):
        lag = conv.kernel_size - 1 - tap
        earlier = Shift(size=x.size, args=(begun,), lag=lag, name=name) if lag else begun
        scaled = Scale(size=x.size, args=(earlier,), factor=weight, name=name)
        if y is None:
            y = Scale(size=x.size, args=(scaled,), offset=conv.bias, name=name)
        else:
            y = Add(size=x.size, args=(y, scaled), name=name)
    assert y is not None
    return Function(size=x.size, args=(y,), function="silu", name=name)


def block_input(layer: BackboneLayer, stream: Node, name: str) -> Node:
    x = layer_norm(layer.norm1, stream, f"{name}.norm1")
    return x if layer.conv is None else convolved(layer.conv, x, f"{name}.conv")


def stream_above(layer: BackboneLayer, number: int, stream: Node, name: str) -> Node:
    """The residual stream above a layer, from that below it and the output of the block."""
    state = State(size=stream.size, layer=number, name=f"{name}.block")
    h = Add(size=stream.size, args=(stream, state), name=name)
    mixed = gated(layer.mlp, layer_norm(layer.norm2, h, f"{name}.norm2"), f"{name}.mlp")
    return Add(size=stream.size, args=(h, mixed), name=name)


class LoweredBackbone:
    """A backbone of NFSM layers, with the numbered inputs and windows of an extraction."""

    region: None = None
    dropped: tuple[tuple[int, ...], ...] | None = None
    methods = ("interval",)

    def __init__(self, model: Backbone, extracted: Extracted) -> None:
        check(model)
        layers: Sequence[BackboneLayer] = list(model.layers)  # type: ignore[arg-type]
        token = Input(size=model.width, table=model.embedding.weight, name="embedding")
        encoded = layer_norm(model.encoder_norm, gated(model.encoder, token, "encoder"), "encoder_norm")
        streams = [Stream(size=model.width, layer=number, name="stream") for number in range(len(layers))]
        names = [f"layers.{number}" for number in range(len(layers))]
        stages = list(zip(layers, range(len(layers)), streams, names, strict=True))
        above = [stream_above(layer, number, stream, name) for layer, number, stream, name in stages]
        decoded = gated(model.decoder, layer_norm(model.final_norm, above[-1], "final_norm"), "decoder")
        self.streams: tuple[Node, ...] = (encoded, *above[:-1])
        """What every stream is computed from: a token, or the stream of the layer below and its indices."""
        self.blocks: list[NFSM] = [layer.block for layer in layers]  # type: ignore[misc]
        self.graph = Graph(
            layers=tuple(
                LayerCall(f"{name}.block", layer.block, block_input(layer, stream, name))  # type: ignore[arg-type]
                for layer, _, stream, name in stages
            ),
            output=affine(model.readout, decoded, "readout"),
            answers=None if model.answer_head is None else affine(model.answer_head, decoded, "answer_head"),
        )
        self.inputs = [layer.inputs for layer in extracted.layers]

    def assumes(self, assumptions: Assumptions, format: str) -> tuple[str, ...]:
        """Nothing beside `Assumptions.sentences`."""
        return ()

    def possible(self, arithmetic: Arithmetic, inputs: Ints) -> None:
        """No head is left out."""

    def stream_steps(self, layer: int) -> Steps:
        """What the streams of a layer are computed from, by number."""
        return self._steps(self.inputs[layer], layer - 1)

    def layer_steps(self, layer: int, windows: Ints) -> Steps:
        """R k numbers of inputs."""
        return Steps(windows, ())

    def read_steps(self, inputs: Ints) -> Steps:
        return self._steps(inputs, len(self.blocks) - 1)

    def _steps(self, inputs: Ints, layer: int) -> Steps:
        """Rows of (input of a layer, its indices); of a token there are none."""
        none = np.zeros((len(inputs), 1, 0), np.int64)
        indices = tuple(inputs[:, None, 1:] if other == layer else none for other in range(len(self.blocks)))
        return Steps(inputs[:, :1], indices)


def check(model: Backbone) -> None:
    """Raise the error for a model whose rounding cannot be bounded."""
    for place, layer in enumerate(model.layers):
        if not isinstance(layer.block, NFSM):
            raise InvalidInput(
                f"rounding is bounded for NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
            )
    for name, parameter in model.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise InvalidInput(f"parameter {name!r} is not finite everywhere; such weights describe no machine.")

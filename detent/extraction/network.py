"""A model as a function of integers: what it does at an input that tokens and indices determine.

    A  symbols     m  width     r  heads of a layer     d  indices of a head     S  the sum of the ds     k  reach

The residual stream that layer l reads is a function of the token and of the indices that the layers below it have
moved to at this step; each such *input* is given a number when it is entered. What the block of the layer reads is a
function of a *window*: the numbers of the last k inputs, -1 where the word had not begun. Nothing else enters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from detent.automata.running import Ints
from detent.errors import InvalidInput, unknown
from detent.extraction.choices import Choices
from detent.extraction.numbering import Growing
from detent.layers import NFSM
from detent.models import Backbone
from detent.models.backbone import Layer

FORMATS = {"float64": torch.float64, "float32": torch.float32}
AT_ONCE = 1 << 23
"""Logits that are held at a time."""


class Network(Protocol):
    """What an exploration asks of a model."""

    symbols: int
    heads: tuple[tuple[int, ...], ...]
    """Indices of every head of every layer."""
    home: tuple[tuple[int, ...], ...]
    """Where they begin."""
    reach: int

    @property
    def nbytes(self) -> int:
        """What is held in memory for the inputs entered so far."""

    def enter(self, layer: int, inputs: Ints) -> None:
        """Take up the next inputs of a layer above the first: rows of (input of the layer below, its indices)."""

    def tables(self, layer: int, windows: Ints) -> Choices:
        """Where the block sends every index of every head (R S)."""

    def read_out(self, inputs: Ints) -> Iterator[tuple[Choices, Choices | None]]:
        """Labels, and answers if there are any, batch by batch; rows as for `enter`, above the last layer."""


class Evaluated:
    """The network of a backbone whose blocks are NFSMs, evaluated in a given format on a copy of its weights."""

    def __init__(self, model: Backbone, symbols: int, format: str) -> None:
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        for place, layer in enumerate(model.layers):
            if not isinstance(layer.block, NFSM):
                raise InvalidInput(
                    f"tables can be read from NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
                )
        self.model = deepcopy(model).to("cpu", FORMATS[format]).eval()
        self.layers: list[Layer] = list(self.model.layers)  # type: ignore[arg-type]
        self.blocks: list[NFSM] = [layer.block for layer in self.layers]  # type: ignore[misc]
        self.symbols, self.reach = symbols, model.reach
        self.heads = tuple(block.heads for block in self.blocks)
        self.home = tuple(block.home for block in self.blocks)
        self.streams = [Growing(model.width, np.dtype(format)) for _ in self.blocks]
        with torch.no_grad():
            self.streams[0].append(self.model.encode(torch.arange(symbols)).numpy())

    @property
    def nbytes(self) -> int:
        return sum(stream.nbytes for stream in self.streams)

    @torch.no_grad()
    def enter(self, layer: int, inputs: Ints) -> None:
        for some in _batches(inputs, self.model.width):
            self.streams[layer].append(self.above(layer - 1, some).numpy())

    @torch.no_grad()
    def tables(self, layer: int, windows: Ints) -> Choices:
        entries = sum(d * d for d in self.heads[layer])
        return Choices.joined([self._tables(layer, some) for some in _batches(windows, entries)], axis=0)

    @torch.no_grad()
    def read_out(self, inputs: Ints) -> Iterator[tuple[Choices, Choices | None]]:
        reply = self.model.reply
        for some in _batches(inputs, self.model.labels):
            seen = self.model.decode(self.above(len(self.blocks) - 1, some))
            said = Choices.among(self.model.readout(seen).numpy(), "the logits of the labels")
            yield said, None if reply is None else Choices.among(reply(seen).numpy(), "the logits of the answers")

    def above(self, layer: int, inputs: Ints) -> Tensor:
        """The residual stream above a layer (R m) after the step that leads to these indices."""
        rows, block = _long(inputs), self.blocks[layer]
        words = block.values[rows[:, 1:] + torch.tensor(offsets(block.heads))].flatten(1)
        return self.layers[layer].mix(self._stream(layer, rows[:, 0]) + block.projection(words))

    def read(self, layer: int, windows: Ints) -> Tensor:
        """What the block of a layer reads (R m)."""
        rows, part = _long(windows), self.layers[layer]
        newest = self._stream(layer, rows[:, -1:])
        if part.convolution is None:
            return part.read(newest)[0][:, 0]
        # before the word began, a convolution holds zeros
        last = part.before(self._stream(layer, rows[:, :-1])) * (rows[:, :-1, None] >= 0)
        return part.read(newest, last)[0][:, 0]

    def _tables(self, layer: int, windows: Ints) -> Choices:
        chosen = [
            Choices.among(logits.transpose(-1, -2).numpy(), f"the logits of layer {layer}")
            for logits in self.blocks[layer].logits(self.read(layer, windows))
        ]
        return Choices.joined(chosen, axis=1)

    def _stream(self, layer: int, numbers: Tensor) -> Tensor:
        return torch.from_numpy(self.streams[layer].rows)[numbers]


def offsets(heads: Sequence[int]) -> list[int]:
    """Where each head's indices begin among those of all."""
    return [sum(heads[:h]) for h in range(len(heads))]


def _batches(rows: Ints, width: int) -> Iterator[Ints]:
    at_once = max(1, AT_ONCE // width)
    for begin in range(0, len(rows), at_once):
        yield rows[begin : begin + at_once]


def _long(rows: Ints) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.int64))

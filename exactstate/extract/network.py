"""A model as a function of integers: every tensor it computes at a step is determined by symbols and indices.

    A  symbols     m  width     r  heads of a layer     d  indices of a head     S  the sum of the ds     k  kernel size

The residual stream that a layer reads is a function of the token and of the indices that the layers below it have moved
to at this step; each such *input* has a number. What the block of the layer reads is a function of a *window*: the
numbers of the last k inputs, -1 where the word had not begun. Nothing else enters.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Protocol

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from exactstate._types import Ints
from exactstate.errors import InvalidInput, unknown
from exactstate.extract.argmax import ArgmaxMargins, ScreenedReadout, can_screen
from exactstate.extract.result import head_offsets
from exactstate.nn import NFSM, Backbone, GatedMLP
from exactstate.nn.backbone import BackboneLayer
from exactstate.nn.conv import CausalConvolution
from exactstate.nn.wrapped import own_class
from exactstate.number_formats import EXTRACTION_FORMATS

AT_ONCE = 1 << 23
"""Logits that are computed at a time."""
LABELS = "the logits of the labels"


class GrowingArray:
    """Rows of one width, appended in amortized constant time."""

    def __init__(self, width: int, dtype: DTypeLike) -> None:
        self._held: NDArray = np.empty((64, width), dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, rows: NDArray) -> None:
        wanted = self._count + len(rows)
        if wanted > len(self._held):
            larger = np.empty((max(wanted, 2 * len(self._held)), self._held.shape[1]), self._held.dtype)
            larger[: self._count] = self.rows
            self._held = larger
        self._held[self._count : wanted] = rows
        self._count = wanted

    @property
    def rows(self) -> NDArray:
        return self._held[: self._count]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes


class Network(Protocol):
    """What an exploration needs of a model: a function of integers."""

    symbols: int
    heads: tuple[tuple[int, ...], ...]
    """The number of indices of every head of every layer."""
    start: tuple[tuple[int, ...], ...]
    """Their initial indices."""
    kernel_size: int

    @property
    def nbytes(self) -> int:
        """Memory used for the inputs so far."""

    def add_inputs(self, layer: int, inputs: Ints) -> None:
        """Append inputs of a layer above the first: rows of (input of the layer below, its indices)."""

    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        """The successor of every index of every head (R S)."""

    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        """Labels, and answers if there are any, batch by batch; rows as for `add_inputs`, above the last layer."""


def as_built(model: Backbone) -> bool:
    """Whether all parts of a backbone are those of its constructor, so that its weights tell what it computes."""
    mlps = [model.encoder, model.decoder]
    norms, linears = [model.encoder_norm, model.final_norm], [model.readout, model.answer_head]
    held: list[tuple[nn.Module | None, type[nn.Module]]] = [(model, Backbone), (model.embedding, nn.Embedding)]
    for layer in model.layers:
        if not isinstance(layer.block, NFSM):
            return True  # there are no tables
        if not isinstance(layer, BackboneLayer) or own_class(layer, BackboneLayer) is not None:
            return False
        held += [(layer.block, NFSM), (layer.conv, CausalConvolution)]
        mlps.append(layer.mlp)
        norms += [layer.norm1, layer.norm2]
        if isinstance(layer.block, NFSM):
            linears += [layer.block.out_proj, layer.block.mix_proj]
    for mlp in mlps:
        if own_class(mlp, GatedMLP) is not None:
            return False
        linears += [mlp.gate, mlp.up, mlp.down]
        held.append((mlp.dropout, nn.Dropout))
    held += [(norm, nn.LayerNorm) for norm in norms] + [(linear, nn.Linear) for linear in linears]
    same = all(part is None or own_class(part, kind) is None for part, kind in held)
    whole = all(part is None or type(part) is kind for part, kind in held if kind in (nn.LayerNorm, nn.Linear))
    plain = all(norm.weight is not None and norm.bias is not None for norm in norms) if whole else False
    return same and whole and plain and type(model.embedding) is nn.Embedding and model.embedding.max_norm is None


class EvaluatedNetwork:
    """The network of a backbone whose blocks are NFSMs, evaluated in a given format on a copy of its weights."""

    def __init__(self, model: Backbone, symbols: int, format: str) -> None:
        if format not in EXTRACTION_FORMATS:
            raise unknown("format", format, EXTRACTION_FORMATS)
        for place, layer in enumerate(model.layers):
            if not isinstance(layer.block, NFSM):
                raise InvalidInput(
                    f"tables can be extracted from NFSM blocks; layer {place} holds a {type(layer.block).__name__}."
                )
        self.model = deepcopy(model).to("cpu", getattr(torch, format)).eval()
        self.layers: list[BackboneLayer] = list(self.model.layers)  # type: ignore[arg-type]
        self.blocks: list[NFSM] = [layer.block for layer in self.layers]  # type: ignore[misc]
        self.symbols, self.kernel_size = symbols, model.kernel_size
        self.heads = tuple(block.heads for block in self.blocks)
        self.start = tuple(block.config.initial_state for block in self.blocks)
        self.streams = [GrowingArray(model.width, np.dtype(format)) for _ in self.blocks]
        with torch.no_grad():
            self.streams[0].append(self.model.encode(torch.arange(symbols)).numpy())

    @property
    def nbytes(self) -> int:
        return sum(stream.nbytes for stream in self.streams)

    @torch.no_grad()
    def add_inputs(self, layer: int, inputs: Ints) -> None:
        for some in _batches(inputs, self.model.width):
            self.streams[layer].append(self.residual_above(layer - 1, some).numpy())

    @torch.no_grad()
    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        entries = sum(d * d for d in self.heads[layer])
        return ArgmaxMargins.joined([self._tables(layer, some) for some in _batches(windows, entries)], axis=0)

    @torch.no_grad()
    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        answer_head, readout = self.model.answer_head, self.model.readout
        screened = ScreenedReadout(readout) if can_screen(readout) else None
        for some in _batches(inputs, self.model.labels):
            decoded = self.model.decode(self.residual_above(len(self.blocks) - 1, some))
            if screened is None:
                labels = ArgmaxMargins.of(readout(decoded).numpy(), LABELS)
            else:
                labels = screened.argmax(decoded, LABELS)
            answers = None
            if answer_head is not None:
                answers = ArgmaxMargins.of(answer_head(decoded).numpy(), "the logits of the answers")
            yield labels, answers

    def residual_above(self, layer: int, inputs: Ints) -> Tensor:
        """The residual stream above a layer (R m) after the step that leads to these indices."""
        rows, block = _long(inputs), self.blocks[layer]
        values = block.values[rows[:, 1:] + torch.tensor(head_offsets(block.heads))].flatten(1)
        return self.layers[layer].feed_forward(self._stream(layer, rows[:, 0]) + block.out_proj(values))

    def block_input(self, layer: int, windows: Ints) -> Tensor:
        """The input of a layer's block (R m)."""
        rows, part = _long(windows), self.layers[layer]
        newest = self._stream(layer, rows[:, -1:])
        if part.conv is None:
            return part.block_input(newest)[0][:, 0]
        # before the word began, a convolution holds zeros
        last = part.norm1(self._stream(layer, rows[:, :-1])) * (rows[:, :-1, None] >= 0)
        return part.block_input(newest, last)[0][:, 0]

    def _tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        chosen = [
            ArgmaxMargins.of(logits.transpose(-1, -2).numpy(), f"the logits of layer {layer}")
            for logits in self.blocks[layer].logits(self.block_input(layer, windows))
        ]
        return ArgmaxMargins.joined(chosen, axis=1)

    def _stream(self, layer: int, numbers: Tensor) -> Tensor:
        return torch.from_numpy(self.streams[layer].rows)[numbers]


def _batches(rows: Ints, width: int) -> Iterator[Ints]:
    at_once = max(1, AT_ONCE // width)
    for begin in range(0, len(rows), at_once):
        yield rows[begin : begin + at_once]


def _long(rows: Ints) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.int64))

"""Models that cannot be traced: an adapter says which parts are position-wise, and where the NFSM layers stand.

    A  symbols     m  width of the stream

>>> adapter = Adapter(
...     encode=model.embedding,                                     # symbols (R) -> stream (R m)
...     layers=[(model.memory, model.norm, lambda h, y: h + y)],    # each: layer, its input, the stream after it
...     read=model.readout,                                         # stream (R m) -> logits (R labels)
... )
>>> machine = exactstate.extract(adapter, symbols=["a", "b"])

The callables are trusted to treat every row by itself. Their operations are not known, so there is no rounding proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import Ints
from exactstate.errors import InvalidInput, unknown
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.graph.network import layer_output
from exactstate.extract.network import AT_ONCE, GrowingArray
from exactstate.nn import NFSM
from exactstate.number_formats import EXTRACTION_FORMATS

AdaptedLayer = NFSM | tuple[NFSM, Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]
"""A layer on the stream itself with a residual connection, or (layer, its input, the stream after it)."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """A model as three parts: `encode`, `layers`, `read`. Modules are evaluated as they are, on the CPU."""

    encode: Callable[[Tensor], Tensor]
    """Symbols (R integers), or input vectors (R n), to the stream (R m)."""
    layers: Sequence[AdaptedLayer]
    """From the first to the last: a layer, or (layer, stream -> its input, (stream, its output) -> stream)."""
    read: Callable[[Tensor], Tensor]
    """The stream (R m) to the logits of the labels (R labels)."""
    model: nn.Module | None = None
    """The whole model, for the digest of its weights; that of the layers by default."""

    def __post_init__(self) -> None:
        for part in ("encode", "read"):
            if not callable(getattr(self, part)):
                raise InvalidInput(f"`{part}` of an adapter is a function; got {type(getattr(self, part)).__name__}.")
        for place, layer in enumerate(self.layers):
            if not isinstance(layer if isinstance(layer, NFSM) else layer[0], NFSM):
                raise InvalidInput(
                    f"layers of an adapter are NFSMs, or (NFSM, its input, the stream after it); "
                    f"number {place} is {type(layer).__name__}."
                )
        if not self.layers:
            raise InvalidInput("an adapter needs at least one NFSM layer.")

    @property
    def modules(self) -> list[NFSM]:
        return [layer if isinstance(layer, NFSM) else layer[0] for layer in self.layers]

    def parts(self, layer: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]:
        """(the input of a layer, the stream after it)."""
        adapted = self.layers[layer]
        return (lambda h: h, torch.add) if isinstance(adapted, NFSM) else (adapted[1], adapted[2])

    def digest(self) -> str:
        """SHA-256 of the weights of the model, or of the layers where it is not given."""
        from exactstate.extract.extract import digest

        if self.model is not None:
            return digest(self.model)
        return hashlib.sha256("".join(map(digest, self.modules)).encode()).hexdigest()


class AdapterNetwork:
    """The network of an adapter; its parts are evaluated in the format that they are in."""

    kernel_size = 1

    def __init__(self, adapter: Adapter, symbols: int, format: str, vectors: Tensor | None = None) -> None:
        if format not in EXTRACTION_FORMATS:
            raise unknown("format", format, EXTRACTION_FORMATS)
        self.adapter, self.symbols, self.format = adapter, symbols, format
        for module in adapter.modules:
            if module.training:
                raise InvalidInput("an NFSM layer of the adapter is in training mode; call model.eval() first.")
        kinds = {module.weight.dtype for module in adapter.modules}
        if kinds != {getattr(torch, format)}:
            had = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
            raise InvalidInput(
                f"the layers of the adapter are {had}, and an adapter is evaluated as it is: pass format={had!r}, or "
                f"convert the model with .to(torch.{format})."
            )
        self.blocks = [deepcopy(module) for module in adapter.modules]
        self.heads = tuple(block.heads for block in self.blocks)
        self.start = tuple(block.config.initial_state for block in self.blocks)
        read = torch.arange(symbols) if vectors is None else vectors.to(getattr(torch, format))
        with torch.no_grad():
            first = self._rows("encode", adapter.encode(read), symbols)
            self.streams = [GrowingArray(first.shape[1], np.dtype(format))]
            self.streams[0].append(first.numpy())
            self.labels = self._rows("read", adapter.read(self._after_all(first)), symbols).shape[1]

    def _after_all(self, stream: Tensor) -> Tensor:
        """The stream above the last layer at the initial indices: to learn the widths."""
        for layer, block in enumerate(self.blocks):
            start = torch.tensor(self.start[layer]).expand(len(stream), -1)
            stream = self._rows("layers", self.adapter.parts(layer)[1](stream, layer_output(block, start)), len(stream))
            if layer + 1 < len(self.blocks):
                self.streams.append(GrowingArray(stream.shape[1], np.dtype(self.format)))
        return stream

    def _rows(self, part: str, value: Tensor, rows: int) -> Tensor:
        if not isinstance(value, Tensor) or value.ndim != 2 or len(value) != rows:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InvalidInput(f"`{part}` of the adapter maps {rows} rows to {rows} rows of numbers; got {shape}.")
        return value.detach()

    @property
    def nbytes(self) -> int:
        return sum(stream.nbytes for stream in self.streams)

    @torch.no_grad()
    def add_inputs(self, layer: int, inputs: Ints) -> None:
        for some in self._batches(inputs):
            self.streams[layer].append(self._above(layer - 1, some).numpy())

    @torch.no_grad()
    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        parts = []
        for some in self._batches(windows):
            stream = torch.from_numpy(self.streams[layer].rows[some[:, -1]])
            rows = self._rows("layers", self.adapter.parts(layer)[0](stream), len(some))
            heads = self.blocks[layer].logits(rows)
            chosen = [ArgmaxMargins.of(head.transpose(-1, -2).numpy(), f"logits of layer {layer}") for head in heads]
            parts.append(ArgmaxMargins.joined(chosen, axis=1))
        return ArgmaxMargins.joined(parts, axis=0)

    @torch.no_grad()
    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        for some in self._batches(inputs):
            logits = self._rows("read", self.adapter.read(self._above(len(self.blocks) - 1, some)), len(some))
            yield ArgmaxMargins.of(logits.numpy(), "the logits of the labels"), None

    def _above(self, layer: int, inputs: Ints) -> Tensor:
        stream = torch.from_numpy(self.streams[layer].rows[inputs[:, 0]])
        indices = torch.from_numpy(np.ascontiguousarray(inputs[:, 1:], np.int64))
        return self._rows(
            "layers", self.adapter.parts(layer)[1](stream, layer_output(self.blocks[layer], indices)), len(inputs)
        )

    def _batches(self, rows: Ints) -> Iterator[Ints]:
        at_once = max(1, AT_ONCE // max(sum(d * d for d in heads) for heads in self.heads))
        for begin in range(0, len(rows), at_once):
            yield rows[begin : begin + at_once]

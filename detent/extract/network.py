"""A model as a function of integers: what it does at an input that tokens and indices determine.

    A  symbols     m  width     r  heads of a layer     d  indices of a head     S  the sum of the ds     k  reach

The residual stream that layer l reads is a function of the token and of the indices that the layers below it have
moved to at this step; each such *input* is given a number when it is entered. What the block of the layer reads is a
function of a *window*: the numbers of the last k inputs, -1 where the word had not begun. Nothing else enters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from detent._types import Floats, Ints
from detent.errors import InvalidInput, unknown
from detent.nn import NFSM, Backbone
from detent.nn.backbone import BackboneLayer

# -- Which entry of a column of logits is the largest, by how much, and which comes next.


@dataclass(frozen=True, eq=False)
class Choices:
    """What columns of logits choose: the arg max, the lowest index on a tie."""

    best: Ints
    margins: Floats
    """By how much the best is ahead of the second; rounded down; infinite where there is nothing else to choose."""
    seconds: Ints
    """What would be chosen next."""

    @classmethod
    def among(cls, logits: Floats, what: str) -> Choices:
        """Along the last axis. The logits are used up: a large array is not copied."""
        held = np.ascontiguousarray(logits, np.float64)
        if not np.isfinite(held).all():
            raise InvalidInput(f"{what} are not all finite; such weights describe no machine.")
        best = held.argmax(-1)
        top = np.take_along_axis(held, best[..., None], -1)[..., 0]
        np.put_along_axis(held, best[..., None], -np.inf, -1)
        seconds = held.argmax(-1)
        second = np.take_along_axis(held, seconds[..., None], -1)[..., 0]
        # a difference of two numbers is rounded by less than half a unit; the one below is a margin for certain
        gaps = top - second
        margins = np.where(np.isinf(gaps), gaps, np.nextafter(gaps, 0.0))
        return cls(best.astype(np.int32), margins, seconds.astype(np.int32))

    @classmethod
    def joined(cls, parts: Sequence[Choices], axis: int) -> Choices:
        return cls(
            best=np.concatenate([part.best for part in parts], axis=axis),
            margins=np.concatenate([part.margins for part in parts], axis=axis),
            seconds=np.concatenate([part.seconds for part in parts], axis=axis),
        )


# -- Rows of integers and a number for each, and arrays that grow: what an exploration keeps its finds in.

_PER_KEY = 200
"""Bytes that a dictionary takes for a key and its number, about, beside the key itself."""


class Growing:
    """Rows of one shape, appended to without copying them all each time."""

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


class Numbering:
    """Different rows, numbered in the order in which they first came.

    >>> met = Numbering(2)
    >>> met.of(np.array([[5, 1], [0, 2], [5, 1]])).tolist(), len(met)
    ([0, 1, 0], 2)
    """

    def __init__(self, width: int) -> None:
        self._number: dict[bytes, int] = {}
        self._kept = Growing(width, np.int32)

    def __len__(self) -> int:
        return len(self._number)

    @property
    def rows(self) -> Ints:
        """The rows in the order of their numbers."""
        return self._kept.rows

    def of(self, rows: Ints) -> Ints:
        """The number of every row; those that were never seen get the next ones."""
        known, number = len(self), self._number
        raw = np.ascontiguousarray(rows, np.int32).tobytes()
        width = 4 * rows.shape[1]
        numbers = np.array([number.setdefault(raw[i : i + width], len(number)) for i in range(0, len(raw), width)], int)
        fresh = np.flatnonzero(numbers >= known)
        _, first = np.unique(numbers[fresh], return_index=True)
        self._kept.append(rows[fresh[first]])
        return numbers

    @property
    def nbytes(self) -> int:
        """What is held in memory, about."""
        return self._kept.nbytes + len(self) * (_PER_KEY + 4 * self.rows.shape[1])


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
        self.layers: list[BackboneLayer] = list(self.model.layers)  # type: ignore[arg-type]
        self.blocks: list[NFSM] = [layer.block for layer in self.layers]  # type: ignore[misc]
        self.symbols, self.reach = symbols, model.kernel_size
        self.heads = tuple(block.heads for block in self.blocks)
        self.home = tuple(block.config.initial_state for block in self.blocks)
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
        reply = self.model.answer_head
        for some in _batches(inputs, self.model.labels):
            seen = self.model.decode(self.above(len(self.blocks) - 1, some))
            said = Choices.among(self.model.readout(seen).numpy(), "the logits of the labels")
            yield said, None if reply is None else Choices.among(reply(seen).numpy(), "the logits of the answers")

    def above(self, layer: int, inputs: Ints) -> Tensor:
        """The residual stream above a layer (R m) after the step that leads to these indices."""
        rows, block = _long(inputs), self.blocks[layer]
        words = block.values[rows[:, 1:] + torch.tensor(offsets(block.heads))].flatten(1)
        return self.layers[layer].feed_forward(self._stream(layer, rows[:, 0]) + block.out_proj(words))

    def read(self, layer: int, windows: Ints) -> Tensor:
        """What the block of a layer reads (R m)."""
        rows, part = _long(windows), self.layers[layer]
        newest = self._stream(layer, rows[:, -1:])
        if part.conv is None:
            return part.block_input(newest)[0][:, 0]
        # before the word began, a convolution holds zeros
        last = part.norm1(self._stream(layer, rows[:, :-1])) * (rows[:, :-1, None] >= 0)
        return part.block_input(newest, last)[0][:, 0]

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

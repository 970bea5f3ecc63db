"""A traced model as a function of integers: what an exploration needs (see `exactstate.extract.network.Network`).

    A  symbols     r  heads of a layer     K  reach     S  indices of all heads of a layer

The model itself is run, in a given format, on sequences as long as its reach, with the outputs of the NFSM layers given
by their indices; a last step that nothing depends on keeps the length above one. Where the read-out depends on earlier
steps, a *delay* above the last layer holds what it needs of them: heads whose table sends every index to the number of
a symbol, or of an index, some steps ago. No logits decide about them; their margin is 1.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import MISSING, Bools, Ints
from exactstate.errors import unknown
from exactstate.extract.argmax import ArgmaxMargins
from exactstate.extract.graph.arithmetic import Arithmetic, Assumptions
from exactstate.extract.graph.folded import Folded
from exactstate.extract.graph.nodes import Function, Node, Normalize, constants_of, nodes_below
from exactstate.extract.graph.steps import Delay, InputBook, Region, Steps, filled
from exactstate.extract.graph.trace import Traced, prepared
from exactstate.extract.network import AT_ONCE
from exactstate.extract.result import Extracted, head_offsets
from exactstate.nn import NFSM
from exactstate.number_formats import EXTRACTION_FORMATS

if TYPE_CHECKING:
    from exactstate.extract.regions.watch import Watched


class TracedNetwork:
    """A model written elsewhere, evaluated in a format on a copy of its weights."""

    streams: tuple[Node, ...] = ()
    """The graph is whole."""
    methods = ("interval", "linear")
    """By which leads are bounded, one after the other."""

    def stream_steps(self, layer: int) -> Steps:
        raise NotImplementedError  # there are none

    def __init__(self, model: nn.Module, symbols: int, format: str, *, vectors: Tensor | None = None) -> None:
        if format not in EXTRACTION_FORMATS:
            raise unknown("format", format, EXTRACTION_FORMATS)
        own = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float32)
        self.model, self.format = prepared(model, format), format
        self.vectors = None if vectors is None else vectors.to(getattr(torch, format))
        self.traced = Traced(self.model, None if vectors is None else vectors.shape[1], symbols, own)
        self.graph = self.traced.graph
        self.blocks: list[NFSM] = [call.module for call in self.graph.layers]
        self.symbols, self.kernel_size = symbols, self.graph.reach
        self.labels = self.graph.output.size
        self.delay = Delay.of(self.graph)
        real = [block.heads for block in self.blocks]
        late = tuple(symbols + 1 if layer < 0 else real[layer][head] for _, layer, head in self.delay.entries)
        self.heads = (*real, late) if late else tuple(real)
        self.start = tuple(block.config.initial_state for block in self.blocks)
        if late:
            self.start += (tuple(symbols if layer < 0 else 0 for _, layer, _ in self.delay.entries),)
        self.region: Region | None = None
        if vectors is not None:
            self.region = Region(vectors.to(torch.float64).numpy(), np.zeros(symbols))
        self.dropped: tuple[tuple[int, ...], ...] = ((),) * len(real)
        """For every layer the heads that are proved to influence nothing."""
        self.book = InputBook(symbols, self.heads)

    def assumes(self, assumptions: Assumptions, format: str) -> tuple[str, ...]:
        """What is assumed of a machine beside `Assumptions.sentences`."""
        inner = assumptions.arithmetic(format).inner.name
        nodes = [node for root in self.graph.roots for node in nodes_below(root)]
        functions = {node.function for node in nodes if isinstance(node, Function)}
        sentences = []
        if any(isinstance(node, Normalize) and node.epsilon is None for node in nodes):
            sentences.append(f"an RMS norm without an epsilon adds the machine epsilon of {inner}")
        if any(isinstance(part, Folded) for node in nodes for part in constants_of(node)):
            sentences.append(
                "what is computed from parameters is computed in the order in which the model does, a logarithm or a "
                "power with the error of an exponential"
            )
        if functions & {"tanh", "gelu", "gelu_tanh"}:
            sentences.append(
                f"a hyperbolic tangent errs by at most {assumptions.exp:g} ulp of {inner}, an error function by as "
                "many of 1"
            )
        if self.region is not None:
            sentences.append(f"inputs are rounded to {format}, to nearest, before anything is computed")
        return tuple(sentences)

    @property
    def nbytes(self) -> int:
        return self.book.nbytes

    def add_inputs(self, layer: int, inputs: Ints) -> None:
        self.book.add(layer, inputs)

    def layer_steps(self, layer: int, windows: Ints) -> Steps:
        """What a layer reads at some windows."""
        return self.book.window(layer, windows)

    @torch.no_grad()
    def tables(self, layer: int, windows: Ints) -> ArgmaxMargins:
        if layer == len(self.blocks):
            return self.delayed(windows)
        parts = [self._tables(layer, self.book.window(layer, some)) for some in _batches(windows, self._width(layer))]
        return ArgmaxMargins.joined(parts, axis=0)

    def _tables(self, layer: int, steps: Steps) -> ArgmaxMargins:
        block = self.blocks[layer]
        logits = block.logits(self._evaluate(steps, layer))
        chosen = [ArgmaxMargins.of(head.transpose(-1, -2).numpy(), f"the logits of layer {layer}") for head in logits]
        return ArgmaxMargins.joined(chosen, axis=1)

    def delayed(self, windows: Ints) -> ArgmaxMargins:
        """The tables of the delay: every index goes to what was there some steps ago."""
        steps = self.book.window(len(self.blocks), windows)
        best = []
        for (lag, layer, head), size in zip(self.delay.entries, self.heads[-1], strict=True):
            if layer < 0:
                number = np.where(steps.symbols[:, -1 - lag] >= 0, steps.symbols[:, -1 - lag], self.symbols)
            else:
                number = np.maximum(steps.indices[layer][:, -1 - lag, head], 0)
            best.append(np.repeat(number[:, None], size, axis=1))
        joined = np.concatenate(best, axis=1).astype(np.int32)
        several = np.repeat(self.heads[-1], self.heads[-1]) > 1
        margins = np.broadcast_to(np.where(several, 1.0, np.inf), joined.shape)
        return ArgmaxMargins(joined, margins, np.where(joined > 0, 0, 1).astype(np.int32))

    @torch.no_grad()
    def read_out(self, inputs: Ints) -> Iterator[tuple[ArgmaxMargins, ArgmaxMargins | None]]:
        for some in _batches(inputs, self._width(len(self.blocks))):
            logits = self._evaluate(self.read_steps(some), len(self.blocks))
            yield ArgmaxMargins.of(logits.numpy(), "the logits of the labels"), None

    def read_steps(self, inputs: Ints) -> Steps:
        """What a read-out depends on: the last K steps, unknown ones (that it does not depend on) as not begun."""
        rows = self.book.above(len(self.heads) - 1, inputs)
        ends = 1 + np.cumsum([0, *(len(block.heads) for block in self.blocks)])
        K = self.kernel_size
        symbols = np.full((len(rows), K), MISSING)
        indices = tuple(np.full((len(rows), K, len(block.heads)), MISSING) for block in self.blocks)
        symbols[:, -1] = rows[:, 0]
        for layer, part in enumerate(indices):
            part[:, -1] = rows[:, ends[layer] : ends[layer + 1]]
        for place, (lag, layer, head) in enumerate(self.delay.entries):
            number = rows[:, ends[-1] + place]
            if layer < 0:
                symbols[:, -1 - lag] = np.where(number < self.symbols, number, MISSING)
            else:
                indices[layer][:, -1 - lag, head] = number
        known = np.maximum.accumulate(symbols >= 0, axis=1)  # nothing depends on a gap
        symbols = np.where(known & (symbols < 0), 0, symbols)
        return Steps(symbols, filled(symbols, indices))

    def _evaluate(self, steps: Steps, upto: int) -> Tensor:
        """The argument of a layer, or the logits, at the last of these steps."""
        R, T = steps.symbols.shape
        begun = (steps.symbols >= 0).sum(1)
        result: Tensor | None = None
        for length in np.unique(begun):
            which = np.flatnonzero(begun == length)
            part = steps.rows(which)
            symbols = torch.from_numpy(np.ascontiguousarray(part.symbols[:, T - length :], np.int64))
            symbols = torch.cat([symbols, symbols[:, -1:]], 1)  # one more step, which nothing before it depends on
            outputs = {}
            for layer in range(upto):
                indices = torch.from_numpy(np.ascontiguousarray(part.indices[layer][:, T - length :], np.int64))
                outputs[layer] = self._output(layer, torch.cat([indices, indices[:, -1:]], 1))
            inputs = symbols if self.vectors is None else self.vectors[symbols]
            value = self.traced.evaluate(inputs, outputs, upto)[:, length - 1]
            if result is None:
                result = value.new_zeros(R, value.shape[1])
            result[torch.from_numpy(which)] = value
        return torch.zeros(0, 1) if result is None else result

    def _output(self, layer: int, indices: Tensor) -> Tensor:
        """What the recorded graph reads of a layer whose heads are at these indices."""
        if self.graph.layers[layer].projected:
            return layer_output(self.blocks[layer], indices)
        return layer_values(self.blocks[layer], indices)

    def with_region(self, region: Region) -> TracedNetwork:
        """The same network with other regions for its symbols."""
        other = copy.copy(self)
        other.region = region
        return other

    def run(
        self, x: Tensor, states: list[Tensor] | None = None
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]], list[Tensor], list[Tensor]]:
        """Run the network itself on inputs (L n): (logits, indices before and after every step, arguments, state)."""
        states = states or [block.initial_state(1) for block in self.blocks]
        indices, arguments = [], []
        outputs: dict[int, Tensor] = {}
        # the recorded graph is for lengths above one; nothing depends on a step that follows
        inputs = torch.cat([x, x[-1:]])[None].to(getattr(torch, self.format))
        for layer, block in enumerate(self.blocks):
            argument = self.traced.evaluate(inputs, outputs, layer)
            after = block.states(argument, states[layer])[0]
            outputs[layer] = self._output(layer, after)[None]
            indices.append((torch.cat([states[layer], after[:-1]])[:-1], after[:-1]))
            arguments.append(argument[0, :-1])
        logits = self.traced.evaluate(inputs, outputs, len(self.blocks))[0, :-1]
        return logits, indices, arguments, [after[-1:] for _, after in indices]

    def watch(self, machine: Extracted, x: Tensor, state: Any) -> Watched:
        """See `exactstate.extract.regions.watch`."""
        from exactstate.extract.regions.watch import watch

        return watch(machine, x, state)

    def possible(self, arithmetic: Arithmetic, inputs: Ints) -> Bools | None:
        """R S: the indices of the last layer's heads at some read-outs, where more is known of heads left out."""
        return None

    def _width(self, layer: int) -> int:
        entries = sum(d * d for d in self.heads[layer]) if layer < len(self.blocks) else self.labels
        return entries + (self.kernel_size + 1) * 8 * max(block.config.width for block in self.blocks)


def layer_values(block: NFSM, indices: Tensor) -> Tensor:
    """... r -> ... n: the value vectors of these indices, side by side."""
    return block.values[indices + torch.tensor(head_offsets(block.heads))].flatten(-2)


def layer_output(block: NFSM, indices: Tensor) -> Tensor:
    """... r -> ... m: what a layer puts out when its heads are at these indices."""
    return block.out_proj(layer_values(block, indices))


def _batches(rows: Ints, width: int) -> Iterator[Ints]:
    at_once = max(1, AT_ONCE // width)
    for begin in range(0, len(rows), at_once):
        yield rows[begin : begin + at_once]

"""The graph of a traced model: what it computes at a step, from the inputs and indices of this step and a few before.

    R  rows     n  entries of a node     K  reach: steps that a number may depend on

The batch and the steps are gone: a node is a vector of n numbers at every step. Time enters through `Shift` (the value
some steps ago), `Conv` (a sum over several steps) and `Begin` (zero before the word began), and nowhere else. The
output of an NFSM layer is a node without arguments: given its indices, it depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from torch import Tensor

from exactstate._types import Ints
from exactstate.extract.graph.folded import Constants
from exactstate.nn import NFSM


@dataclass(eq=False, kw_only=True)
class Node:
    """A vector of `size` numbers at every step."""

    size: int
    args: tuple[Node, ...] = ()
    name: str = ""
    """The operation and the module it belongs to, for people."""


@dataclass(eq=False, kw_only=True)
class Input(Node):
    """What a step reads: a row of an embedding, or the input vector itself where `table` is None."""

    table: Constants | None = None


@dataclass(eq=False, kw_only=True)
class Stream(Node):
    """What a layer reads, bounded once for each of its numbered inputs (see `backbone.py`)."""

    layer: int


@dataclass(eq=False, kw_only=True)
class State(Node):
    """The output of an NFSM layer, a function of its indices; before its projection where that is not plain."""

    layer: int


@dataclass(eq=False, kw_only=True)
class Constant(Node):
    """Numbers that depend on no input."""

    value: Constants


@dataclass(eq=False, kw_only=True)
class Conv(Node):
    """bias + the sum of weight @ (argument `lag` steps ago), over the taps; a linear map has one tap of lag 0.

    With several groups, the argument is `groups` vectors side by side and each is mapped by the same weights.
    """

    taps: tuple[tuple[int, Constants], ...]
    """(lag, weights: outputs x inputs)."""
    bias: Constants | None = None
    groups: int = 1


@dataclass(eq=False, kw_only=True)
class Scale(Node):
    """factor * argument + offset, entry by entry, with constants; None for 1 and for 0."""

    factor: Constants | None = None
    offset: Constants | None = None
    stores: int = 2
    """Roundings to the format."""


@dataclass(eq=False, kw_only=True)
class BatchNorm(Node):
    """gain * (argument - mean) / sqrt(variance + epsilon) + bias, entry by entry, with constants."""

    gain: Tensor | None
    bias: Tensor | None
    mean: Tensor
    variance: Tensor
    epsilon: float


@dataclass(eq=False, kw_only=True)
class Add(Node):
    """The sum of two arguments; their difference where `sign` is -1."""

    sign: int = 1


@dataclass(eq=False, kw_only=True)
class Multiply(Node):
    """The product of two arguments, entry by entry."""


@dataclass(eq=False, kw_only=True)
class Normalize(Node):
    """A layer norm, or an RMS norm where `centered` is False, of each of `groups` vectors side by side."""

    gain: Constants | None
    bias: Constants | None
    epsilon: float | None
    """None for the machine epsilon of the format that norms are computed in."""
    own_epsilon: float
    """The same, in the format that the model is in."""
    centered: bool
    groups: int = 1


@dataclass(eq=False, kw_only=True)
class Function(Node):
    """A function of one number, applied to every entry; see `functions.FUNCTIONS`."""

    function: str


@dataclass(eq=False, kw_only=True)
class Gather(Node):
    """Entries of the arguments, joined one after the other; -1 for zero. Reshapes, slices, concatenations."""

    index: Ints


@dataclass(eq=False, kw_only=True)
class Shift(Node):
    """The value some steps ago."""

    lag: int


@dataclass(eq=False, kw_only=True)
class Begin(Node):
    """The argument, and zero before the word began."""


@dataclass(eq=False, kw_only=True)
class Opaque(Node):
    """An operation that is evaluated by running the model, but whose rounding is not bounded."""


@dataclass(frozen=True, eq=False)
class LayerCall:
    """One call of an NFSM layer."""

    name: str
    """Of the module."""
    module: NFSM
    argument: Node
    projected: bool = True
    """Whether its output is read; else the values of its indices are, and the projection is part of the graph."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A traced model."""

    layers: tuple[LayerCall, ...]
    """In the order of evaluation."""
    output: Node
    """The logits of the labels."""
    vector: bool = field(default=False)
    """Whether a step reads a vector, and not a token."""
    answers: Node | None = None
    """The logits of the answers, if there are any."""

    @cached_property
    def reach(self) -> int:
        """How many steps, the newest included, a number may depend on."""
        roots = [*(layer.argument for layer in self.layers), self.output]
        return 1 + max((lag for root in roots for _, lag in sources(root)), default=0)

    def opaque(self, roots: Sequence[Node] | None = None) -> Opaque | None:
        """An operation whose rounding is not bounded, if there is one."""
        found = (node for root in roots or self.roots for node in nodes_below(root) if isinstance(node, Opaque))
        return next(found, None)

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*(layer.argument for layer in self.layers), self.output, *([self.answers] if self.answers else []))


def sources(root: Node) -> set[tuple[Node, int]]:
    """The inputs, layer outputs and beginnings that a node depends on, each with the steps it lies back."""
    found: dict[Node, set[tuple[Node, int]]] = {}
    for node in nodes_below(root):
        if isinstance(node, Input | State):
            found[node] = {(node, 0)}
        else:
            found[node] = {
                (source, lag + extra) for arg in node.args for source, lag in found[arg] for extra in lags(node)
            }
            if isinstance(node, Begin):  # whether the word had begun
                found[node].add((node, 0))
    return found[root]


def constants_of(node: Node) -> list[Constants]:
    """The parameters of a node, and what was computed from parameters."""
    found = [part for part in vars(node).values() if isinstance(part, Constants)]
    return found + [weight for _, weight in node.taps] if isinstance(node, Conv) else found


def tensors_below(root: Node) -> Iterator[Tensor]:
    """The parameters that a node is computed from; what is computed from parameters is no parameter."""
    for node in nodes_below(root):
        yield from (part for part in (*vars(node).values(), *constants_of(node)) if isinstance(part, Tensor))


def lags(node: Node) -> tuple[int, ...]:
    """How many steps ago a node reads its arguments."""
    if isinstance(node, Conv):
        return tuple(lag for lag, _ in node.taps)
    return (node.lag,) if isinstance(node, Shift) else (0,)


def nodes_below(root: Node) -> Iterator[Node]:
    """A node and all that it depends on, arguments first."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((arg, False) for arg in node.args)


def gathered(args: Sequence[Node], index: Ints, name: str) -> Node:
    """Entries of the arguments; the argument itself where nothing changes."""
    index = np.ascontiguousarray(index, np.int64).reshape(-1)
    if len(args) == 1 and len(index) == args[0].size and np.array_equal(index, np.arange(len(index))):
        return args[0]
    return Gather(size=len(index), args=tuple(args), name=name, index=index)

"""From the recorded operations of a model to a `Graph`: every tensor by its axes, operations by what they do to them.

A tensor of the recording is a constant, or a `Flow`: a node of the graph and its axes, each the batch `B`, the steps
`L`, both in one `BL`, or a number of features. An operation is position-wise if it keeps the batch and the steps apart
from everything else. What is not known to do so is refused, by the name of the operation and of its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate.extract.graph.nodes import (
    Begin,
    Constant,
    Graph,
    Input,
    LayerCall,
    Node,
    Opaque,
    Shift,
    State,
    gathered,
)
from exactstate.nn import NFSM

LAYER_OP, STATE_OP = "exactstate_extract.nfsm.default", "exactstate_extract.state.default"
Axis = str | int
"""'B', 'L', 'BL', or a number of features."""


class Refused(Exception):
    """An operation that is not known to be position-wise; the message names it and its module."""


@dataclass(frozen=True, eq=False)
class Flow:
    """A tensor that depends on the input."""

    node: Node
    axes: tuple[Axis, ...]
    offset: int = 0
    """Place p along the steps holds the node at step p + offset."""
    tokens: bool = False
    """Whether these are the tokens themselves."""

    @property
    def features(self) -> tuple[int, ...]:
        return tuple(axis for axis in self.axes if isinstance(axis, int))


@dataclass(frozen=True, eq=False)
class Unusable:
    """A tensor that may exist as long as nothing that counts depends on it."""

    reason: str


Value = Any
"""A `Flow`, an `Unusable`, a constant tensor, or a number."""
Rule = Callable[..., Value]
RULES: dict[str, Rule] = {}
"""By the name of an operation: (lowering, recorded, *args, **kwargs) -> value."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of some operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


class Lowering:
    """One pass over the recorded operations."""

    def __init__(
        self, constants: Mapping[str, Tensor], names: Sequence[str], modules: Sequence[NFSM], *, vector: bool
    ) -> None:
        import exactstate.extract.graph.layout_rules
        import exactstate.extract.graph.rules  # noqa: F401  both register their rules

        self.constants, self.names, self.modules, self.vector = constants, names, modules, vector
        self.layers: list[LayerCall] = []
        self.batch: Any = None
        self.length: Any = None

    def run(self, graph: torch.fx.Graph) -> Graph:
        env: dict[Recorded, Value] = {}
        for recorded in graph.nodes:
            if recorded.op == "placeholder":
                env[recorded] = self._placeholder(recorded)
            elif recorded.op == "output":
                return self._finished(env[_first(recorded.args[0])])
            else:
                env[recorded] = self._lower(recorded, env)
        raise AssertionError("a graph without an output")

    def _placeholder(self, recorded: Recorded) -> Value:
        if recorded.name in self.constants:
            return self.constants[recorded.name]
        shape = recorded.meta["val"].shape
        if any(isinstance(size, int) for size in shape[:2]):
            which = "length" if isinstance(shape[1], int) else "batch size"
            raise Refused(f"the model works for one {which} only ({BATCH_OR_LENGTH[which]}).")
        self.batch, self.length = (size.node.expr for size in shape[:2])
        if self.batch == self.length:
            raise Refused("the model mixes the batch with the steps: it works only where their sizes are equal.")
        size = int(shape[2]) if self.vector else 1
        return Flow(Input(size=size, name="the input"), self.axes(shape), tokens=not self.vector)

    def _lower(self, recorded: Recorded, env: Mapping[Recorded, Value]) -> Value:
        args: Any = torch.fx.map_arg(recorded.args, env.__getitem__)
        kwargs = torch.fx.map_arg(recorded.kwargs, env.__getitem__)
        name = str(recorded.target)
        value = recorded.meta.get("val")
        if name == LAYER_OP:
            return self._layer(recorded, *args)
        if name == STATE_OP:
            reason = "uses the state that an NFSM layer returns; it may use the layer's output only"
            return Unusable(f"{self.where(recorded)} {reason}.")
        if isinstance(value, torch.SymInt | int | float | bool) or value is None:
            return value
        held = [arg for arg in _flat((args, kwargs)) if isinstance(arg, Flow | Unusable)]
        known = RULES.get(name)
        if not held and known is None:
            return self._constant(recorded, args, kwargs)
        try:
            if known is None:
                raise Refused(f"{self.where(recorded)} uses {name.removeprefix('aten.')}, which is not known to be "
                              "position-wise.")  # fmt: skip
            if known is not None and getattr(known, "own_refusal", False):
                return known(self, recorded, *args, **kwargs)
            unusable = next((arg for arg in held if isinstance(arg, Unusable)), None)
            if unusable is not None:
                return unusable
            return known(self, recorded, *args, **kwargs) if held else self._constant(recorded, args, kwargs)
        except Refused as refused:
            return Unusable(str(refused))
        except (AttributeError, TypeError, ValueError, IndexError) as error:  # arguments that no rule foresees
            kind = name.removeprefix("aten.")
            return Unusable(f"{self.where(recorded)} uses {kind} in a way that is not known ({error}).")

    def _constant(self, recorded: Recorded, args: Any, kwargs: Any) -> Value:
        """A tensor that depends on no input: computed now, unless its shape depends on the length."""
        if any(isinstance(arg, torch.SymInt) for arg in _flat((args, kwargs))):
            return self.filled(recorded, args)
        with torch.no_grad():
            return recorded.target(*args, **kwargs)  # type: ignore[operator]

    def filled(self, recorded: Recorded, args: Any) -> Value:
        """A tensor of one number, or something that depends on the position."""
        name = str(recorded.target).removeprefix("aten.").split(".")[0]
        fill = {"zeros": 0.0, "new_zeros": 0.0, "zeros_like": 0.0, "ones": 1.0, "new_ones": 1.0, "ones_like": 1.0}
        if name in fill or (name in ("full", "new_full", "full_like") and args and isinstance(args[-1], int | float)):
            number = fill[name] if name in fill else args[-1]
            axes = self.axes(recorded.meta["val"].shape)
            if axes.count("L") + axes.count("BL") <= 1:
                features = prod(axis for axis in axes if isinstance(axis, int))
                value = torch.full((features,), float(number), dtype=recorded.meta["val"].dtype)
                return Flow(Constant(size=features, value=value, name=self.label(recorded)), axes)
        return Unusable(f"{self.where(recorded)} depends on the position of a step ({name}), not on what is read.")

    def _layer(self, recorded: Recorded, x: Value, number: int) -> Value:
        name = self.names[number]
        if isinstance(x, Unusable):
            raise Refused(f"NFSM layer {name!r} depends on something that is not finite-state: {x.reason}")
        if not isinstance(x, Flow) or x.axes[:2] != ("B", "L"):
            raise Refused(f"the input of NFSM layer {name!r} does not have the axes batch, steps, width.")
        self.layers.append(LayerCall(name, self.modules[number], self.aligned(x)))
        width = self.modules[number].config.width
        state = State(size=width, layer=len(self.layers) - 1, name=f"NFSM layer {name!r}")
        return Flow(state, ("B", "L", width))

    def _finished(self, output: Value) -> Graph:
        if isinstance(output, Unusable):
            raise Refused(output.reason)
        if not isinstance(output, Flow) or len(output.axes) != 3 or output.axes[:2] != ("B", "L"):
            axes = output.axes if isinstance(output, Flow) else "no dependence on the input"
            raise Refused(f"the model must map B L to logits of shape B L labels; it gives {axes}.")
        if not self.layers:
            raise Refused("the model never calls its NFSM layers.")
        return Graph(tuple(self.layers), self.aligned(output), self.vector)

    # Axes

    def axes(self, shape: Sequence[Any]) -> tuple[Axis, ...]:
        return tuple(map(self.axis, shape))

    def axis(self, size: Any) -> Axis:
        """What an axis of this size is; lengths that differ from L by a constant are steps, too."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression.is_Integer:
            return int(expression)
        if expression == self.batch:
            return "B"
        if (expression - self.length).is_Integer:
            return "L"
        if expression == self.batch * self.length:
            return "BL"
        raise Refused(f"an axis of size {expression} is neither the batch nor the steps.")

    def out_axes(self, recorded: Recorded) -> tuple[Axis, ...]:
        return self.axes(recorded.meta["val"].shape)

    def aligned(self, flow: Flow) -> Node:
        """The node at the step that a place along the steps stands for."""
        if flow.offset > 0:
            raise Refused(f"{flow.node.name} reads {flow.offset} steps ahead of the one it is computed for.")
        return flow.node if not flow.offset else shifted(flow.node, -flow.offset)

    def together(self, flows: Sequence[Flow]) -> tuple[list[Node], int]:
        """Nodes of the same step, and the offset they share."""
        offset = max(flow.offset for flow in flows)
        return [shifted(flow.node, offset - flow.offset) for flow in flows], offset

    # Names, for people

    def module(self, recorded: Recorded) -> tuple[str, str]:
        """(path, class) of the module that an operation belongs to."""
        stack = [entry for entry in (recorded.meta.get("nn_module_stack") or {}).values() if "." in str(entry[1])]
        path, kind = stack[-1] if stack else ("", "the model")
        return str(path), str(kind).rsplit(".", 1)[-1]

    def where(self, recorded: Recorded) -> str:
        path, kind = self.module(recorded)
        return f"module {path!r} ({kind})" if path else f"the model ({kind})"

    def label(self, recorded: Recorded) -> str:
        operation = str(recorded.target).removeprefix("aten.").split(".")[0]
        return f"{operation} in {self.where(recorded)}"

    # Building blocks of rules

    def moved(self, recorded: Recorded, flow: Flow, index: Any, axes: tuple[Axis, ...]) -> Flow:
        return replace(flow, node=gathered([flow.node], index, self.label(recorded)), axes=axes)

    def broadcast(self, recorded: Recorded, value: Flow, axes: tuple[Axis, ...]) -> Flow:
        """The flow with the axes of a broadcast result."""
        if value.axes == axes:
            return value
        missing = len(axes) - len(value.axes)
        own = (1,) * missing + value.axes
        for have, want in zip(own, axes, strict=True):
            if have != want and have != 1:
                raise Refused(f"{self.where(recorded)} mixes steps, batch and features ({value.axes} with {axes}).")
        places = np.arange(prod(value.features)).reshape([axis if isinstance(axis, int) else 1 for axis in own])
        wanted = [axis if isinstance(axis, int) else 1 for axis in axes]
        if any(want in ("B", "L", "BL") and have == 1 for have, want in zip(own, axes, strict=True)):
            pass  # the same at every step: a constant that was filled
        return self.moved(recorded, value, np.broadcast_to(places, wanted), axes)

    def constant_like(self, recorded: Recorded, value: Any, axes: tuple[Axis, ...]) -> Tensor:
        """A constant, one number for every feature of these axes."""
        tensor = torch.as_tensor(value)
        own = (1,) * (len(axes) - tensor.ndim) + tuple(tensor.shape)
        for have, want in zip(own, axes, strict=True):
            if have != 1 and not isinstance(want, int):
                raise Refused(f"{self.where(recorded)} adds numbers that depend on the position of a step.")
        wanted = [axis if isinstance(axis, int) else 1 for axis in axes]
        return tensor.reshape(own).expand(wanted).reshape(-1)

    def opaque(self, recorded: Recorded, *values: Value) -> Flow:
        """A position-wise operation whose rounding is not bounded."""
        flows = [value for value in values if isinstance(value, Flow)]
        axes = self.out_axes(recorded)
        nodes, offset = self.together(flows)
        size = prod(axis for axis in axes if isinstance(axis, int))
        return Flow(Opaque(size=size, args=tuple(nodes), name=self.label(recorded)), axes, offset)


BATCH_OR_LENGTH = {"length": "it has a table of positions, or branches on the length", "batch size": "see its code"}


def shifted(node: Node, lag: int) -> Node:
    return node if lag == 0 else Shift(size=node.size, args=(node,), name=node.name, lag=lag)


def begun(node: Node) -> Node:
    return node if isinstance(node, Begin) else Begin(size=node.size, args=(node,), name=node.name)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [item for part in value for item in _flat(part)]
    return [value]


def _first(outputs: Any) -> Any:
    while isinstance(outputs, list | tuple):
        outputs = outputs[0]
    return outputs


def dimensions(flow: Flow, dims: Any) -> tuple[int, ...]:
    """Of an argument of an operation: one, several, or all of them; none negative."""
    wanted = [dims] if isinstance(dims, int) else list(dims) if dims else list(range(len(flow.axes)))
    return tuple(dim % len(flow.axes) for dim in wanted)


def own_refusal(function: Any) -> Any:
    """A rule that refuses by itself, whatever its arguments are."""
    function.own_refusal = True
    return function

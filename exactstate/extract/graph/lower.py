"""From the recorded operations of a model to a `Graph`: every tensor by its axes, operations by what they do to them.

A tensor of the recording is a constant, or a `Flow`: a node of the graph and its axes, each the batch `B`, the steps
`L`, both in one `BL`, or a number of features. An operation is position-wise if it keeps the batch and the steps apart
from everything else. What is not known to do so is refused, by the name of the operation and of its module. A rule is
given every argument that is not the default of the operation's schema: one that it has no parameter for refuses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate.extract.graph.folded import Constants, Folded, folded, rearranged
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
VALUES_OP = "exactstate_extract.values.default"
SYMBOLIC = torch.SymInt | torch.SymFloat | torch.SymBool
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
    tokens: Tensor | None = None
    """Where every entry is the same function of the token, and a whole number: its value for each token."""

    @property
    def features(self) -> tuple[int, ...]:
        return tuple(axis for axis in self.axes if isinstance(axis, int))


@dataclass(frozen=True, eq=False)
class Unusable:
    """A tensor that may exist as long as nothing that counts depends on it."""

    reason: str


Value = Any
"""A `Flow`, an `Unusable`, a constant tensor, a `Folded`, or a number."""
RuleFunction = Callable[..., Value]
HARMLESS = {"memory_format", "layout", "device", "pin_memory", "non_blocking", "copy", "sparse", "scale_grad_by_freq",
            "padding_idx", "cudnn_enable", "cudnn_enabled", "momentum", "implicit", "is_coalesced"}  # fmt: skip
"""Arguments that do not change what is computed in evaluation."""
UNINITIALIZED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided")


@dataclass(frozen=True)
class Rule:
    """What is known of an operation."""

    function: RuleFunction
    layout: bool
    """It puts numbers in other places, so its arguments may be sizes that depend on batch and length."""
    everything: bool
    """The function takes a mapping of all arguments by name; it accounts for all tensors among them."""
    own_refusal: bool
    """It refuses by itself, whatever its arguments are."""
    pointwise: bool
    """Every entry of the result depends on the same entry of each argument."""


RULES: dict[str, Rule] = {}
"""By the name of an operation: (lowering, recorded, *args, **kwargs) -> value."""


def rule(
    *names: str, layout: bool = False, everything: bool = False, own_refusal: bool = False, pointwise: bool = False
) -> Callable[[RuleFunction], RuleFunction]:
    """Register the rule of some operations. Its parameters are all arguments that may differ from their defaults."""

    def register(function: RuleFunction) -> RuleFunction:
        kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}, function.__name__
        RULES.update(dict.fromkeys(names, Rule(function, layout, everything, own_refusal, pointwise)))
        return function

    return register


class Lowering:
    """One pass over the recorded operations."""

    def __init__(
        self, constants: Mapping[str, Tensor], names: Sequence[str], modules: Sequence[NFSM], symbols: int, *,
        vector: bool,
    ) -> None:  # fmt: skip
        import exactstate.extract.graph.layout_rules
        import exactstate.extract.graph.rules  # noqa: F401  both register their rules

        self.constants, self.names, self.modules, self.vector = constants, names, modules, vector
        self.symbols = symbols
        self.layers: list[LayerCall] = []
        self.batch: Any = None
        self.length: Any = None

    def run(self, graph: torch.fx.Graph, logits: Recorded) -> Graph:
        env: dict[Recorded, Value] = {}
        for recorded in graph.nodes:
            if recorded.op == "placeholder":
                env[recorded] = self._placeholder(recorded)
            elif recorded.op == "output":
                return self._finished(env[logits], logits)
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
        if self.vector:
            return Flow(Input(size=int(shape[2]), name="the input"), self.axes(shape))
        return self.of_tokens(torch.arange(self.symbols), self.axes(shape), "the tokens")

    def of_tokens(self, values: Tensor, axes: tuple[Axis, ...], name: str, offset: int = 0) -> Flow:
        """Whole numbers that are a function of the token, the same for every feature."""
        size = prod(axis for axis in axes if isinstance(axis, int))
        table = values.to(torch.float64)[:, None].expand(-1, size)
        return Flow(Input(size=size, table=table, name=name), axes, offset, values)

    def _lower(self, recorded: Recorded, env: Mapping[Recorded, Value]) -> Value:
        args: Any = torch.fx.map_arg(recorded.args, env.__getitem__)
        kwargs = torch.fx.map_arg(recorded.kwargs, env.__getitem__)
        name = str(recorded.target)
        value = recorded.meta.get("val")
        if name in (LAYER_OP, VALUES_OP):
            return self._layer(recorded, *args[:2], projected=name == LAYER_OP)
        if name == STATE_OP:
            reason = "uses the state that an NFSM layer returns; it may use the layer's output only"
            return Unusable(f"{self.where(recorded)} {reason}.")
        kind = name.removeprefix("aten.")
        if getattr(getattr(recorded.target, "_schema", None), "is_mutable", False):
            raise Refused(f"{self.where(recorded)} uses {kind}, which writes into its arguments.")
        if isinstance(value, SYMBOLIC | int | float | bool) or value is None:
            return value
        held = [arg for arg in _flat((args, kwargs)) if isinstance(arg, Flow | Unusable)]
        known = RULES.get(name)
        try:
            if not held:
                return self._constant(recorded, args, kwargs)
            if known is None:
                self._refuse_random(recorded)
                raise Refused(f"{self.where(recorded)} uses {kind}, which is not known to be position-wise.")
            given = self._arguments(recorded, known, args, kwargs)
            if known.own_refusal:
                return given()
            unusable = next((arg for arg in held if isinstance(arg, Unusable)), None)
            if unusable is not None:
                return unusable
            if not known.layout and any(isinstance(arg, SYMBOLIC) for arg in _flat((args, kwargs))):
                raise Refused(f"{self.where(recorded)} computes with the length or the batch size ({kind}), so a step "
                              "depends on more than what was read.")  # fmt: skip
            value = self._counted(recorded, known, args, kwargs)
            if value is None:
                value = self._unbounded(recorded, given(), (args, kwargs))
                if isinstance(value, Flow) and not known.layout:
                    value = replace(value, tokens=None)
            return value
        except Refused as refused:
            return Unusable(str(refused))
        except (AttributeError, TypeError, ValueError, IndexError) as error:  # arguments that no rule foresees
            return Unusable(f"{self.where(recorded)} uses {kind} in a way that is not known ({error}).")

    def _counted(self, recorded: Recorded, known: Rule, args: Any, kwargs: Any) -> Flow | None:
        """Arithmetic on tokens that gives whole numbers: computed for each token."""
        flat = _flat((args, kwargs))
        flows = [value for value in flat if isinstance(value, Flow)]
        numbers = not any(isinstance(value, Folded) or (isinstance(value, Tensor) and value.ndim) for value in flat)
        same = all(flow.tokens is not None and flow.offset == flows[0].offset for flow in flows)
        if not known.pointwise or not numbers or not same or recorded.meta["val"].is_floating_point():
            return None
        held = torch.fx.node.map_aggregate((args, kwargs), lambda arg: arg.tokens if isinstance(arg, Flow) else arg)
        values = recorded.target(*held[0], **held[1])  # type: ignore[operator]
        return self.of_tokens(values, self.out_axes(recorded), self.label(recorded), flows[0].offset)

    def _arguments(self, recorded: Recorded, known: Rule, args: Any, kwargs: Any) -> Callable[[], Value]:
        """The call of a rule, with all arguments that are not defaults; refused if one is not accounted for."""
        schema = getattr(recorded.target, "_schema", None)
        if schema is None:
            return lambda: known.function(self, recorded, *args, **kwargs)
        positional: list[Value] = []
        named: dict[str, Value] = {}
        given: dict[str, Value] = {}
        for place, parameter in enumerate(schema.arguments):
            own = place < len(args) or parameter.name in kwargs
            value = args[place] if place < len(args) else kwargs.get(parameter.name, parameter.default_value)
            if parameter.name in HARMLESS:
                own, value = False, parameter.default_value
            elif own and parameter.has_default_value() and _same(value, parameter.default_value):
                own = False
            if own:
                given[parameter.name] = value
                if parameter.kwarg_only:
                    named[parameter.name] = value
                else:
                    positional += [other.default_value for other in schema.arguments[len(positional) : place]]
                    positional.append(value)
        if known.everything:
            return lambda: known.function(self, recorded, given)
        try:
            inspect.signature(known.function).bind(self, recorded, *positional, **named)
        except TypeError:
            operation, names = str(recorded.target).removeprefix("aten."), ", ".join(given)
            raise Refused(f"{self.where(recorded)} uses {operation} with arguments that are not known together "
                          f"({names}).") from None  # fmt: skip
        return lambda: known.function(self, recorded, *positional, **named)

    def _unbounded(self, recorded: Recorded, value: Value, given: Any) -> Value:
        """The value, opaque where a constant was computed from parameters in a way that is not bounded."""
        unknown = [arg for arg in _flat(given) if isinstance(arg, Folded) and arg.bound is None]
        if not unknown or not isinstance(value, Flow):
            return value
        return replace(value, node=Opaque(size=value.node.size, args=(value.node,), name=unknown[0].name))

    def _constant(self, recorded: Recorded, args: Any, kwargs: Any) -> Value:
        """A tensor that depends on no input: computed now, unless its shape depends on the length."""
        kind = str(recorded.target).removeprefix("aten.")
        if any(isinstance(arg, SYMBOLIC) for arg in _flat((args, kwargs))):
            return self.filled(recorded, args)
        if getattr(recorded.target, "namespace", "") not in ("aten", "prims") and "getitem" not in kind:
            raise Refused(f"{self.where(recorded)} uses {kind}, which is not known.")
        self._refuse_random(recorded)
        return folded(recorded, args, kwargs, self.label(recorded))

    def _refuse_random(self, recorded: Recorded) -> None:
        kind = str(recorded.target).removeprefix("aten.")
        seeded = torch.Tag.nondeterministic_seeded in getattr(recorded.target, "tags", ())
        if seeded or kind.split(".")[0] in UNINITIALIZED:
            raise Refused(f"{self.where(recorded)} uses random or uninitialized numbers ({kind}).")

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

    def _layer(self, recorded: Recorded, x: Value, number: int, *, projected: bool) -> Value:
        name = self.names[number]
        if isinstance(x, Unusable):
            raise Refused(f"NFSM layer {name!r} depends on something that is not finite-state: {x.reason}")
        if not isinstance(x, Flow) or x.axes[:2] != ("B", "L") or not self._whole(recorded.args[0]):
            raise Refused(f"the input of NFSM layer {name!r} does not have the axes batch, steps, width.")
        self.layers.append(LayerCall(name, self.modules[number], self.aligned(x), projected))
        width = int(recorded.meta["val"].shape[-1])
        state = State(size=width, layer=len(self.layers) - 1, name=f"NFSM layer {name!r}")
        return Flow(state, ("B", "L", width))

    def _whole(self, recorded: Any) -> bool:
        """Whether a tensor has all sequences of the batch and all steps, no fewer and no more."""
        return [getattr(getattr(size, "node", None), "expr", size) for size in recorded.meta["val"].shape[:2]] == [
            self.batch, self.length
        ]  # fmt: skip

    def _finished(self, output: Value, recorded: Any) -> Graph:
        if isinstance(output, Unusable):
            raise Refused(output.reason)
        if not isinstance(output, Flow) or len(output.axes) != 3 or output.axes[:2] != ("B", "L"):
            axes = output.axes if isinstance(output, Flow) else "no dependence on the input"
            raise Refused(f"the model must map B L to logits of shape B L labels; it gives {axes}.")
        if not self._whole(recorded):
            raise Refused("the model must give logits for every step; it gives more or fewer steps than it reads.")
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

    def constant_like(self, recorded: Recorded, value: Any, axes: tuple[Axis, ...]) -> Constants:
        """A constant, one number for every feature of these axes."""
        if not isinstance(value, Tensor | Folded):
            value = torch.as_tensor(value, dtype=torch.float64)
        own = (1,) * (len(axes) - value.ndim) + tuple(value.shape)
        for have, want in zip(own, axes, strict=True):
            if have != 1 and not isinstance(want, int):
                raise Refused(f"{self.where(recorded)} adds numbers that depend on the position of a step.")
        wanted = [axis if isinstance(axis, int) else 1 for axis in axes]
        return rearranged(value, lambda tensor: tensor.reshape(own).expand(wanted).reshape(-1))

    def opaque(self, recorded: Recorded, given: Any) -> Flow:
        """A position-wise operation whose rounding is not bounded, of all flows among its arguments."""
        flows = [value for value in _flat(given) if isinstance(value, Flow)]
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


def _same(value: Any, default: Any) -> bool:
    """Whether an argument is the default of its schema."""
    if isinstance(value, Tensor | Flow | Folded | Unusable | SYMBOLIC):
        return False
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return len(value) == len(default) and all(map(_same, value, default))
    return type(value) is type(default) and bool(value == default)


def dimensions(flow: Flow, dims: Any) -> tuple[int, ...]:
    """Of an argument of an operation: one, several, or all of them; none negative."""
    wanted = [dims] if isinstance(dims, int) else list(dims) if dims else list(range(len(flow.axes)))
    return tuple(dim % len(flow.axes) for dim in wanted)

"""Rules for operations that compute: what each does to the axes of a tensor, and the node it becomes. See `lower.py`.

What only puts numbers in other places is in `layout_rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate.extract.graph.lower import (
    RULES,
    Axis,
    Flow,
    Lowering,
    Refused,
    Value,
    begun,
    dimensions,
    own_refusal,
    rule,
)
from exactstate.extract.graph.nodes import Add, Conv, Function, Input, Multiply, Node, Normalize, Scale, gathered

REFUSED = {
    "scaled_dot_product_attention": "attends to other steps; attention over the past is not finite-state",
    "multi_head_attention_forward": "attends to other steps; attention over the past is not finite-state",
    "gru": "is another recurrence, whose state is a real vector",
    "lstm": "is another recurrence, whose state is a real vector",
    "rnn_tanh": "is another recurrence, whose state is a real vector",
    "rnn_relu": "is another recurrence, whose state is a real vector",
    "cumsum": "sums over all steps so far, which no finite state can hold",
    "cumprod": "multiplies over all steps so far, which no finite state can hold",
    "cummax": "takes a maximum over all steps so far",
    "logcumsumexp": "sums over all steps so far, which no finite state can hold",
    "flip": "reverses the order of steps, so a step depends on those after it",
    "roll": "moves steps around, so the first steps depend on the last",
}
FUNCTIONS = {"relu": "relu", "relu_": "relu", "silu": "silu", "silu_": "silu", "tanh": "tanh", "sigmoid": "sigmoid"}
ELEMENTWISE = (
    "exp", "log", "sqrt", "rsqrt", "abs", "sin", "cos", "erf", "softplus", "elu", "mish", "hardswish", "hardsigmoid",
    "hardtanh", "leaky_relu", "selu", "celu", "reciprocal", "log1p", "expm1", "sign", "clamp", "clamp_min",
    "clamp_max", "relu6", "log_sigmoid", "square", "round", "floor", "ceil", "sinh", "cosh", "atan", "softsign",
)  # fmt: skip
"""Applied entry by entry; evaluated by running the model, and not bounded."""
PAIRWISE = ("maximum", "minimum", "where", "pow", "div", "gt", "lt", "ge", "le", "eq", "ne", "logical_and",
            "logical_or", "logical_not", "masked_fill", "remainder", "atan2", "lerp", "addcmul")  # fmt: skip
OVER_FEATURES = ("softmax", "log_softmax", "logsumexp", "amax", "amin", "var", "std", "norm", "linalg_vector_norm",
                 "cumsum", "cumprod", "argmax", "max", "min", "glu", "prod", "sort", "topk", "normalize")  # fmt: skip


def _refuse(lowering: Lowering, recorded: Recorded, *args: Any, **kwargs: Any) -> Value:
    operation = str(recorded.target).removeprefix("aten.").split(".")[0]
    raise Refused(f"{lowering.where(recorded)} {REFUSED[operation]}.")


for _name in REFUSED:
    if _name not in ("cumsum", "cumprod", "flip", "roll"):
        for _overload in ("default", "input", "data", "dim"):
            RULES[f"aten.{_name}.{_overload}"] = own_refusal(lambda *args, **kwargs: _refuse(*args, **kwargs))


# Linear maps


@rule("aten.embedding.default")
def _embedding(lowering: Lowering, recorded: Recorded, weight: Value, x: Value, *args: Any, **kwargs: Any) -> Value:
    if not isinstance(x, Flow) or not x.tokens or not isinstance(weight, Tensor):
        raise Refused(f"{lowering.where(recorded)} looks up something else than the tokens.")
    node = Input(size=weight.shape[1], table=weight, name=lowering.label(recorded))
    return Flow(node, (*x.axes, weight.shape[1]), x.offset)


@rule("aten.one_hot.default")
def _one_hot(lowering: Lowering, recorded: Recorded, x: Flow, classes: int = -1) -> Value:
    if not x.tokens or classes < 1:
        raise Refused(f"{lowering.where(recorded)} encodes something else than the tokens.")
    node = Input(size=classes, table=torch.eye(classes, dtype=torch.float64), name=lowering.label(recorded))
    return Flow(node, (*x.axes, classes), x.offset)


def _mapped(lowering: Lowering, recorded: Recorded, x: Flow, weight: Tensor, bias: Tensor | None) -> Flow:
    """weight (outputs x inputs) applied to the last axis."""
    if x.tokens:
        raise Refused(f"{lowering.where(recorded)} computes with the numbers of tokens; embed them.")
    *rest, inputs = x.axes
    if inputs != weight.shape[1]:
        raise Refused(f"{lowering.where(recorded)} maps along the steps or the batch.")
    groups = prod(axis for axis in rest if isinstance(axis, int))
    node = Conv(size=groups * len(weight), args=(x.node,), taps=((0, weight),), bias=bias, groups=groups,
                name=lowering.label(recorded))  # fmt: skip
    return replace(x, node=node, axes=(*rest, len(weight)))


@rule("aten.linear.default")
def _linear(lowering: Lowering, recorded: Recorded, x: Value, weight: Value, bias: Value = None) -> Value:
    if not isinstance(x, Flow) or not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        raise Refused(f"{lowering.where(recorded)} has weights that depend on the input.")
    return _mapped(lowering, recorded, x, weight, bias)


@rule("aten.addmm.default")
def _addmm(lowering: Lowering, recorded: Recorded, bias: Value, x: Value, weight: Value) -> Value:
    if not isinstance(bias, Tensor) or not isinstance(weight, Tensor):
        raise Refused(f"{lowering.where(recorded)} has weights that depend on the input.")
    return _mapped(lowering, recorded, x, weight.T, bias)


@rule("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
def _matmul(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    if isinstance(x, Flow) and isinstance(y, Tensor) and y.ndim == 2:
        return _mapped(lowering, recorded, x, y.T, None)
    flows = [value for value in (x, y) if isinstance(value, Flow)]
    for flow in flows:
        if any(not isinstance(axis, int) for axis in flow.axes[-2:]) and len(flows) > 1:
            raise Refused(
                f"{lowering.where(recorded)} multiplies steps by steps; {REFUSED['multi_head_attention_forward']}."
            )
    if len(flows) == 2 and flows[0].axes[:-2] == flows[1].axes[:-2]:
        return lowering.opaque(recorded, *flows)
    if len(flows) == 1 and isinstance(flows[0].axes[-1], int) and isinstance(flows[0].axes[-2], int):
        return lowering.opaque(recorded, *flows)
    raise Refused(f"{lowering.where(recorded)} multiplies along the steps or the batch.")


@rule("aten.einsum.default")
def _einsum(lowering: Lowering, recorded: Recorded, equation: str, operands: Sequence[Value], **kwargs: Any) -> Value:
    equation = equation.replace(" ", "")
    if "." in equation or "->" not in equation:
        raise Refused(f"{lowering.where(recorded)} uses einsum without naming all axes of its result.")
    terms, result = equation.split("->")[0].split(","), equation.split("->")[1]
    flows = [value for value in operands if isinstance(value, Flow)]
    kinds: dict[str, set[Axis]] = {}
    for term, value in zip(terms, operands, strict=True):
        for letter, axis in zip(term, value.axes if isinstance(value, Flow) else value.shape, strict=True):
            kinds.setdefault(letter, set()).add(axis)
    for letter, axes in kinds.items():
        if any(not isinstance(axis, int) for axis in axes) and (letter not in result or len(axes) > 1):
            raise Refused(f"{lowering.where(recorded)} sums over steps or the batch (einsum {equation!r}).")
        in_flows = [letter in term for term, value in zip(terms, operands, strict=True) if isinstance(value, Flow)]
        if any(not isinstance(axis, int) for axis in axes) and not all(in_flows):
            raise Refused(f"{lowering.where(recorded)} pairs steps with other steps (einsum {equation!r}).")
    if len(flows) == 1 and len(operands) == 2 and isinstance(operands[1], Tensor) and operands[1].ndim == 2:
        (x, weight), (of_x, of_w) = operands, terms
        shared = set(of_x) & set(of_w)
        if len(shared) == 1 and of_x[-1] in shared and result == of_x[:-1] + of_w.replace(of_x[-1], ""):
            return _mapped(lowering, recorded, x, weight if of_w[1] == of_x[-1] else weight.T, None)
    return lowering.opaque(recorded, *flows)


@rule("aten.conv1d.default", "aten.conv1d.padding")
def _conv1d(
    lowering: Lowering, recorded: Recorded, x: Value, weight: Value, bias: Value = None, stride: Any = (1,),
    padding: Any = (0,), dilation: Any = (1,), groups: int = 1,
) -> Value:  # fmt: skip
    if not isinstance(x, Flow) or not isinstance(weight, Tensor) or x.axes[:1] != ("B",) or x.axes[2:] != ("L",):
        raise Refused(f"{lowering.where(recorded)} convolves along another axis than the steps.")
    if tuple(stride) not in ((1,), ()):
        raise Refused(f"{lowering.where(recorded)} has a stride, so that a step becomes several or none.")
    kernel, wide = weight.shape[2], (dilation[0] if dilation else 1)
    if isinstance(padding, str):
        left = {"valid": 0, "same": wide * (kernel - 1) // 2}[padding]
    else:
        left = padding[0] if padding else 0
    node, offset = x.node, x.offset
    if left:
        if offset:
            raise Refused(f"{lowering.where(recorded)} pads a sequence that was padded or cut already.")
        node, offset = begun(node), -left
    outputs, inputs = len(weight), x.node.size
    taps = []
    for tap in range(kernel):
        dense = weight.new_zeros(outputs, inputs)
        for group in range(groups):
            rows = slice(group * outputs // groups, (group + 1) * outputs // groups)
            columns = slice(group * inputs // groups, (group + 1) * inputs // groups)
            dense[rows, columns] = weight[rows, :, tap]
        taps.append(((kernel - 1 - tap) * wide, dense))
    conv = Conv(size=outputs, args=(node,), taps=tuple(taps), bias=bias, name=lowering.label(recorded))
    return Flow(conv, ("B", outputs, "L"), offset + (kernel - 1) * wide)


# Sums, products, functions, norms


@rule("aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar",
      "aten.rsub.Tensor", "aten.add_.Tensor", "aten.sub_.Tensor")  # fmt: skip
def _add(lowering: Lowering, recorded: Recorded, x: Value, y: Value, alpha: float = 1, **kwargs: Any) -> Value:
    if "rsub" in str(recorded.target):
        x, y = y, x
    axes, sign = lowering.out_axes(recorded), -1 if "sub" in str(recorded.target) else 1
    if alpha != 1:
        raise Refused(f"{lowering.where(recorded)} adds with alpha={alpha}; write the product out.")
    label = lowering.label(recorded)
    if isinstance(x, Flow) and isinstance(y, Flow):
        x, y = (lowering.broadcast(recorded, value, axes) for value in (x, y))
        (a, b), offset = lowering.together([x, y])
        return Flow(Add(size=a.size, args=(a, b), sign=sign, name=label), axes, offset)
    flow, constant = (x, y) if isinstance(x, Flow) else (y, x)
    flow = lowering.broadcast(recorded, flow, axes)
    numbers = lowering.constant_like(recorded, constant, axes)
    factor = None
    if sign < 0:
        if flow is x or isinstance(x, Flow):
            numbers = -numbers
        else:
            factor = torch.full((flow.node.size,), -1.0, dtype=torch.float64)
    node = Scale(size=flow.node.size, args=(flow.node,), factor=factor, offset=numbers, name=label)
    return replace(flow, node=node)


@rule("aten.mul.Tensor", "aten.mul.Scalar", "aten.mul_.Tensor")
def _multiply(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    axes, label = lowering.out_axes(recorded), lowering.label(recorded)
    if isinstance(x, Flow) and isinstance(y, Flow):
        x, y = (lowering.broadcast(recorded, value, axes) for value in (x, y))
        (a, b), offset = lowering.together([x, y])
        return Flow(Multiply(size=a.size, args=(a, b), name=label), axes, offset)
    flow, constant = (x, y) if isinstance(x, Flow) else (y, x)
    return _scaled(lowering, recorded, flow, lowering.constant_like(recorded, constant, axes), axes)


def _scaled(lowering: Lowering, recorded: Recorded, x: Flow, factor: Tensor, axes: tuple[Axis, ...]) -> Flow:
    x = lowering.broadcast(recorded, x, axes)
    node = Scale(size=x.node.size, args=(x.node,), factor=factor, name=lowering.label(recorded))
    return replace(x, node=node)


@rule("aten.div.Tensor", "aten.div.Scalar")
def _divide(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    if isinstance(x, Flow) and not isinstance(y, Flow):
        axes = lowering.out_axes(recorded)
        divisor = lowering.constant_like(recorded, y, axes)
        return _scaled(lowering, recorded, x, 1.0 / divisor.to(torch.float64), axes)
    return _pairwise(lowering, recorded, x, y)


@rule("aten.neg.default")
def _negative(lowering: Lowering, recorded: Recorded, x: Flow) -> Value:
    return _scaled(lowering, recorded, x, torch.full((x.node.size,), -1.0, dtype=torch.float64), x.axes)


@rule(*(f"aten.{name}.default" for name in FUNCTIONS))
def _function(lowering: Lowering, recorded: Recorded, x: Flow) -> Value:
    function = FUNCTIONS[str(recorded.target).split(".")[1]]
    return replace(x, node=Function(size=x.node.size, args=(x.node,), function=function, name=lowering.label(recorded)))


@rule("aten.gelu.default")
def _gelu(lowering: Lowering, recorded: Recorded, x: Flow, *, approximate: str = "none") -> Value:
    function = "gelu" if approximate == "none" else "gelu_tanh"
    return replace(x, node=Function(size=x.node.size, args=(x.node,), function=function, name=lowering.label(recorded)))


@rule(*(f"aten.{name}.{overload}" for name in ELEMENTWISE for overload in ("default", "Tensor")))
def _elementwise(lowering: Lowering, recorded: Recorded, x: Flow, *args: Any, **kwargs: Any) -> Value:
    return lowering.opaque(recorded, x)


@rule(*(f"aten.{name}.{overload}" for name in PAIRWISE if name != "div"
        for overload in ("default", "Tensor", "Scalar", "self", "Tensor_Scalar", "Tensor_Tensor", "ScalarOther",
                         "ScalarSelf")))  # fmt: skip
def _pairwise(lowering: Lowering, recorded: Recorded, *args: Any, **kwargs: Any) -> Value:
    axes = lowering.out_axes(recorded)
    values: list[Value] = []
    for value in args:
        if isinstance(value, Flow):
            values.append(lowering.broadcast(recorded, value, axes))
        elif isinstance(value, Tensor):
            lowering.constant_like(recorded, value, axes)
    return lowering.opaque(recorded, *values)


@rule(
    *(
        f"aten.{name}.{overload}"
        for name in OVER_FEATURES
        for overload in ("default", "int", "dim", "correction", "ScalarOpt_dim")
    )
)
def _over_features(lowering: Lowering, recorded: Recorded, x: Flow, *args: Any, **kwargs: Any) -> Value:
    operation = str(recorded.target).split(".")[1]
    number = {"norm": 1, "linalg_vector_norm": 1}.get(operation, 0)
    dim = kwargs.get("dim", args[number] if len(args) > number else (-1 if operation == "glu" else None))
    for at in dimensions(x, dim):
        if not isinstance(x.axes[at], int):
            reason = REFUSED.get(operation, f"computes {operation} over the steps or the batch")
            raise Refused(f"{lowering.where(recorded)} {reason}.")
    if isinstance(recorded.meta["val"], list | tuple):
        raise Refused(f"{lowering.where(recorded)} uses {operation}, which is not known to be position-wise.")
    return lowering.opaque(recorded, x)


@rule("aten.sum.dim_IntList", "aten.mean.dim", "aten.sum.default", "aten.mean.default")
def _sum(lowering: Lowering, recorded: Recorded, x: Flow, dim: Any = None, *args: Any, **kwargs: Any) -> Value:
    dims = dimensions(x, dim)
    if any(not isinstance(x.axes[at], int) for at in dims):
        raise Refused(f"{lowering.where(recorded)} sums over the steps or the batch, which no finite state can hold.")
    kept = [at for at in range(len(x.axes)) if at not in dims and isinstance(x.axes[at], int)]
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    terms = prod(sizes[at] for at in dims)
    order = [*(at for at in range(len(sizes)) if at not in dims), *dims]
    places = np.arange(prod(sizes)).reshape(sizes).transpose(order)
    groups = prod(sizes[at] for at in kept)
    moved = gathered([x.node], places, lowering.label(recorded))
    node: Node = Conv(size=groups, args=(moved,), taps=((0, torch.ones(1, terms, dtype=torch.float64)),),
                      groups=groups, name=lowering.label(recorded))  # fmt: skip
    if "mean" in str(recorded.target):
        factor = torch.full((groups,), 1.0 / terms, dtype=torch.float64)
        node = Scale(size=groups, args=(node,), factor=factor, name=lowering.label(recorded))
    return replace(x, node=node, axes=lowering.out_axes(recorded))


def _normalized(
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value, bias: Value, epsilon: float,
    *, centered: bool,
) -> Flow:  # fmt: skip
    if x.axes[len(x.axes) - len(shape) :] != tuple(shape):
        raise Refused(f"{lowering.where(recorded)} normalizes over the steps or the batch.")
    flat = [None if part is None else part.reshape(-1) for part in (gain, bias)]
    node = Normalize(
        size=x.node.size, args=(x.node,), gain=flat[0], bias=flat[1], epsilon=epsilon, centered=centered,
        groups=x.node.size // prod(shape), name=lowering.label(recorded),
    )  # fmt: skip
    return replace(x, node=node)


@rule("aten.layer_norm.default")
def _layer_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value = None, bias: Value = None,
    epsilon: float = 1e-5, *args: Any,
) -> Value:  # fmt: skip
    return _normalized(lowering, recorded, x, shape, gain, bias, epsilon, centered=True)


@rule("aten.rms_norm.default")
def _rms_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value = None,
    epsilon: float | None = None,
) -> Value:  # fmt: skip
    if epsilon is None:
        epsilon = float(torch.finfo(recorded.meta["val"].dtype).eps)
    return _normalized(lowering, recorded, x, shape, gain, None, epsilon, centered=False)


@rule("aten.batch_norm.default")
def _batch_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, gain: Value, bias: Value, mean: Value, variance: Value,
    training: bool, momentum: float, epsilon: float, *args: Any,
) -> Value:  # fmt: skip
    if training or mean is None or variance is None:
        raise Refused(
            f"{lowering.where(recorded)} uses the statistics of the batch, so a step depends on others; set "
            "track_running_stats=True and train it."
        )
    if not isinstance(x.axes[1], int):
        raise Refused(f"{lowering.where(recorded)} has the steps as its channels; transpose its input.")
    scale = torch.rsqrt(variance.to(torch.float64) + epsilon)
    scale = scale if gain is None else scale * gain
    offset = -mean * scale if bias is None else bias - mean * scale
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    terms = (mean * scale).abs() + (0.0 if bias is None else bias.abs())
    channels = [-1 if at == 1 else 1 for at in range(len(sizes))]
    factor, offset, hidden = (part.reshape(channels).expand(sizes).reshape(-1) for part in (scale, offset, terms))
    node = Scale(size=x.node.size, args=(x.node,), factor=factor, offset=offset, hidden=hidden,
                 name=lowering.label(recorded))  # fmt: skip
    return replace(x, node=node)


@rule("aten.flip.default", "aten.roll.default")
def _turned(lowering: Lowering, recorded: Recorded, x: Flow, *args: Any) -> Value:
    operation = str(recorded.target).split(".")[1]
    dims = args[-1]
    if any(not isinstance(x.axes[at], int) for at in dimensions(x, dims)):
        raise Refused(f"{lowering.where(recorded)} {REFUSED[operation]}.")
    return lowering.opaque(recorded, x)

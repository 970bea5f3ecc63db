"""Rules for operations that compute: what each does to the axes of a tensor, and the node it becomes. See `lower.py`.

What only puts numbers in other places is in `layout_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate.errors import InvalidInput
from exactstate.extract.graph.folded import Constants, Folded, rearranged, reciprocal
from exactstate.extract.graph.lower import Axis, Flow, Lowering, Refused, Value, begun, dimensions, rule
from exactstate.extract.graph.nodes import (
    Add,
    BatchNorm,
    Conv,
    Function,
    Input,
    Multiply,
    Node,
    Normalize,
    Scale,
    gathered,
)  # fmt: skip

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
}
FUNCTIONS = {"relu": "relu", "relu_": "relu", "silu": "silu", "silu_": "silu", "tanh": "tanh", "sigmoid": "sigmoid"}
ELEMENTWISE = (
    "exp", "log", "sqrt", "rsqrt", "abs", "sin", "cos", "erf", "softplus", "elu", "mish", "hardswish", "hardsigmoid",
    "hardtanh", "leaky_relu", "selu", "celu", "reciprocal", "log1p", "expm1", "sign", "clamp", "clamp_min",
    "clamp_max", "relu6", "log_sigmoid", "square", "round", "floor", "ceil", "sinh", "cosh", "atan", "softsign",
)  # fmt: skip
"""Applied entry by entry; evaluated by running the model, and not bounded."""
PAIRWISE = ("maximum", "minimum", "where", "pow", "gt", "lt", "ge", "le", "eq", "ne", "logical_and",
            "logical_or", "logical_not", "masked_fill", "remainder", "atan2", "lerp", "addcmul")  # fmt: skip
OVER_FEATURES = ("softmax", "log_softmax", "logsumexp", "amax", "amin", "var", "std", "norm", "linalg_vector_norm",
                 "cumsum", "cumprod", "argmax", "max", "min", "glu", "prod", "sort", "topk", "normalize")  # fmt: skip


@rule(*(f"aten.{name}.{overload}" for name in REFUSED if name not in ("cumsum", "cumprod")
        for overload in ("default", "input", "data", "dim")), everything=True, own_refusal=True)  # fmt: skip
def _refuse(lowering: Lowering, recorded: Recorded, given: Any) -> Value:
    operation = str(recorded.target).removeprefix("aten.").split(".")[0]
    raise Refused(f"{lowering.where(recorded)} {REFUSED[operation]}.")


# Linear maps


@rule("aten.embedding.default")
def _embedding(lowering: Lowering, recorded: Recorded, weight: Value, x: Value) -> Value:
    if not isinstance(x, Flow) or x.tokens is None or not isinstance(weight, Constants):
        raise Refused(f"{lowering.where(recorded)} looks up something else than the tokens.")
    return _looked_up(lowering, recorded, weight, x, x.tokens)


@rule("aten.one_hot.default")
def _one_hot(lowering: Lowering, recorded: Recorded, x: Flow, classes: int = -1) -> Value:
    if x.tokens is None or classes < 1:
        raise Refused(f"{lowering.where(recorded)} encodes something else than the tokens.")
    return _looked_up(lowering, recorded, torch.eye(classes, dtype=torch.float64), x, x.tokens)


def _looked_up(lowering: Lowering, recorded: Recorded, weight: Constants, x: Flow, rows: Tensor) -> Value:
    """The row of a table for every entry of x."""
    if int(rows.max()) >= len(weight) or int(rows.min()) < 0:
        wanted = (
            f"got {len(rows)} symbols" if rows.tolist() == list(range(len(rows))) else f"row {int(rows.max())} is read"
        )
        raise InvalidInput(f"{lowering.label(recorded)} has {len(weight)} rows; {wanted}.")
    width, copies = int(weight.shape[1]), prod(x.features)
    rows = rows.long()
    node: Node = Input(size=width, table=rearranged(weight, lambda table: table[rows]), name=lowering.label(recorded))
    node = gathered([node], np.tile(np.arange(width), copies), lowering.label(recorded))
    return Flow(node, (*x.axes, width), x.offset)


def _mapped(lowering: Lowering, recorded: Recorded, x: Flow, weight: Constants, bias: Constants | None) -> Flow:
    """weight (outputs x inputs) applied to the last axis."""
    if x.tokens is not None:
        raise Refused(f"{lowering.where(recorded)} computes with the numbers of tokens; embed them.")
    *rest, inputs = x.axes
    if inputs != weight.shape[1]:
        raise Refused(f"{lowering.where(recorded)} maps along the steps or the batch.")
    groups = prod(axis for axis in rest if isinstance(axis, int))
    node = Conv(size=groups * len(weight), args=(x.node,), taps=((0, weight),), bias=bias, groups=groups,
                name=lowering.label(recorded))  # fmt: skip
    return replace(x, node=node, axes=(*rest, len(weight)))


def _transposed(weight: Constants) -> Constants:
    return rearranged(weight, lambda tensor: tensor.T)


@rule("aten.linear.default")
def _linear(lowering: Lowering, recorded: Recorded, x: Value, weight: Value, bias: Value = None) -> Value:
    if not isinstance(x, Flow) or not isinstance(weight, Constants) or not isinstance(bias, Constants | None):
        raise Refused(f"{lowering.where(recorded)} has weights that depend on the input.")
    return _mapped(lowering, recorded, x, weight, bias)


@rule("aten.addmm.default")
def _addmm(lowering: Lowering, recorded: Recorded, bias: Value, x: Value, weight: Value) -> Value:
    if not isinstance(bias, Constants) or not isinstance(weight, Constants) or bias.ndim != 1:
        raise Refused(f"{lowering.where(recorded)} has weights that depend on the input.")
    return _mapped(lowering, recorded, x, _transposed(weight), bias)


@rule("aten.matmul.default", "aten.mm.default", "aten.bmm.default")
def _matmul(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    if isinstance(x, Flow) and isinstance(y, Constants) and y.ndim == 2:
        return _mapped(lowering, recorded, x, _transposed(y), None)
    flows = [value for value in (x, y) if isinstance(value, Flow)]
    for flow in flows:
        if any(not isinstance(axis, int) for axis in flow.axes[-2:]) and len(flows) > 1:
            raise Refused(
                f"{lowering.where(recorded)} multiplies steps by steps; {REFUSED['multi_head_attention_forward']}."
            )
    if len(flows) == 2 and flows[0].axes[:-2] == flows[1].axes[:-2]:
        return lowering.opaque(recorded, flows)
    if len(flows) == 1 and isinstance(flows[0].axes[-1], int) and isinstance(flows[0].axes[-2], int):
        return lowering.opaque(recorded, flows)
    raise Refused(f"{lowering.where(recorded)} multiplies along the steps or the batch.")


@rule("aten.einsum.default")
def _einsum(lowering: Lowering, recorded: Recorded, equation: str, operands: Sequence[Value]) -> Value:
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
    if len(flows) == 1 and len(operands) == 2 and isinstance(operands[1], Constants) and operands[1].ndim == 2:
        (x, weight), (of_x, of_w) = operands, terms
        shared = set(of_x) & set(of_w)
        if len(shared) == 1 and of_x[-1] in shared and result == of_x[:-1] + of_w.replace(of_x[-1], ""):
            return _mapped(lowering, recorded, x, weight if of_w[1] == of_x[-1] else _transposed(weight), None)
    return lowering.opaque(recorded, flows)


@rule("aten.conv1d.default", "aten.conv1d.padding")
def _conv1d(
    lowering: Lowering, recorded: Recorded, x: Value, weight: Value, bias: Value = None, stride: Any = (1,),
    padding: Any = (0,), dilation: Any = (1,), groups: int = 1,
) -> Value:  # fmt: skip
    if not isinstance(x, Flow) or not isinstance(weight, Constants) or x.axes[:1] != ("B",) or x.axes[2:] != ("L",):
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
    outputs = len(weight)

    def dense(tensor: Tensor, tap: int) -> Tensor:
        return torch.block_diag(*tensor[..., tap].chunk(groups))

    taps = [((kernel - 1 - tap) * wide, rearranged(weight, partial(dense, tap=tap))) for tap in range(kernel)]
    conv = Conv(size=outputs, args=(node,), taps=tuple(taps), bias=bias, name=lowering.label(recorded))
    return Flow(conv, ("B", outputs, "L"), offset + (kernel - 1) * wide)


# Sums, products, functions, norms


@rule("aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar",
      "aten.rsub.Tensor", "aten.add_.Tensor", "aten.sub_.Tensor", pointwise=True)  # fmt: skip
def _add(lowering: Lowering, recorded: Recorded, x: Value, y: Value, alpha: float = 1) -> Value:
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
    numbers = lowering.constant_like(recorded, constant, axes)
    factor = None
    if sign < 0:
        if flow is x:
            numbers = rearranged(numbers, torch.neg)
        else:
            factor = torch.full((prod(axis for axis in axes if isinstance(axis, int)),), -1.0, dtype=torch.float64)
    flow = lowering.broadcast(recorded, flow, axes)
    node = Scale(size=flow.node.size, args=(flow.node,), factor=factor, offset=numbers, name=label)
    return replace(flow, node=node)


@rule("aten.mul.Tensor", "aten.mul.Scalar", "aten.mul_.Tensor", pointwise=True)
def _multiply(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    axes, label = lowering.out_axes(recorded), lowering.label(recorded)
    if isinstance(x, Flow) and isinstance(y, Flow):
        x, y = (lowering.broadcast(recorded, value, axes) for value in (x, y))
        (a, b), offset = lowering.together([x, y])
        return Flow(Multiply(size=a.size, args=(a, b), name=label), axes, offset)
    flow, constant = (x, y) if isinstance(x, Flow) else (y, x)
    return _scaled(lowering, recorded, flow, lowering.constant_like(recorded, constant, axes), axes)


def _scaled(
    lowering: Lowering, recorded: Recorded, x: Flow, factor: Constants, axes: tuple[Axis, ...], stores: int = 2
) -> Flow:
    x = lowering.broadcast(recorded, x, axes)
    node = Scale(size=x.node.size, args=(x.node,), factor=factor, stores=stores, name=lowering.label(recorded))
    return replace(x, node=node)


@rule("aten.div.Tensor", "aten.div.Scalar")
def _divide(lowering: Lowering, recorded: Recorded, x: Value, y: Value) -> Value:
    axes = lowering.out_axes(recorded)
    if isinstance(x, Flow) and not isinstance(y, Flow):
        # a division, or a product with the reciprocal that was stored
        return _scaled(lowering, recorded, x, reciprocal(lowering.constant_like(recorded, y, axes)), axes, stores=3)
    return lowering.opaque(recorded, _broadcast(lowering, recorded, (x, y), axes))


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


@rule(*(f"aten.{name}.{overload}" for name in ELEMENTWISE for overload in ("default", "Tensor")),
      *(f"aten.{name}.{overload}" for name in PAIRWISE
        for overload in ("default", "Tensor", "Scalar", "self", "Tensor_Scalar", "Tensor_Tensor", "ScalarOther",
                         "ScalarSelf")), everything=True, pointwise=True)  # fmt: skip
def _elementwise(lowering: Lowering, recorded: Recorded, given: Mapping[str, Value]) -> Value:
    return lowering.opaque(recorded, _broadcast(lowering, recorded, given.values(), lowering.out_axes(recorded)))


def _broadcast(lowering: Lowering, recorded: Recorded, values: Iterable[Value], axes: tuple[Axis, ...]) -> list[Value]:
    """Flows with the axes of the result; raises where an argument does not fit into them."""
    fitting = []
    for value in values:
        if isinstance(value, Flow):
            value = lowering.broadcast(recorded, value, axes)
        elif isinstance(value, Constants):
            lowering.constant_like(recorded, value, axes)
        elif not isinstance(value, int | float | bool | str | torch.dtype | None):
            raise Refused(f"{lowering.where(recorded)} is given {type(value).__name__}, which is not known.")
        fitting.append(value)
    return fitting


@rule(*(f"aten.{name}.{overload}" for name in OVER_FEATURES
        for overload in ("default", "int", "dim", "correction", "ScalarOpt_dim")), everything=True)  # fmt: skip
def _over_features(lowering: Lowering, recorded: Recorded, given: Mapping[str, Value]) -> Value:
    operation = str(recorded.target).split(".")[1]
    x, *others = given.values()
    tensors = [other for other in others if isinstance(other, Flow | Constants)]
    if not isinstance(x, Flow) or tensors:
        raise Refused(f"{lowering.where(recorded)} uses {operation} of several tensors, which is not known.")
    for at in dimensions(x, given.get("dim", {"glu": -1, "sort": -1, "topk": -1}.get(operation))):
        if not isinstance(x.axes[at], int):
            reason = REFUSED.get(operation, f"computes {operation} over the steps or the batch")
            raise Refused(f"{lowering.where(recorded)} {reason}.")
    if isinstance(recorded.meta["val"], list | tuple):
        raise Refused(f"{lowering.where(recorded)} uses {operation}, which is not known to be position-wise.")
    return lowering.opaque(recorded, x)


@rule("aten.sum.dim_IntList", "aten.mean.dim", "aten.sum.default", "aten.mean.default")
def _sum(lowering: Lowering, recorded: Recorded, x: Flow, dim: Any = None, keepdim: bool = False) -> Value:
    dims = dimensions(x, dim)  # whether they are kept shows in the axes of the result
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
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value, bias: Value, epsilon: float, *,
    centered: bool,
) -> Flow:  # fmt: skip
    if x.axes[len(x.axes) - len(shape) :] != tuple(shape):
        raise Refused(f"{lowering.where(recorded)} normalizes over the steps or the batch.")
    flat = [None if part is None else rearranged(part, lambda tensor: tensor.reshape(-1)) for part in (gain, bias)]
    node = Normalize(
        size=x.node.size, args=(x.node,), gain=flat[0], bias=flat[1], own_epsilon=epsilon, centered=centered,
        epsilon=None if "epsilon by default" in recorded.meta else epsilon, groups=x.node.size // prod(shape),
        name=lowering.label(recorded),
    )  # fmt: skip
    return replace(x, node=node)


@rule("aten.layer_norm.default")
def _layer_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value = None, bias: Value = None,
    epsilon: float = 1e-5,
) -> Value:  # fmt: skip
    return _normalized(lowering, recorded, x, shape, gain, bias, epsilon, centered=True)


@rule("aten.rms_norm.default")
def _rms_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, shape: Sequence[int], gain: Value = None,
    epsilon: float | None = None,
) -> Value:  # fmt: skip
    assert epsilon is not None  # tracing has written it out
    return _normalized(lowering, recorded, x, shape, gain, None, epsilon, centered=False)


@rule("aten.batch_norm.default")
def _batch_norm(
    lowering: Lowering, recorded: Recorded, x: Flow, gain: Value, bias: Value, mean: Value, variance: Value,
    training: bool, momentum: float, epsilon: float,
) -> Value:  # fmt: skip
    if training or mean is None or variance is None:
        raise Refused(
            f"{lowering.where(recorded)} uses the statistics of the batch, so a step depends on others; set "
            "track_running_stats=True and train it."
        )
    if not isinstance(x.axes[1], int):
        raise Refused(f"{lowering.where(recorded)} has the steps as its channels; transpose its input.")
    parts = (gain, bias, mean, variance)
    if any(isinstance(part, Folded) for part in parts):
        return lowering.opaque(recorded, x)
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    channels = [-1 if at == 1 else 1 for at in range(len(sizes))]
    gain, bias, mean, variance = (
        None if part is None else part.reshape(channels).expand(sizes).reshape(-1) for part in parts
    )
    node = BatchNorm(size=x.node.size, args=(x.node,), gain=gain, bias=bias, mean=mean, variance=variance,
                     epsilon=epsilon, name=lowering.label(recorded))  # fmt: skip
    return replace(x, node=node)

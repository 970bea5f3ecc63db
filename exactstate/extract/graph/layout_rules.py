"""Rules for operations that put the same numbers in other places: reshape, transpose, slice, split, concatenate, pad.

See `lower.py`; what computes new numbers is in `rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate.extract.graph.folded import Constants, rearranged
from exactstate.extract.graph.lower import (
    Axis,
    Flow,
    Lowering,
    Refused,
    Unusable,
    Value,
    begun,
    dimensions,
    rule,
)
from exactstate.extract.graph.nodes import Constant, gathered


@rule("aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default", "aten.dropout_.default",
      layout=True)  # fmt: skip
def _dropout(lowering: Lowering, recorded: Recorded, x: Flow, p: float, train: bool) -> Value:
    if train:
        raise Refused(f"{lowering.where(recorded)} drops numbers at random even in evaluation mode.")
    return x


@rule("aten.clone.default", "aten.contiguous.default", "aten.detach.default", "aten.alias.default",
      "aten.lift_fresh_copy.default", "aten.to.dtype", "aten.to.device", "aten._to_copy.default",
      "aten.to.dtype_layout", "aten.type_as.default", "aten.detach_.default", layout=True)  # fmt: skip
def _identity(lowering: Lowering, recorded: Recorded, x: Value, other: Any = None, *, dtype: Any = None) -> Value:
    source = recorded.args[0]
    assert isinstance(source, Recorded)
    if not isinstance(x, Flow):
        raise Refused(f"{lowering.where(recorded)} converts to a type that depends on the input.")
    have, kind = source.meta["val"].dtype, recorded.meta["val"].dtype
    if have == kind:
        return x
    if have.is_floating_point:
        raise Refused(f"{lowering.where(recorded)} converts to {kind}, whatever the format of the model.")
    if x.tokens is None or kind.is_floating_point:
        return replace(x, tokens=None)
    return lowering.of_tokens(x.tokens.to(kind), x.axes, lowering.label(recorded), x.offset)


@rule("aten.view.default", "aten.reshape.default", "aten.flatten.using_ints", "aten.unsqueeze.default",
      "aten.squeeze.dim", "aten.squeeze.default", "aten.squeeze.dims", "aten.unflatten.int",
      "aten._unsafe_view.default", "aten.view_as.default", "aten.reshape_as.default", layout=True)  # fmt: skip
def _reshape(lowering: Lowering, recorded: Recorded, x: Flow, shape: Any = None, sizes: Any = None) -> Value:
    axes = lowering.out_axes(recorded)  # they say all that the arguments do
    if _order(x.axes) != _order(axes):
        raise Refused(f"{lowering.where(recorded)} reshapes {x.axes} to {axes}, which mixes steps with other axes.")
    if x.offset and ("BL" in axes or "BL" in x.axes):
        raise Refused(f"{lowering.where(recorded)} joins batch and steps of a sequence that was padded or cut.")
    return replace(x, axes=axes)


def _order(axes: tuple[Axis, ...]) -> list[Axis]:
    """Axes with neighboring features multiplied and BL split: what a reshape must keep."""
    order: list[Axis] = []
    for axis in axes:
        if isinstance(axis, int):
            if order and isinstance(order[-1], int):
                order[-1] *= axis
            else:
                order.append(axis)
        else:
            order += list(axis)
    return [axis for axis in order if axis != 1]


@rule("aten.transpose.int", "aten.permute.default", "aten.movedim.int", "aten.swapaxes.default", "aten.t.default",
      "aten.numpy_T.default", "aten.mT.default", layout=True)  # fmt: skip
def _permute(lowering: Lowering, recorded: Recorded, x: Flow, one: Any = None, other: Any = None) -> Value:
    order = np.arange(len(x.axes))
    if "mT" in str(recorded.target):
        one, other = -2, -1
    if other is not None:
        a, b = (dim % len(order) for dim in (one, other))
        if "movedim" in str(recorded.target):
            order = np.insert(np.delete(order, a), b, a)
        else:
            order[[a, b]] = order[[b, a]]
    else:
        order = np.array([dim % len(order) for dim in one]) if one is not None else order[::-1]
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    places = np.arange(prod(sizes)).reshape(sizes).transpose(order)
    return lowering.moved(recorded, x, places, tuple(x.axes[dim] for dim in order))


@rule("aten.expand.default", "aten.expand_as.default", layout=True)
def _expand(lowering: Lowering, recorded: Recorded, x: Value, shape: Any) -> Value:
    if isinstance(x, Constants):
        axes = lowering.out_axes(recorded)
        numbers = lowering.constant_like(recorded, x, axes)
        return Flow(Constant(size=len(numbers), value=numbers, name=lowering.label(recorded)), axes)
    return lowering.broadcast(recorded, x, lowering.out_axes(recorded))


@rule("aten.slice.Tensor", layout=True)
def _slice(
    lowering: Lowering, recorded: Recorded, x: Flow, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Value:
    (dim,) = dimensions(x, dim)
    axis = x.axes[dim]
    if isinstance(axis, int):
        return _picked(lowering, recorded, x, dim, np.arange(axis)[slice(start, end, step)])
    start = 0 if start is None else start
    whole = start == 0 and isinstance(end, int) and end >= 2**62 and step == 1 if isinstance(start, int) else False
    if whole:
        return x
    if axis != "L" or step != 1 or not isinstance(start, int) or start < 0:
        raise Refused(f"{lowering.where(recorded)} picks single steps or sequences of the batch.")
    if isinstance(recorded.meta["val"].shape[dim], int) or lowering.axis(recorded.meta["val"].shape[dim]) != "L":
        raise Refused(f"{lowering.where(recorded)} keeps a fixed number of steps.")
    return replace(x, offset=x.offset + start)


def _picked(lowering: Lowering, recorded: Recorded, x: Flow, dim: int, which: Any) -> Flow:
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    places = np.arange(prod(sizes)).reshape(sizes).take(which, axis=dim)
    axes = list(x.axes)
    if np.ndim(which):
        axes[dim] = len(which)
    else:
        del axes[dim]
    return lowering.moved(recorded, x, places, tuple(axes))


@rule("aten.select.int", layout=True)
def _select(lowering: Lowering, recorded: Recorded, x: Flow, dim: int, index: Any) -> Value:
    (dim,) = dimensions(x, dim)
    if not isinstance(x.axes[dim], int):
        raise Refused(f"{lowering.where(recorded)} reads one step of the sequence at all others.")
    return _picked(lowering, recorded, x, dim, index)


@rule("aten.chunk.default", "aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int",
      "aten.split.sizes", "aten.tensor_split.sections", layout=True)  # fmt: skip
def _split(lowering: Lowering, recorded: Recorded, x: Flow, sizes: Any = 0, dim: int = 0) -> Value:
    unbind = "unbind" in str(recorded.target)
    (dim,) = dimensions(x, sizes if unbind else dim)
    if not isinstance(x.axes[dim], int):
        raise Refused(f"{lowering.where(recorded)} splits the sequence into parts.")
    parts, begin = [], 0
    for part in recorded.meta["val"]:
        if unbind:
            parts.append(_picked(lowering, recorded, x, dim, begin))
            begin += 1
        else:
            parts.append(_picked(lowering, recorded, x, dim, np.arange(begin, begin + part.shape[dim])))
            begin += part.shape[dim]
    return parts


@rule("<built-in function getitem>", layout=True)
def _getitem(lowering: Lowering, recorded: Recorded, parts: Any, index: int) -> Value:
    return parts if isinstance(parts, Unusable) else parts[index]


@rule("aten.cat.default", "aten.concat.default", "aten.stack.default", layout=True)
def _cat(lowering: Lowering, recorded: Recorded, tensors: Sequence[Value], dim: int = 0) -> Value:
    axes = lowering.out_axes(recorded)
    dim, stacked = dim % len(axes), "stack" in str(recorded.target)
    if not isinstance(axes[dim], int):
        return _joined_steps(lowering, recorded, tensors, dim)
    flows = [tensor for tensor in tensors if isinstance(tensor, Flow)]
    parts = []
    for tensor in tensors:
        size = 1 if stacked else int(tensor.shape[dim] if isinstance(tensor, Constants) else tensor.axes[dim])
        own = (*axes[:dim], size, *axes[dim + 1 :])
        if isinstance(tensor, Constants):
            whole = rearranged(tensor, lambda part: part.unsqueeze(dim)) if stacked else tensor
            numbers = lowering.constant_like(recorded, whole, own)
            tensor = Flow(Constant(size=len(numbers), value=numbers, name=lowering.label(recorded)), own)
            tensor = replace(tensor, offset=max(flow.offset for flow in flows))
        parts.append(replace(tensor, axes=own))
    nodes, offset = lowering.together(parts)
    places, begin = [], 0
    for node, part in zip(nodes, parts, strict=True):
        sizes = [axis if isinstance(axis, int) else 1 for axis in part.axes]
        places.append(begin + np.arange(node.size).reshape(sizes))
        begin += node.size
    return Flow(gathered(nodes, np.concatenate(places, axis=dim), lowering.label(recorded)), axes, offset)


def _joined_steps(lowering: Lowering, recorded: Recorded, tensors: Sequence[Value], dim: int) -> Value:
    """Zeros before the first step: the padding of a causal convolution."""
    *before, last = tensors
    left = 0
    for tensor in before:
        zeros = tensor.node.value if isinstance(tensor, Flow) and isinstance(tensor.node, Constant) else tensor
        steps = recorded_size(recorded, tensors, tensor, dim)
        if not isinstance(zeros, Tensor) or bool(zeros.any()) or not isinstance(steps, int):
            raise Refused(f"{lowering.where(recorded)} joins sequences along the steps.")
        left += steps
    if not isinstance(last, Flow) or last.offset:
        raise Refused(f"{lowering.where(recorded)} joins sequences along the steps.")
    return replace(last, node=begun(last.node), offset=-left, tokens=None)


def recorded_size(recorded: Recorded, tensors: Sequence[Value], tensor: Value, dim: int) -> Any:
    """The size of one of the joined tensors along the steps."""
    which = next(place for place, other in enumerate(tensors) if other is tensor)
    return recorded.args[0][which].meta["val"].shape[dim]  # type: ignore[index,union-attr]


@rule("aten.pad.default", "aten.constant_pad_nd.default", layout=True)
def _pad(
    lowering: Lowering, recorded: Recorded, x: Flow, pad: Sequence[Any], mode: Any = "constant", value: Any = None
) -> Value:
    x = replace(x, tokens=None)
    if (isinstance(mode, str) and mode != "constant") or (not isinstance(mode, str) and mode) or value:
        raise Refused(f"{lowering.where(recorded)} pads with something else than zeros.")
    for place in range(len(pad) // 2):
        dim, (left, right) = len(x.axes) - 1 - place, pad[2 * place : 2 * place + 2]
        axis = x.axes[dim]
        if isinstance(axis, int):
            if left or right:
                sizes = [a if isinstance(a, int) else 1 for a in x.axes]
                widths = [(0, 0)] * len(sizes)
                widths[dim] = (left, right)
                places = np.pad(np.arange(prod(sizes)).reshape(sizes), widths, constant_values=-1)
                axes = (*x.axes[:dim], axis + left + right, *x.axes[dim + 1 :])
                x = lowering.moved(recorded, x, places, axes)
        elif left or right:
            if axis != "L" or x.offset or not isinstance(left, int):
                raise Refused(f"{lowering.where(recorded)} pads a sequence that was padded or cut already.")
            x = replace(x, node=begun(x.node), offset=-left)
    return x


@rule("aten.flip.default", "aten.roll.default", layout=True)
def _turned(lowering: Lowering, recorded: Recorded, x: Flow, turns: Any, dims: Any = None) -> Value:
    flip = "flip" in str(recorded.target)
    dims = turns if flip else dims
    if not dims:
        raise Refused(f"{lowering.where(recorded)} {TURNED[flip]} (roll without `dims` rolls all of them).")
    along = dimensions(x, dims)
    if any(not isinstance(x.axes[at], int) for at in along):
        raise Refused(f"{lowering.where(recorded)} {TURNED[flip]}.")
    sizes = [axis if isinstance(axis, int) else 1 for axis in x.axes]
    places = np.arange(prod(sizes)).reshape(sizes)
    places = np.flip(places, along) if flip else np.roll(places, turns, along)
    return lowering.moved(recorded, x, places, x.axes)


TURNED = {
    True: "reverses the order of steps, so a step depends on those after it",
    False: "moves steps around, so the first steps depend on the last",
}


@rule("aten.zeros_like.default", "aten.ones_like.default", "aten.new_zeros.default", "aten.new_ones.default",
      "aten.full_like.default", "aten.new_full.default", layout=True, own_refusal=True)  # fmt: skip
def _filled(
    lowering: Lowering, recorded: Recorded, x: Value, size: Any = None, fill: Any = None, *, dtype: Any = None
) -> Value:
    return lowering.filled(recorded, [part for part in (size, fill) if part is not None])

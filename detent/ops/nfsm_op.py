"""A pass of many heads over many rows, as PyTorch operators with the gradient of the straight-through estimator.

    B  sequences     L  length     m  width     r  heads     S  their indices     E  their entries

`detent::track` samples tables, runs the states through them and reads them out; its backward pass weighs every
index by a reverse scan of gathers and gives a gradient to the used columns alone. `detent::follow` is evaluation.
Everything that depends on values (lengths, resets, packing) happens inside, so a compiled graph has no break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from detent.errors import InvalidInput
from detent.ops.interface import stages
from detent.ops.segments import Layout, Noise, Source, lay_out, of_batch, windows
from detent.ops.tables import cell_dtype, one_hot

# -- Two ways to call the same function: an operator for whoever traces, a plain autograd function otherwise.

Call = Callable[..., Any]


def traced() -> bool:
    """Whether calls are being recorded rather than only made."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def plainly(function: Call, keep: Call | None = None, backward: Call | None = None) -> Call:
    """`function` as an autograd function: `keep(ctx, inputs, output)`, then `backward(ctx, *gradients)`.

    Without them there is no derivative to be had.
    """

    class Plain(torch.autograd.Function):
        # PyTorch takes the signature of `forward` apart in every call: a short one is quicker
        forward = staticmethod(lambda *arguments: function(*arguments))
        setup_context = staticmethod(keep or (lambda ctx, inputs, output: None))

    if backward is not None:
        Plain.backward = staticmethod(backward)  # type: ignore[method-assign]
    return Plain.apply


# -- Value vectors, projected: what each index of each head adds to the output of a layer.


def _fold(values: Tensor, projection: Tensor, heads: Sequence[int], backend: str) -> Tensor:
    """S v, m (r v) -> S m: the value vector of every index, projected."""
    return stages(backend).fold(values.contiguous(), projection.contiguous(), heads).contiguous()


def _unfold(
    gradient: Tensor, values: Tensor, projection: Tensor, heads: Sequence[int], backend: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return stages(backend).unfold(gradient.contiguous(), values.contiguous(), projection.contiguous(), heads)


fold = torch.library.custom_op("detent::fold", _fold, mutates_args=())
unfold = torch.library.custom_op("detent::unfold", _unfold, mutates_args=())
fold.register_fake(lambda values, projection, heads, backend: values.new_empty(len(values), len(projection)))
unfold.register_fake(
    lambda gradient, values, projection, heads, backend: (torch.empty_like(values), torch.empty_like(projection))
)


def _fold_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    values, projection, *ctx.settings = inputs
    ctx.save_for_backward(values, projection)


def _fold_backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    return *unfold(gradient, *ctx.saved_tensors, *ctx.settings), None, None


fold.register_autograd(_fold_backward, setup_context=_fold_setup)


_unfolded = plainly(_unfold)
_folded = plainly(
    _fold, _fold_setup, lambda ctx, gradient: (*_unfolded(gradient, *ctx.saved_tensors, *ctx.settings), None, None)
)


def folded(values: Tensor, projection: Tensor, heads: Sequence[int], backend: str) -> Tensor:
    """`fold`, by the shorter way when nobody traces."""
    return (fold if traced() else _folded)(values, projection, heads, backend)


def _flat(tensor: Tensor) -> Tensor:
    """... m -> rows m."""
    return tensor.reshape(tensor.shape[:-1].numel(), tensor.shape[-1]).contiguous()


def _checked(index: Tensor, distinct: int) -> Tensor:
    """The index as one contiguous row of int64, all of them below the number of distinct rows."""
    flat = index.reshape(-1).long().contiguous()
    wrong = (flat < 0) | (flat >= distinct)
    if bool(wrong.any()):
        place = wrong.view(index.shape).nonzero()[0].tolist()
        value = int(index[tuple(place)])
        raise InvalidInput(f"index{place} is {value}, but there are {distinct} distinct rows (0..{distinct - 1}).")
    return flat


def _source(kernels: Any, input: Tensor, weight: Tensor, bias: Tensor, index: Tensor | None) -> Source:
    weight, bias, rows = weight.contiguous(), bias.contiguous(), _flat(input)
    if index is None:
        return Source(rows, weight, bias)
    return Source(rows, weight, bias, _checked(index, len(rows)), kernels.logits(rows, weight, bias))


def _layout(
    input: Tensor, index: Tensor | None, start: Tensor, heads: Sequence[int], lengths: Tensor | None,
    boundaries: Tensor | None, resets: Tensor | None, home: Sequence[int], *, trusted: bool = False,
) -> Layout:  # fmt: skip
    shape = input.shape[:-1] if index is None else index.shape
    return lay_out(shape, start, heads, lengths, boundaries, resets, home, trusted=trusted)


def _track(
    input: Tensor, weight: Tensor, bias: Tensor, vectors: Tensor, offset: Tensor, carry: Tensor | None,
    index: Tensor | None, start: Tensor, lengths: Tensor | None, boundaries: Tensor | None, resets: Tensor | None,
    seed: Tensor, heads: Sequence[int], home: Sequence[int], temperature: float, noisy: bool, backend: str,
    chunk: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(output: rows m, states: rows r, last states as one-hot rows: B S, tables: rows S or nothing if chunked)."""
    kernels = stages(backend)
    layout = _layout(input, index, start, heads, lengths, boundaries, resets, home)
    source = _source(kernels, input, weight, bias, index)
    noise = Noise(int(seed), temperature) if noisy else None
    rows = input.shape[:-1] if index is None else index.shape
    states = torch.zeros(rows.numel(), len(heads), dtype=cell_dtype(heads), device=input.device)
    at = layout.starts.to(input.device)
    made = []
    for window in windows(layout.segments, chunk):
        tables = kernels.tables(source, window, heads, noise)
        at = kernels.track(tables, window, at, states, heads)
        if chunk == 0:
            made.append(tables)
    finals = one_hot(layout.finals(at), heads, vectors.dtype)
    output = kernels.read(vectors.contiguous(), offset.contiguous(), states, heads)
    kept = _filled(made[0], rows.numel()) if made else states.new_empty(0, sum(heads))
    return output.view(*rows, output.shape[1]), states.view(*rows, len(heads)), finals, kept


track = torch.library.custom_op("detent::track", _track, mutates_args=())


def _filled(tables: Tensor, rows: int) -> Tensor:
    """Tables with as many rows as the input, whatever was padding: a shape that is known beforehand."""
    return tables if len(tables) == rows else torch.nn.functional.pad(tables, (0, 0, 0, rows - len(tables)))


@track.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    input, _, _, vectors, _, _, index, start, _, _, _, _, heads, _, _, _, _, chunk = arguments
    rows = input.shape[:-1] if index is None else index.shape
    cells = cell_dtype(heads)
    count = 0 if chunk else rows.numel()
    return (
        vectors.new_empty(*rows, vectors.shape[1]),
        vectors.new_empty(*rows, len(heads), dtype=cells),
        vectors.new_empty(start.shape[0], sum(heads)),
        vectors.new_empty(count, sum(heads), dtype=cells),
    )


def _gradients(
    output_gradient: Tensor, finals_gradient: Tensor, input: Tensor, weight: Tensor, bias: Tensor, vectors: Tensor,
    index: Tensor | None, start: Tensor, lengths: Tensor | None, boundaries: Tensor | None, resets: Tensor | None,
    seed: Tensor, states: Tensor, tables: Tensor, heads: Sequence[int], home: Sequence[int], temperature: float,
    noisy: bool, backend: str, chunk: int, of_input: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of (input or nothing, weight, bias, vectors, offset, carry)."""
    kernels = stages(backend)
    layout = _layout(input, index, start, heads, lengths, boundaries, resets, home, trusted=True)
    source = _source(kernels, input, weight, bias, index)
    noise = Noise(int(seed), temperature) if noisy else None
    states, gradient = _flat(states), _flat(output_gradient)
    device = input.device

    lasts = layout.of_finals(finals_gradient)
    held, owner = (part.to(device) for part in layout.held_rows)
    if len(held):
        lasts = lasts.index_add(0, owner, gradient[held] @ vectors.T)

    width = source.input.shape[-1]
    summed: tuple[Tensor | None, Tensor | None, Tensor]
    if index is None:
        pulled = kernels.zeros(gradient, len(source.input), width) if of_input else None
        summed = pulled, kernels.zeros(gradient, *weight.shape), kernels.zeros(gradient, *bias.shape)
    else:
        summed = None, None, kernels.zeros(gradient, len(source.input), len(weight))

    for window in reversed(list(windows(layout.segments, chunk))):
        gains = kernels.gains(gradient, vectors, window)
        starts = _window_starts(layout, window, states, device)
        made = tables if chunk == 0 else kernels.tables(source, window, heads, noise)
        lasts = kernels.weigh(made, gains, lasts, window, heads)
        kernels.surrogate(source, window, starts, states, gains, heads, noise, temperature, summed)

    of_vectors = kernels.collect(gradient, states, heads)
    if index is None:
        of_rows, of_weight, of_bias = summed
        assert of_weight is not None
        pulled_back = of_rows.view_as(input) if of_rows is not None else gradient.new_empty(0)
    else:
        of_logits = summed[2]
        pulled_back = (of_logits @ source.weight).view_as(input) if of_input else gradient.new_empty(0)
        of_weight, of_bias = of_logits.T @ source.input, of_logits.sum(0)
    # every row read one index of the first head: what those collected is the sum over all rows
    return pulled_back, of_weight, of_bias, of_vectors, of_vectors[: heads[0]].sum(0), layout.of_starts(lasts)


track_backward = torch.library.custom_op("detent::track_backward", _gradients, mutates_args=())


def _window_starts(layout: Layout, window: Tensor, states: Tensor, device: torch.device) -> Tensor:
    """The states in which the rows of a window begin: a segment's own start, or what the row before left."""
    starts = layout.starts.to(device)
    if window is layout.segments:
        return starts
    later = (window[:, 0] > layout.segments[:, 0]).to(device)
    before = (window[:, 0] - 1).clamp(0, max(len(states) - 1, 0)).to(device)
    return torch.where(later[:, None], states[before].long(), starts) if len(states) else starts


@track_backward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    _, _, input, weight, bias, vectors, _, start, *_, heads, _, _, _, _, _, of_input = arguments
    return (
        torch.empty_like(input, memory_format=torch.contiguous_format) if of_input else input.new_empty(0),
        weight.new_empty(weight.shape),
        bias.new_empty(bias.shape),
        vectors.new_empty(vectors.shape),
        vectors.new_empty(vectors.shape[1]),
        vectors.new_empty(start.shape[0], sum(heads)),
    )


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    (input, weight, bias, vectors, _, carry, index, start, lengths, boundaries, resets, seed, *settings) = inputs
    _, states, _, tables = output
    ctx.set_materialize_grads(True)
    ctx.mark_non_differentiable(states, tables)
    ctx.save_for_backward(input, weight, bias, vectors, index, start, lengths, boundaries, resets, seed, states, tables)
    ctx.settings, ctx.carries = settings, carry is not None


def _pull_back(gradients: Any, ctx: Any, output_gradient: Tensor, finals_gradient: Tensor) -> tuple[Any, ...]:
    with torch.autocast(output_gradient.device.type, enabled=False):
        input, weight, bias, vectors, offset, carry = gradients(
            output_gradient.contiguous(), finals_gradient, *ctx.saved_tensors, *ctx.settings, ctx.needs_input_grad[0]
        )
    nothing = (None,) * 12
    of_input, of_carry = input if ctx.needs_input_grad[0] else None, carry if ctx.carries else None
    return of_input, weight, bias, vectors, offset, of_carry, *nothing


def _backward(ctx: Any, output: Tensor, _states: Tensor, finals: Tensor, _tables: Tensor) -> tuple[Any, ...]:
    return _pull_back(track_backward, ctx, output, finals)


track.register_autograd(_backward, setup_context=_keep)


_pulled = plainly(_gradients)
_tracked = plainly(
    _track, _keep, lambda ctx, output, _states, finals, _tables: _pull_back(_pulled, ctx, output, finals)
)


def sampled(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`track`, by the shorter way when nobody traces."""
    return (track if traced() else _tracked)(*arguments)


@torch.library.custom_op("detent::follow", mutates_args=())
def follow(
    input: Tensor, weight: Tensor, bias: Tensor, values: Tensor, projection: Tensor, offset: Tensor,
    index: Tensor | None, start: Tensor, lengths: Tensor | None, boundaries: Tensor | None, resets: Tensor | None,
    heads: Sequence[int], home: Sequence[int], backend: str, chunk: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Evaluation, without noise or gradient: (output: rows m, states: rows r, last states: B r)."""
    kernels = stages(backend)
    layout = _layout(input, index, start, heads, lengths, boundaries, resets, home)
    rows = input.shape[:-1] if index is None else index.shape
    at = layout.starts.to(input.device)
    if index is None:
        source = Source(_flat(input), weight.contiguous(), bias.contiguous())
        states = torch.zeros(rows.numel(), len(heads), dtype=torch.int64, device=input.device)
        for window in windows(layout.segments, chunk):
            at = kernels.follow(source, window, at, states, heads)
    else:
        distinct = Source(_flat(input), weight.contiguous(), bias.contiguous())
        tables = kernels.tables(distinct, of_batch(1, len(distinct.input)), heads, None)
        states = torch.zeros(rows.numel(), len(heads), dtype=cell_dtype(heads), device=input.device)
        at = kernels.track(tables, layout.segments, at, states, heads, _checked(index, len(distinct.input)))
    vectors = kernels.fold(values.contiguous(), projection.contiguous(), heads)
    output = kernels.read(vectors, offset.contiguous(), states, heads)
    last = layout.finals(at)
    return output.view(*rows, output.shape[1]), states.long().view(*rows, len(heads)), last


@follow.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    input, _, _, values, projection, _, index, start, _, _, _, heads, *_ = arguments
    rows = input.shape[:-1] if index is None else index.shape
    return (
        values.new_empty(*rows, projection.shape[0]),
        values.new_empty(*rows, len(heads), dtype=torch.int64),
        values.new_empty(start.shape[0], len(heads), dtype=torch.int64),
    )

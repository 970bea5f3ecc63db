"""The pass of an NFSM layer as PyTorch operators, with the gradient of the straight-through estimator.

    B  sequences     L  length     m  width     v  width of a value vector     r  heads     S  their indices
    E  their entries     rows  B L, or N for packed sequences

`NfsmCall` holds every argument of a pass. `forward_sampled` samples tables, runs the states through them and reads them
out; its backward pass is a reverse scan of gathers and gives a gradient only to the used columns. `forward_eval` has
neither noise nor gradient. Everything that depends on values (lengths, resets, packing) happens inside the operators,
so a compiled graph has no break.

To add an option of the layer: add a field to `NfsmCall` (a tensor before `heads`, anything else after it), set it in
`NFSM.forward`, and use it in the kernels. The operators' schemas follow from the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, get_type_hints

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops import sequence_parallel
from exactstate.ops.eager import (
    autograd_function,
    is_exported_to_onnx,
    is_traced,
    is_transformed,
    one_by_one,
    refuse_derivative,
    without_autocast,
)
from exactstate.ops.interface import Kernels, LogitGradients, kernels
from exactstate.ops.plain import plain_eval
from exactstate.ops.segments import (
    Layout,
    LogitSource,
    Noise,
    batch_segments,
    local_rows,
    make_layout,
    rows_of,
    windows,
)
from exactstate.ops.tables import cell_dtype, indices_of, one_hot


class NfsmCall(NamedTuple):
    """The arguments of one pass, in the order of the operators' flat schema."""

    # tensors with a gradient
    input: Tensor
    """B L m or N m; with `row_index`, R distinct rows: R m."""
    weight: Tensor
    """E m: the projection to logits; entry k * d + j of a head scores its move from index k to index j."""
    bias: Tensor
    """E."""
    values: Tensor
    """S v: the value vector of every index."""
    out_weight: Tensor
    """m (r v): the output projection."""
    out_bias: Tensor
    """m."""
    carry: Tensor | None
    """B S: the start states as one-hot rows that carry a gradient."""

    # tensors without
    row_index: Tensor | None
    """B L or N: which distinct row stands where."""
    start: Tensor
    """B r: the states in which sequences start."""
    lengths: Tensor | None
    """B: steps beyond a sequence's length hold its state. Or rows of booleans, True for the steps of a sequence: those
    before hold its start."""
    cu_seqlens: Tensor | None
    """B + 1: boundaries of packed sequences."""
    resets: Tensor | None
    """rows: steps that start from the initial state."""
    seed: Tensor | None
    """Determines the noise; None for a pass without noise, whose tables are the arg max."""

    # options
    heads: Sequence[int]
    """Number of indices of each head."""
    initial_state: Sequence[int]
    """Index of each head after a reset."""
    temperature: float
    """Logits are divided by this before noise is added, and in the softmax of the backward pass."""
    chunk: int
    """Steps whose tables are held at a time; 0 for all."""
    backend: str
    group: str = ""
    """Name of the process group over which the sequences are split; see `exactstate.ops.sequence_parallel`."""

    @property
    def rows(self) -> torch.Size:
        """The shape of the output without its width."""
        return self.input.shape[:-1] if self.row_index is None else self.row_index.shape

    @property
    def requires_grad(self) -> bool:
        """Whether any tensor that could receive a gradient requires one."""
        return any(isinstance(part, Tensor) and part.requires_grad for part in self[:_GRADIENTS])

    def check(self) -> None:
        """Refuse shapes and types that do not fit together: kernels get addresses, and trust them."""
        heads, r, m = self.heads, len(self.heads), self.input.shape[-1:].numel()
        S, E, width, v = sum(heads), sum(d * d for d in heads), self.out_bias.shape[:1].numel(), self.values.shape[-1:]
        wanted = {
            "weight": (E, m), "bias": (E,), "values": (S, *v), "out_weight": (width, r * v.numel()),
            "out_bias": (width,), "carry": (len(self.start), S), "resets": tuple(self.rows),
            "start": (len(self.start), r),
        }  # fmt: skip
        if not r or min(heads) < 1 or len(self.initial_state) != r or not self.temperature > 0:
            raise InvalidInput(
                f"heads {tuple(heads)}, initial state {tuple(self.initial_state)} and temperature {self.temperature} "
                "do not fit together."
            )
        if any(not 0 <= k < d for k, d in zip(self.initial_state, heads, strict=True)):
            raise InvalidInput(f"the initial state {tuple(self.initial_state)} is outside heads {tuple(heads)}.")
        for name, shape in wanted.items():
            tensor = getattr(self, name)
            if tensor is not None and tuple(tensor.shape) != shape:
                raise InvalidInput(f"{name} has shape {shape} here; got {tuple(tensor.shape)}.")
        kinds = {part.dtype for part in self[: _GRADIENTS - 1] if isinstance(part, Tensor)}
        if kinds != {torch.float32} and kinds != {torch.float64}:
            raise InvalidInput(f"all tensors are float32, or all are float64; got {', '.join(map(str, kinds))}.")
        if self.resets is not None and self.resets.dtype != torch.bool:
            raise InvalidInput(f"resets are booleans; got {self.resets.dtype}.")
        if self.lengths is not None:
            shape = tuple(self.rows if self.lengths.dtype == torch.bool else self.rows[:1])
            if self.lengths.shape != shape:
                raise InvalidInput(f"lengths has shape {shape} here; got {tuple(self.lengths.shape)}.")

    def noise(self) -> Noise | None:
        return None if self.seed is None else Noise(int(self.seed), self.temperature)

    def layout(self, *, checked: bool = False) -> Layout:
        before, total = (
            sequence_parallel.rows_before(self.group, self._length, self.input.device) if self.group else (0, 0)
        )
        return make_layout(
            self.rows, self.start, self.heads, self.lengths, self.cu_seqlens, self.resets, self.initial_state,
            checked=checked, stretch=(before, total) if self.group else None,
        )  # fmt: skip

    @property
    def _length(self) -> int:
        """Rows of a sequence, or of all packed ones."""
        return self.rows[-1]

    def source(self, ops: Kernels, *, logits: bool) -> LogitSource:
        """What tables are made of: distinct rows and an index, if they are given or if rows repeat often. The logits of
        the distinct rows are computed only if `logits` says so."""
        plain, found = self.plain_source(), None
        if self.row_index is not None:
            rows, index = plain.input, self.flat_index()
        else:
            found = ops.repeated_rows(plain.input)
            if found is None:
                return plain
            rows, index = plain.input[found[0]], found[1]
            if not bool(rows.isfinite().all()):  # it may be padding that nothing reads
                return plain
        made = ops.logits(rows, plain.weight, plain.bias) if logits else None
        return LogitSource(rows, plain.weight, plain.bias, index, made, found is not None)

    def plain_source(self) -> LogitSource:
        """The input as it is, row by row."""
        return LogitSource(_flat(self.input), self.weight.contiguous(), self.bias.contiguous())

    def flat_index(self) -> Tensor:
        """`row_index` as one contiguous row of int64; raises InvalidInput if it names a row that does not exist."""
        assert self.row_index is not None
        index, distinct = self.row_index, self.input.shape[:-1].numel()
        flat = index.reshape(-1).long().contiguous()
        wrong = (flat < 0) | (flat >= distinct)
        if bool(wrong.any()):
            place = wrong.view(index.shape).nonzero()[0].tolist()
            value = int(index[tuple(place)])
            raise InvalidInput(f"index{place} is {value}, but there are {distinct} distinct rows (0..{distinct - 1}).")
        return flat


_GRADIENTS = NfsmCall._fields.index("row_index")
"""How many fields, from the first, have a gradient."""
_TENSORS = NfsmCall._fields.index("heads")
"""How many fields, from the first, are tensors."""
_SCHEMA_TYPES: dict[Any, str] = {
    Tensor: "Tensor", Tensor | None: "Tensor?", Sequence[int]: "SymInt[]", int: "SymInt", float: "float", bool: "bool",
    str: "str",
}  # fmt: skip
_ARGUMENTS = ", ".join(f"{_SCHEMA_TYPES[kind]} {name}" for name, kind in get_type_hints(NfsmCall).items())


def forward_sampled(call: NfsmCall) -> tuple[Tensor, Tensor]:
    """(output: rows m, final states as one-hot rows: B S), differentiable; sampled if the call has a seed."""
    output, finals, *_ = (_forward_op if is_traced(call.input) else _forward_eager)(*call)
    return output, finals


def forward_eval(call: NfsmCall) -> tuple[Tensor, Tensor]:
    """(output: rows m, final states: B r) of the arg max tables; without a gradient."""
    if is_exported_to_onnx():
        return plain_eval(call)
    function = _eval_op if is_traced(call.input) else _eval_eager if is_transformed() else _evaluate
    output, finals = function(*call)
    return output, finals


# -- the two forward passes


def _forward(*flat: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(output, finals as one-hot rows, then what backward needs: states, tables or none if chunked, vectors, and the
    tables of all stretches if the sequences are split over ranks)."""
    call = NfsmCall(*flat)
    call.check()
    ops, heads = kernels(call.backend), call.heads
    layout, noise = call.layout(), call.noise()
    tables_of = _table_maker(call, call.source(ops, logits=noise is not None))
    rows, device = call.rows, call.input.device
    states = torch.zeros(prod(rows), len(heads), dtype=cell_dtype(heads), device=device)
    kept = states.new_empty(0, sum(heads))
    stretches, made = _exchange(call, layout, tables_of) if call.group else (None, None)
    at = (layout if stretches is None else layout.started(stretches.start(call.start))).starts.to(device)
    for window in windows(layout.segments, call.chunk):
        tables = made if made is not None else tables_of(window)
        at = ops.trajectories(tables, window, at, states, heads)
        if call.chunk == 0:
            kept = _padded_to(tables, prod(rows))
    _hold_starts_(states, layout, call)
    vectors = ops.project_values(call.values.contiguous(), call.out_weight.contiguous(), heads).contiguous()
    output = ops.read_out(vectors, call.out_bias.contiguous(), states, heads)
    last = layout.final_states(at) if stretches is None else stretches.final(call.start)
    finals = one_hot(last, heads, vectors.dtype)
    exchanged = kept.new_empty(0) if stretches is None else stretches.tables
    return output.view(*rows, output.shape[1]), finals, states, kept, vectors, exchanged


def _table_maker(call: NfsmCall, source: LogitSource) -> Callable[[Tensor], Tensor]:
    """A function from a window to the tables of its rows; without noise, those of distinct rows are made once."""
    ops, heads, noise, index = kernels(call.backend), call.heads, call.noise(), source.index
    distinct = None if index is None or noise is not None else _distinct_tables(call, source)
    if index is None or distinct is None:
        rows = source if noise is not None else call.plain_source()
        return lambda window: ops.tables(rows, window, heads, noise)

    def take(window: Tensor) -> Tensor:
        whole = local_rows(window) == len(index)  # local rows are the rows of the input
        return distinct.index_select(0, index if whole else index[rows_of(window).to(index.device)])

    return take


def _distinct_tables(call: NfsmCall, source: LogitSource) -> Tensor | None:
    """R S: the tables of the distinct rows, without noise; None if a repeated row has none, which nothing may read."""
    try:
        return kernels(call.backend).tables(source.distinct, batch_segments(1, len(source.input)), call.heads, None)
    except InvalidInput as error:
        if source.repeats:
            return None
        raise InvalidInput(f"of the distinct rows, {error}") from None


def _exchange(
    call: NfsmCall, layout: Layout, tables_of: Callable[[Tensor], Tensor]
) -> tuple[sequence_parallel.Stretches, Tensor | None]:  # fmt: skip
    """The tables of all stretches; and those of this one's rows, unless they are made chunk by chunk."""
    ops, heads, device = kernels(call.backend), call.heads, call.input.device
    sizes = torch.tensor(heads)
    scratch = torch.zeros(prod(call.rows), len(heads), dtype=cell_dtype(heads), device=device)
    # from every index of the largest head at once in all heads; a smaller head repeats its last index
    ats = [
        layout.started(torch.minimum(torch.tensor(k), sizes - 1).expand(len(call.start), -1)).starts.to(device)
        for k in range(max(heads))
    ]
    tables: Tensor | None = None
    for window in windows(layout.segments, call.chunk):
        tables = tables_of(window)
        ats = [ops.trajectories(tables, window, at, scratch, heads) for at in ats]
    resets = layout.has_reset.to(device)
    finals = [layout.final_states(at) for at in ats]
    return sequence_parallel.Stretches.exchange(call.group, finals, resets, heads), None if call.chunk else tables


def _forward_fake(*flat: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = NfsmCall(*flat)
    rows, like, cells = call.rows, call.values, cell_dtype(call.heads)
    indices, width = sum(call.heads), call.out_weight.shape[0]
    return (
        like.new_empty(*rows, width),
        like.new_empty(call.start.shape[0], indices),
        like.new_empty(prod(rows), len(call.heads), dtype=cells),
        like.new_empty(0 if call.chunk else prod(rows), indices, dtype=cells),
        like.new_empty(indices, width),
        like.new_empty(_exchanged_shape(call), dtype=cells),
    )


def _exchanged_shape(call: NfsmCall) -> tuple[int, ...]:
    if not call.group:
        return (0,)
    return sequence_parallel.world_size(call.group), call.start.shape[0], sum(call.heads) + 1


def _evaluate(*flat: Any) -> tuple[Tensor, Tensor]:
    call = NfsmCall(*flat)
    call.check()
    ops, heads = kernels(call.backend), call.heads
    layout, rows, device = call.layout(), call.rows, call.input.device
    if call.group:
        return _evaluate_stretch(call, layout)
    source, at = call.source(ops, logits=False), layout.starts.to(device)
    tables = None if source.index is None else _distinct_tables(call, source)
    if tables is None:
        source = call.plain_source()
        states = torch.zeros(prod(rows), len(heads), dtype=torch.int64, device=device)
        for window in windows(layout.segments, call.chunk):
            at = ops.argmax_trajectories(source, window, at, states, heads)
    else:  # one table per distinct row
        states = torch.zeros(prod(rows), len(heads), dtype=cell_dtype(heads), device=device)
        at = ops.trajectories(tables, layout.segments, at, states, heads, source.index)
    _hold_starts_(states, layout, call)
    vectors = ops.project_values(call.values.contiguous(), call.out_weight.contiguous(), heads)
    output = ops.read_out(vectors, call.out_bias.contiguous(), states, heads)
    return output.view(*rows, output.shape[1]), layout.final_states(at)


def _hold_starts_(states: Tensor, layout: Layout, call: NfsmCall) -> None:
    """Write the start into the rows before the first steps of sequences."""
    if layout.leading is not None:
        rows, sequence = (part.to(states.device) for part in layout.leading)
        states[rows] = call.start.to(states)[sequence]


def _evaluate_stretch(call: NfsmCall, layout: Layout) -> tuple[Tensor, Tensor]:
    """The pass without noise over this rank's stretch: as in training, for the start is known after the tables."""
    output, finals, *_ = _forward(*call)
    return output, indices_of(finals, call.heads)


def _evaluate_fake(*flat: Any) -> tuple[Tensor, Tensor]:
    call = NfsmCall(*flat)
    output = call.values.new_empty(*call.rows, call.out_weight.shape[0])
    return output, call.start.new_empty(call.start.shape[0], len(call.heads), dtype=torch.int64)


# -- the backward pass

Gradients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _backward(
    output_grad: Tensor, finals_grad: Tensor, states: Tensor, tables: Tensor, vectors: Tensor, exchanged: Tensor,
    wants_input: bool, *flat: Any,
) -> Gradients:  # fmt: skip
    """Gradients of the first fields of the call; that of the input is empty unless `wants_input`."""
    call = NfsmCall(*flat)
    ops, heads = kernels(call.backend), call.heads
    layout, source, noise = call.layout(checked=True), call.source(ops, logits=True), call.noise()
    tables_of = _table_maker(call, source) if call.chunk else lambda window: tables
    grad, device = _flat(output_grad), call.input.device

    def lasts_of(finals_grad: Tensor) -> Tensor:
        lasts = layout.final_states_backward(finals_grad)
        if call.lengths is None:
            return lasts
        padding, owner = (part.to(device) for part in layout.padding_rows)
        return lasts.index_add(0, owner, grad[padding] @ vectors.T) if len(padding) else lasts

    before_first = None
    if call.group:
        stretches = sequence_parallel.Stretches.of(exchanged, call.group, heads)
        layout = layout.started(stretches.start(call.start))
        lasts = lasts_of(torch.zeros_like(finals_grad))
        for window in reversed(list(windows(layout.segments, call.chunk))):
            lasts = ops.adjoint_scan_(tables_of(window), ops.index_gains(grad, vectors, window), lasts, window, heads)
        finals_grad, before_first = stretches.ahead(call.group, layout.starts_backward(lasts), finals_grad)
        if stretches.rank > 0:
            before_first = torch.zeros_like(before_first)
    lasts = lasts_of(finals_grad)

    sums: LogitGradients
    by_row = ops.zeros(grad, len(grad), call.input.shape[-1]) if wants_input and call.row_index is None else None
    if source.index is None:
        sums = by_row, ops.zeros(grad, *source.weight.shape), ops.zeros(grad, *source.bias.shape)
    else:
        sums = by_row, None, ops.zeros(grad, len(source.input), len(source.weight))

    for window in reversed(list(windows(layout.segments, call.chunk))):
        lam = ops.index_gains(grad, vectors, window)
        starts = _window_starts(layout, window, states, device)
        lasts = ops.adjoint_scan_(tables_of(window), lam, lasts, window, heads)
        ops.surrogate_backward_(source, window, starts, states, lam, heads, noise, call.temperature, sums)

    _, grad_weight, grad_bias = sums
    grad_input = grad.new_empty(0) if by_row is None else by_row.view_as(call.input)
    if grad_weight is None:
        grad_logits = grad_bias
        grad_weight, grad_bias = grad_logits.T @ source.input, grad_logits.sum(0)
        if wants_input and by_row is None:
            grad_input = (grad_logits @ source.weight).view_as(call.input)
    vectors_grad = ops.read_out_backward(grad, states, heads)
    # every row reads exactly one index of the first head, so their vectors' gradients add up to that of the bias
    grad_out_bias = vectors_grad[: heads[0]].sum(0)
    grad_values, grad_out_weight = ops.project_values_backward(
        vectors_grad, call.values.contiguous(), call.out_weight.contiguous(), heads
    )
    carry_grad = layout.starts_backward(lasts) if before_first is None else before_first
    if layout.leading is not None:
        leading, sequence = (part.to(device) for part in layout.leading)
        carry_grad = carry_grad.index_add(0, sequence, grad[leading] @ vectors.T)
    return grad_input, grad_weight, grad_bias, grad_values, grad_out_weight, grad_out_bias, carry_grad


def _checked_backward(
    output_grad: Tensor, finals_grad: Tensor, states: Tensor, tables: Tensor, vectors: Tensor, exchanged: Tensor,
    wants_input: bool, *flat: Any,
) -> Gradients:  # fmt: skip
    """`_backward` for callers of the operator; autograd passes what the forward pass made."""
    call = NfsmCall(*flat)
    call.check()
    heads, rows = call.heads, prod(call.rows)
    S, kind, cell = sum(heads), call.values.dtype, cell_dtype(heads)
    wanted = {
        "output_grad": (output_grad, (*call.rows, len(call.out_bias)), kind),
        "finals_grad": (finals_grad, (len(call.start), S), kind),
        "states": (states, (rows, len(heads)), cell),
        "tables": (tables, (0, S) if call.chunk else (rows, S), cell),
        "vectors": (vectors, (S, len(call.out_bias)), kind),
    }
    for name, (tensor, shape, dtype) in wanted.items():
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            got = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
            raise InvalidInput(f"{name} is {dtype} of shape {shape} here; got {got}.")
        if tensor.device != call.input.device:
            raise InvalidInput(f"{name} is on {tensor.device}, and the input on {call.input.device}.")
    sizes = torch.tensor(list(heads), device=states.device)
    for name, cells, limits in (("states", states, sizes), ("tables", tables, sizes.repeat_interleave(sizes))):
        if cells.numel() and bool(((cells < 0) | (cells.long() >= limits)).any()):
            raise InvalidInput(
                f"{name} hold indices outside heads {tuple(heads)}; pass what the forward pass returned."
            )
    saved = states.contiguous(), tables.contiguous(), vectors.contiguous(), exchanged
    return _backward(output_grad.contiguous(), finals_grad, *saved, wants_input, *flat)


def _backward_fake(
    output_grad: Tensor, finals_grad: Tensor, states: Tensor, tables: Tensor, vectors: Tensor, exchanged: Tensor,
    wants_input: bool, *flat: Any,
) -> Gradients:  # fmt: skip
    call = NfsmCall(*flat)
    grad_input = call.input.new_empty(call.input.shape if wants_input else (0,))
    weight, bias, values, out_weight, out_bias = (part.new_empty(part.shape) for part in call[1:6])
    carry = call.values.new_empty(call.start.shape[0], sum(call.heads))
    return grad_input, weight, bias, values, out_weight, out_bias, carry


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(True)
    ctx.mark_non_differentiable(*output[2:])
    ctx.save_for_backward(*output[2:], *inputs[:_TENSORS])
    ctx.options, ctx.has_carry = inputs[_TENSORS:], NfsmCall(*inputs).carry is not None


def _backward_by(function: Callable[..., Gradients]) -> Callable[..., tuple[Tensor | None, ...]]:
    def backward(ctx: Any, output_grad: Tensor, finals_grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        states, tables, vectors, exchanged, *tensors = ctx.saved_tensors  # once: a checkpoint recomputes them
        saved = states, tables, vectors, exchanged
        wants_input = ctx.needs_input_grad[0]
        with without_autocast(output_grad.device):
            grads: list[Tensor | None] = list(
                function(output_grad.contiguous(), finals_grad, *saved, wants_input, *tensors, *ctx.options)
            )
        grads[0] = grads[0] if wants_input else None
        grads[-1] = grads[-1] if ctx.has_carry else None
        return *grads, *[None] * (len(NfsmCall._fields) - _GRADIENTS)

    return backward


def _window_starts(layout: Layout, window: Tensor, states: Tensor, device: torch.device) -> Tensor:
    """G r: the states before the first rows of a window: a segment's own start, or the state after the row before."""
    starts = layout.starts.to(device)
    if window is layout.segments or not len(states):
        return starts
    continues = (window[:, 0] > layout.segments[:, 0]).to(device)
    before = (window[:, 0] - 1).clamp(0, len(states) - 1).to(device)
    return torch.where(continues[:, None], states[before].long(), starts)


def _flat(tensor: Tensor) -> Tensor:
    """... m -> rows m, contiguous."""
    return tensor.reshape(tensor.shape[:-1].numel(), tensor.shape[-1]).contiguous()


def _padded_to(tables: Tensor, rows: int) -> Tensor:
    """Tables with as many rows as the input, padding included: a shape that is known without looking at lengths."""
    return tables if len(tables) == rows else torch.nn.functional.pad(tables, (0, 0, 0, rows - len(tables)))


# -- registration: operators for tracing (compile, export, dispatch modes), and a cheaper autograd function for eager


def _op(name: str, function: Callable[..., Any], fake: Callable[..., Any], schema: str) -> Any:
    op = torch.library.custom_op(f"exactstate::{name}", function, mutates_args=(), schema=schema)
    op.register_fake(fake)
    op.register_vmap(one_by_one(op))
    return op


_SIX, _SEVEN = (f"({', '.join(['Tensor'] * count)})" for count in (6, 7))
_SAVED = (
    "Tensor output_grad, Tensor finals_grad, Tensor states, Tensor tables, Tensor vectors, Tensor exchanged, "
    "bool wants_input"
)
_forward_op = _op("nfsm_forward", _forward, _forward_fake, f"({_ARGUMENTS}) -> {_SIX}")
_backward_op = _op("nfsm_backward", _checked_backward, _backward_fake, f"({_SAVED}, {_ARGUMENTS}) -> {_SEVEN}")
_eval_op = _op("nfsm_eval", _evaluate, _evaluate_fake, f"({_ARGUMENTS}) -> (Tensor, Tensor)")
_forward_op.register_autograd(_backward_by(_backward_op), setup_context=_setup_context)
_backward_op.register_autograd(refuse_derivative)
_eval_op.register_autograd(refuse_derivative)
_forward_eager = autograd_function(_forward, _setup_context, _backward_by(autograd_function(_backward)))
_eval_eager = autograd_function(_evaluate)

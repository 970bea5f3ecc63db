"""The backend `cpu`: compiled kernels called through ctypes, on all cores, with the interpreter lock released.

The functions are those of `Scan` and `Kernels` in `exactstate.ops.interface`, which documents them. They never build a
d x d array per step. Sums are taken in one fixed order, so results do not depend on threads, chunks or batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from exactstate import native
from exactstate.errors import InvalidInput
from exactstate.native import address
from exactstate.ops.segments import LogitSource, Noise, batch_segments, local_rows, refuse_infinite
from exactstate.ops.tables import cell_dtype, check_states

REPETITIONS = 16
"""How often a row must occur, in the mean, so that logits of all columns of the distinct rows are cheaper than those of
the used columns of all rows."""
SYSTEM_BYTES = 1 << 22
"""Size from which zeroed memory comes from the system."""


@lru_cache(maxsize=256)
def _sizes(heads: tuple[int, ...]) -> tuple[Tensor, int]:
    sizes = torch.tensor(heads, dtype=torch.int64)
    return sizes, sizes.data_ptr()  # contiguous; the cache holds the tensor, so its address stays valid


def _heads(heads: Sequence[int]) -> tuple[int, int]:
    return _sizes(tuple(heads))[1], len(heads)


def _suffix(tensor: Tensor) -> str:
    return "f64" if tensor.dtype == torch.float64 else "f32"


def _check_arrays(*tensors: Tensor | None) -> None:
    """Kernels get addresses: assert that all floating arrays have one type and are contiguous."""
    kind = next(tensor.dtype for tensor in tensors if tensor is not None)
    for tensor in tensors:
        if tensor is not None:
            assert tensor.dtype is kind, (tensor.dtype, kind)
            assert tensor.is_contiguous()


def _on_cpu(tensor: Tensor) -> Tensor:
    if not tensor.is_cpu:
        raise InvalidInput(f"backend 'cpu' works on CPU tensors; got one on {tensor.device}: use backend='tree'.")
    return tensor.contiguous()


def prefix(tables: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t."""
    tables = _on_cpu(tables)
    composites = torch.empty_like(tables)
    native.library().exactstate_prefix(
        address(tables), tables.element_size(), *tables.shape[:2], *_heads(heads), address(composites),
        native.threads(),
    )  # fmt: skip
    return composites


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    B, L, S = tables.shape
    states = torch.empty(B * L, len(heads), dtype=tables.dtype)
    trajectories(_on_cpu(tables).view(B * L, S), batch_segments(B, L), initial_state, states, heads)
    return states.view(B, L, len(heads))


def adjoint(tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)); see `reference.adjoint`."""
    B, L, S = tables.shape
    lam = _on_cpu(gains).clone()
    first = adjoint_scan_(_on_cpu(tables).view(B * L, S), lam.view(B * L, S), last, batch_segments(B, L), heads)
    return lam, first


def logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """R m -> R E: bias + x[0] w[0] + x[1] w[1] + ..., summed in that order."""
    out = torch.empty(rows.shape[0], weight.shape[0], dtype=weight.dtype)
    getattr(native.library(), f"exactstate_logits_{_suffix(weight)}")(
        address(rows), address(weight), address(bias), rows.shape[1], weight.shape[0], rows.shape[0],
        address(out), native.threads(),
    )  # fmt: skip
    return out


def repeated_rows(rows: Tensor) -> tuple[Tensor, Tensor] | None:
    """(numbers of the rows in which each distinct row occurs first: R, which of them each row is: N), where rows repeat
    `REPETITIONS` times or more in the mean; else None. Equal is equal to the bit."""
    count, most = len(rows), len(rows) // REPETITIONS
    first, index = torch.empty(most, dtype=torch.int64), torch.empty(count, dtype=torch.int64)
    distinct = native.library().exactstate_repeated_rows(
        address(rows), rows.shape[1] * rows.element_size(), count, most, address(first), address(index)
    )
    return None if distinct < 1 else (first[:distinct], index)


def tables(source: LogitSource, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
    """Tables of every local row: N S."""
    _check_arrays(source.input, source.weight, source.bias, source.logits)
    made = torch.empty(local_rows(segments), sum(heads), dtype=cell_dtype(heads))
    bad = getattr(native.library(), f"exactstate_tables_{_suffix(source.weight)}")(
        *_addresses(source), *_heads(heads), address(segments), segments.shape[0], int(noise is not None),
        noise.temperature if noise else 1.0, noise.bits if noise else 0, address(made), made.element_size(),
        native.threads(),
    )  # fmt: skip
    refuse_infinite(bad)
    return made


def trajectories(
    tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
    row_index: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Write the states after every row of the segments; return the last ones: G r. With `row_index`, row n uses
    table row_index[n]."""
    starts = _on_cpu(starts).long()
    finals = torch.empty(segments.shape[0], len(heads), dtype=torch.int64)
    native.library().exactstate_trajectories(
        address(tables), tables.element_size(), address(row_index), *_heads(heads), address(segments),
        segments.shape[0], address(starts), address(states), address(finals), native.threads(),
    )  # fmt: skip
    return finals


def index_gains(output_grad: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
    """rows m, S m -> N S: for every local row, the derivative of the loss by reading out each index there."""
    _check_arrays(output_grad, vectors)
    made = torch.empty(local_rows(segments), vectors.shape[0], dtype=vectors.dtype)
    getattr(native.library(), f"exactstate_index_gains_{_suffix(vectors)}")(
        address(output_grad), address(vectors), vectors.shape[1], vectors.shape[0], address(segments),
        segments.shape[0], address(made), native.threads(),
    )  # fmt: skip
    return made


def adjoint_scan_(tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]) -> Tensor:
    """Turn gains (N S) into lambda, in place; return lambda before the first row of every segment: G S."""
    firsts = torch.empty(segments.shape[0], sum(heads), dtype=gains.dtype)
    lasts = _on_cpu(lasts)
    _check_arrays(gains, lasts)
    getattr(native.library(), f"exactstate_adjoint_{_suffix(gains)}")(
        address(tables), tables.element_size(), *_heads(heads), address(segments), segments.shape[0],
        address(gains), address(lasts), address(firsts), native.threads(),
    )  # fmt: skip
    return firsts


def argmax_trajectories(
    source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]
) -> Tensor:  # fmt: skip
    """`trajectories` without noise, computing only the columns that the states are in."""
    starts = _on_cpu(starts).long()
    finals = torch.empty(segments.shape[0], len(heads), dtype=torch.int64)
    bad = getattr(native.library(), f"exactstate_argmax_trajectories_{_suffix(source.weight)}")(
        *_addresses(source)[:4], *_heads(heads), address(segments), segments.shape[0], address(starts),
        address(states), address(finals), native.threads(),
    )  # fmt: skip
    if bad == -2:
        check_states(starts, heads, segments.shape[0])
    refuse_infinite(bad)
    return finals


def surrogate_backward_(
    source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, lam: Tensor, heads: Sequence[int],
    noise: Noise | None, temperature: float, gradients: tuple[Tensor | None, Tensor | None, Tensor],
) -> None:  # fmt: skip
    """Add to the gradients of (input or None, weight, bias), or with an index of (input or None, None, logits of the
    distinct rows); lambda (N S) is overwritten."""
    _check_arrays(source.input, source.weight, source.bias, source.logits, lam, *gradients)
    getattr(native.library(), f"exactstate_surrogate_backward_{_suffix(source.weight)}")(
        *_addresses(source), *_heads(heads), address(segments), segments.shape[0], address(starts),
        address(states), states.element_size(), int(noise is not None), temperature, noise.bits if noise else 0,
        address(lam), *map(address, gradients), native.threads(),
    )  # fmt: skip


def project_values(values: Tensor, weight: Tensor, heads: Sequence[int]) -> Tensor:
    """S v, m (r v) -> S m: the projected value vector of every index."""
    vectors = torch.empty(values.shape[0], weight.shape[0], dtype=values.dtype)
    getattr(native.library(), f"exactstate_project_values_{_suffix(values)}")(
        address(values), values.shape[1], address(weight), weight.shape[0], *_heads(heads),
        address(vectors),
    )  # fmt: skip
    return vectors


def project_values_backward(
    vectors_grad: Tensor, values: Tensor, weight: Tensor, heads: Sequence[int]
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """From the gradient of the projected vectors to those of the values and the weight."""
    _check_arrays(vectors_grad, values, weight)
    grad_values, grad_weight = torch.empty_like(values), torch.empty_like(weight)
    getattr(native.library(), f"exactstate_project_values_backward_{_suffix(values)}")(
        address(vectors_grad), address(values), values.shape[1], address(weight), weight.shape[0],
        *_heads(heads), address(grad_values), address(grad_weight),
    )  # fmt: skip
    return grad_values, grad_weight


def zeros(like: Tensor, *shape: int) -> Tensor:
    """Zeros; large ones from the system (calloc), so that pages are first touched by the kernel's own threads. Small
    ones are zeroed here: the allocator returns the same pages in every step."""
    if math.prod(shape) * like.element_size() < SYSTEM_BYTES:
        return torch.zeros(shape, dtype=like.dtype)
    return torch.from_numpy(np.zeros(shape, dtype=np.float64 if like.dtype == torch.float64 else np.float32))


def step(
    rows: Tensor, weight: Tensor, bias: Tensor, values: Tensor, out_weight: Tensor, out_bias: Tensor, starts: Tensor,
    heads: Sequence[int],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """One step without noise of every sequence: (B m, B r)."""
    starts, (batch, m), width = _on_cpu(starts.long()), rows.shape, len(out_bias)
    output, states = values.new_empty(batch, width), torch.empty_like(starts)
    library = native.library()
    bad = (library.exactstate_step_f64 if values.dtype == torch.float64 else library.exactstate_step_f32)(
        address(rows), address(weight), address(bias), m, *_heads(heads), address(values), values.shape[1],
        address(out_weight), address(out_bias), width, address(starts), batch, address(states), address(output),
        native.threads(),
    )  # fmt: skip
    if bad == -2:
        check_states(starts, heads, batch)
    refuse_infinite(bad)
    return output, states


def read_out(vectors: Tensor, bias: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """N r -> N m: the sum of the vectors of the indices, head by head."""
    _check_arrays(vectors, bias)
    output = torch.empty(states.shape[0], vectors.shape[1], dtype=vectors.dtype)
    getattr(native.library(), f"exactstate_read_out_{_suffix(vectors)}")(
        address(vectors), address(bias), vectors.shape[1], *_heads(heads), address(states),
        states.element_size(), states.shape[0], address(output), native.threads(),
    )  # fmt: skip
    return output


def read_out_backward(output_grad: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """N m -> S m: the gradient of the vectors, summed over the rows that read them."""
    _check_arrays(output_grad)
    vectors_grad = torch.zeros(sum(heads), output_grad.shape[1], dtype=output_grad.dtype)
    getattr(native.library(), f"exactstate_read_out_backward_{_suffix(output_grad)}")(
        address(output_grad), output_grad.shape[1], *_heads(heads), address(states), states.element_size(),
        states.shape[0], address(vectors_grad), native.threads(),
    )  # fmt: skip
    return vectors_grad


@dataclass(frozen=True, slots=True)
class SoftSteps:
    """Where a pass of soft states begins, and which of its steps hold or reset the state."""

    heads: tuple[int, ...]
    shape: tuple[int, int]
    """B L."""
    start: Tensor
    """B r: the index of every head before the first step."""
    initial: Tensor
    """r: the index of every head after a reset."""
    lengths: Tensor | None
    """B."""
    resets: Tensor | None
    """B L booleans."""

    def addresses(self) -> tuple[int | None, ...]:
        steps = (self.start, self.initial, self.lengths, self.resets)
        assert all(one is None or one.is_contiguous() for one in steps)
        assert all(one is None or one.dtype == torch.int64 for one in steps[:3])
        return *_heads(self.heads), *self.shape, *map(address, steps)


def soft_forward(logits: Tensor, steps: SoftSteps) -> tuple[Tensor, Tensor]:
    """N E -> (distributions after every step: B L S, softmax of the logits as the backward pass reads it)."""
    (B, L), lanes = steps.shape, 8 if logits.dtype == torch.float64 else 16
    _check_arrays(logits)
    moves = torch.empty(-(-B // lanes) * lanes * L, logits.shape[1], dtype=logits.dtype)
    states = torch.empty(B, L, sum(steps.heads), dtype=logits.dtype)
    getattr(native.library(), f"exactstate_soft_forward_{_suffix(logits)}")(
        address(logits), *steps.addresses(), address(moves), address(states), native.threads()
    )
    return states, moves


def soft_backward(states_grad: Tensor, moves: Tensor, states: Tensor, steps: SoftSteps) -> Tensor:
    """B L S -> N E: from the gradient of the distributions to that of the logits."""
    _check_arrays(states_grad, moves, states)
    logits_grad = torch.empty(math.prod(steps.shape), moves.shape[1], dtype=moves.dtype)
    getattr(native.library(), f"exactstate_soft_backward_{_suffix(moves)}")(
        address(states_grad), *steps.addresses(), address(moves), address(states), address(logits_grad),
        native.threads(),
    )  # fmt: skip
    return logits_grad


def soft_indexed(moves: Tensor, row_index: Tensor, steps: SoftSteps) -> Tensor:
    """R E and B L -> B L S: the distributions when step (b, t) has the matrices of row row_index[b, t]."""
    _check_arrays(moves)
    states = torch.empty(*steps.shape, sum(steps.heads), dtype=moves.dtype)
    getattr(native.library(), f"exactstate_soft_indexed_{_suffix(moves)}")(
        address(moves), len(moves), address(row_index), *steps.addresses(), address(states), native.threads()
    )
    return states


def soft_indexed_backward(
    states_grad: Tensor, moves: Tensor, row_index: Tensor, states: Tensor, steps: SoftSteps
) -> Tensor:  # fmt: skip
    """B L S -> R E: from the gradient of the distributions to that of the matrices."""
    _check_arrays(states_grad, moves, states)
    moves_grad = torch.empty_like(moves)
    getattr(native.library(), f"exactstate_soft_indexed_backward_{_suffix(moves)}")(
        address(states_grad), address(moves), len(moves), address(row_index), *steps.addresses(),
        address(states), address(moves_grad), native.threads(),
    )  # fmt: skip
    return moves_grad


def _addresses(source: LogitSource) -> tuple[int | None, int | None, int | None, int, int | None, int | None]:
    """Input, weight, bias and width; then the logits of the distinct rows and the index, if any."""
    weight, bias = address(source.weight), address(source.bias)
    if source.index is not None:
        assert source.logits is not None
        return None, weight, bias, source.input.shape[-1], address(source.logits), address(source.index)
    return address(source.input), weight, bias, source.input.shape[-1], None, None

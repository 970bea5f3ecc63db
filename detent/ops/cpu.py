"""The same functions, compiled: plain C through ctypes, all cores, the interpreter lock released.

`prefix`, `run` and `adjoint` are the interface that every backend has. The other functions are the stages of a
layer's pass over segments; they never build a d x d array per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from detent import native
from detent.errors import InvalidInput
from detent.ops.segments import LENGTH, Noise, Source, of_batch, refuse_infinite
from detent.ops.tables import cell_dtype, check_states


@lru_cache(maxsize=256)
def _sizes(heads: tuple[int, ...]) -> tuple[Tensor, int]:
    sizes = torch.tensor(heads, dtype=torch.int64)
    return sizes, sizes.data_ptr()  # the tensor is kept so that its address stays good


def _heads(heads: Sequence[int]) -> tuple[int, int]:
    return _sizes(tuple(heads))[1], len(heads)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _real(tensor: Tensor) -> str:
    return "f64" if tensor.dtype == torch.float64 else "f32"


def _agree(*tensors: Tensor | None) -> None:
    """What only we could break: kernels see addresses, so every real array has one type and no gaps."""
    given = [tensor for tensor in tensors if tensor is not None]
    assert len({tensor.dtype for tensor in given}) == 1, [tensor.dtype for tensor in given]
    assert all(tensor.is_contiguous() for tensor in given)


def _on_cpu(tensor: Tensor) -> Tensor:
    if tensor.device.type != "cpu":
        raise InvalidInput(f"backend 'cpu' works on CPU tensors; got one on {tensor.device}: use backend='tree'.")
    return tensor.contiguous()


def prefix(tables: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t."""
    tables = _on_cpu(tables)
    composites = torch.empty_like(tables)
    native.library().detent_prefix(
        tables.data_ptr(), tables.element_size(), *tables.shape[:2], *_heads(heads), composites.data_ptr(),
        native.threads(),
    )  # fmt: skip
    return composites


def run(tables: Tensor, start: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    B, L, S = tables.shape
    states = torch.empty(B * L, len(heads), dtype=tables.dtype)
    track(_on_cpu(tables).view(B * L, S), of_batch(B, L), start, states, heads)
    return states.view(B, L, len(heads))


def adjoint(tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)); see `reference.adjoint`."""
    B, L, S = tables.shape
    worth = _on_cpu(gains).clone()
    first = weigh(_on_cpu(tables).view(B * L, S), worth.view(B * L, S), last, of_batch(B, L), heads)
    return worth, first


def logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """R m -> R E: bias + x[0] w[0] + x[1] w[1] + ..., summed in that order."""
    out = torch.empty(len(rows), len(weight), dtype=weight.dtype)
    getattr(native.library(), f"detent_logits_{_real(weight)}")(
        rows.data_ptr(), weight.data_ptr(), bias.data_ptr(), rows.shape[1], len(weight), len(rows), out.data_ptr(),
        native.threads(),
    )  # fmt: skip
    return out


def tables(source: Source, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
    """Tables of every local row: N S."""
    _agree(source.input, source.weight, source.bias, source.logits)
    rows = int(segments[:, LENGTH].sum())
    made = torch.empty(rows, sum(heads), dtype=cell_dtype(heads))
    bad = getattr(native.library(), f"detent_tables_{_real(source.weight)}")(
        *_addresses(source), *_heads(heads), segments.data_ptr(), len(segments), int(noise is not None),
        noise.temperature if noise else 1.0, noise.word if noise else 0, made.data_ptr(), made.element_size(),
        native.threads(),
    )  # fmt: skip
    refuse_infinite(bad)
    return made


def track(
    tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int], index: Tensor | None = None
) -> Tensor:
    """Write the states of every row of the segments; return the last ones: G r. With an index, row n uses
    table index[n] of a few distinct ones."""
    starts = _on_cpu(starts).long()
    finals = torch.empty(len(segments), len(heads), dtype=torch.int64)
    native.library().detent_track(
        tables.data_ptr(), tables.element_size(), _address(index), *_heads(heads), segments.data_ptr(),
        len(segments), starts.data_ptr(), states.data_ptr(), finals.data_ptr(), native.threads(),
    )  # fmt: skip
    return finals


def gains(gradient: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
    """N' m, S m -> N S: for every local row, what each index would have gained there."""
    _agree(gradient, vectors)
    made = torch.empty(int(segments[:, LENGTH].sum()), len(vectors), dtype=vectors.dtype)
    getattr(native.library(), f"detent_gains_{_real(vectors)}")(
        gradient.data_ptr(), vectors.data_ptr(), vectors.shape[1], len(vectors), segments.data_ptr(), len(segments),
        made.data_ptr(), native.threads(),
    )  # fmt: skip
    return made


def weigh(tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]) -> Tensor:
    """Turn gains (N S) into lambda, in place; return lambda before the first row of every segment: G S."""
    firsts = torch.empty(len(segments), sum(heads), dtype=gains.dtype)
    lasts = _on_cpu(lasts)
    _agree(gains, lasts)
    getattr(native.library(), f"detent_adjoint_{_real(gains)}")(
        tables.data_ptr(), tables.element_size(), *_heads(heads), segments.data_ptr(), len(segments),
        gains.data_ptr(), lasts.data_ptr(), firsts.data_ptr(), native.threads(),
    )  # fmt: skip
    return firsts


def follow(source: Source, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """Evaluation: write the states of every row, computing only the columns the states are in; return the last."""
    starts = _on_cpu(starts).long()
    finals = torch.empty(len(segments), len(heads), dtype=torch.int64)
    bad = getattr(native.library(), f"detent_follow_{_real(source.weight)}")(
        *_addresses(source)[:4], *_heads(heads), segments.data_ptr(), len(segments), starts.data_ptr(),
        states.data_ptr(), finals.data_ptr(), native.threads(),
    )  # fmt: skip
    if bad == -2:
        check_states(starts, heads, len(segments))
    refuse_infinite(bad)
    return finals


def surrogate(
    source: Source, segments: Tensor, starts: Tensor, states: Tensor, worth: Tensor, heads: Sequence[int],
    noise: Noise | None, temperature: float, gradients: tuple[Tensor | None, Tensor | None, Tensor],
) -> None:  # fmt: skip
    """Turn lambda (N S) into the gradient of the used columns, in place, and add to the gradients of
    (input, weight, bias), or with an index of (nothing, nothing, logits of the distinct rows)."""
    _agree(source.input, source.weight, source.bias, source.logits, worth, *gradients)
    getattr(native.library(), f"detent_surrogate_{_real(source.weight)}")(
        *_addresses(source), *_heads(heads), segments.data_ptr(), len(segments), starts.data_ptr(),
        states.data_ptr(), states.element_size(), int(noise is not None), temperature, noise.word if noise else 0,
        worth.data_ptr(), *map(_address, gradients), native.threads(),
    )  # fmt: skip


def fold(values: Tensor, projection: Tensor, heads: Sequence[int]) -> Tensor:
    """S v, m (r v) -> S m: the value vector of every index, projected."""
    vectors = torch.empty(len(values), len(projection), dtype=values.dtype)
    getattr(native.library(), f"detent_fold_{_real(values)}")(
        values.data_ptr(), values.shape[1], projection.data_ptr(), len(projection), *_heads(heads),
        vectors.data_ptr(),
    )  # fmt: skip
    return vectors


def unfold(gradient: Tensor, values: Tensor, projection: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """From the gradient of the folded vectors to those of (values, projection)."""
    _agree(gradient, values, projection)
    of_values, of_projection = torch.empty_like(values), torch.empty_like(projection)
    getattr(native.library(), f"detent_unfold_{_real(values)}")(
        gradient.data_ptr(), values.data_ptr(), values.shape[1], projection.data_ptr(), len(projection),
        *_heads(heads), of_values.data_ptr(), of_projection.data_ptr(),
    )  # fmt: skip
    return of_values, of_projection


def zeros(like: Tensor, *shape: int) -> Tensor:
    """Zeros that the system hands out: nothing is written before a kernel does, by its own threads."""
    return torch.from_numpy(np.zeros(shape, dtype=np.float64 if like.dtype == torch.float64 else np.float32))


def speak(values: Tensor, projection: Tensor, offset: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """N r -> N m: `read(fold(...))` for a few rows, without folding what is not read."""
    output = torch.empty(len(states), len(projection), dtype=values.dtype)
    getattr(native.library(), f"detent_speak_{_real(values)}")(
        values.data_ptr(), values.shape[1], projection.data_ptr(), offset.data_ptr(), len(projection),
        *_heads(heads), states.data_ptr(), len(states), output.data_ptr(),
    )  # fmt: skip
    return output


def read(vectors: Tensor, offset: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """N r -> N m: the sum of the vectors of the indices, head by head."""
    _agree(vectors, offset)
    output = torch.empty(len(states), vectors.shape[1], dtype=vectors.dtype)
    getattr(native.library(), f"detent_read_{_real(vectors)}")(
        vectors.data_ptr(), offset.data_ptr(), vectors.shape[1], *_heads(heads), states.data_ptr(),
        states.element_size(), len(states), output.data_ptr(), native.threads(),
    )  # fmt: skip
    return output


def collect(gradient: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
    """N m -> S m: the gradient of the vectors, summed over the rows that read them."""
    _agree(gradient)
    collected = torch.zeros(sum(heads), gradient.shape[1], dtype=gradient.dtype)
    getattr(native.library(), f"detent_collect_{_real(gradient)}")(
        gradient.data_ptr(), gradient.shape[1], *_heads(heads), states.data_ptr(), states.element_size(),
        len(states), collected.data_ptr(), native.threads(),
    )  # fmt: skip
    return collected


def _addresses(source: Source) -> tuple[int | None, int | None, int | None, int, int | None, int | None]:
    """Input, weight, bias and width; then the logits of distinct rows and the index, where there are any."""
    if source.index is not None:
        assert source.logits is not None
        return None, None, None, 0, source.logits.data_ptr(), source.index.data_ptr()
    weight, bias = source.weight.data_ptr(), source.bias.data_ptr()
    return source.input.data_ptr(), weight, bias, source.input.shape[-1], None, None

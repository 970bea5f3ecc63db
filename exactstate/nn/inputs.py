"""Checks of a layer's arguments, and helpers for padded and packed sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.ops.segments import LENGTH, ROW, make_layout

Rows = Tensor | tuple[Tensor, Tensor]
"""B L m, or (distinct rows: R m, which of them stands where: B L)."""


def as_integers(name: str, value: Tensor | Sequence[int] | None) -> Tensor | None:
    """A tensor, from a tensor or a list of whole numbers."""
    if value is None or isinstance(value, Tensor):
        return value
    return torch.tensor(whole_numbers(name, value), dtype=torch.int64)


def whole_numbers(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """The values as a tuple of integers; refused if they are not."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name} are whole numbers in a list or a tensor; got {values!r:.60}.")
    found = tuple(values)
    if any(isinstance(value, bool) or not isinstance(value, Integral) for value in found):
        raise InvalidConfig(f"{name} are whole numbers; got {found!r:.60}.")
    return tuple(int(value) for value in found)


def check_lengths(lengths: Tensor | None, shape: Sequence[int]) -> None:
    """Raise InvalidInput for lengths that do not fit B L rows."""
    if lengths is not None and not torch.compiler.is_compiling():
        _segments(shape, lengths, None)


def check_index(index: Tensor, distinct: int, name: str = "index", of: str = "distinct rows") -> Tensor:
    """The index as int64; raises InvalidInput if it names a row that does not exist."""
    if not torch.compiler.is_compiling():
        wrong = (index < 0) | (index >= distinct)
        if bool(wrong.any()):
            place = wrong.nonzero()[0].tolist()
            raise InvalidInput(
                f"{name}{place} is {int(index[tuple(place)])}, but there are {distinct} {of} (0..{distinct - 1})."
            )
    return index.long()


def steps_below(lengths: Tensor, padded_length: int) -> Tensor:
    """B padded_length: whether a step is one of the sequence's own."""
    return torch.arange(padded_length, device=lengths.device) < lengths[:, None]


def unpack_rows(cu_seqlens: Tensor, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(row of every step: B T, whether the step exists: B T) of packed sequences."""
    segments = _segments((rows,), None, cu_seqlens).to(device)
    longest = int(segments[:, LENGTH].max()) if len(segments) else 0
    taken = steps_below(segments[:, LENGTH], longest)
    return torch.where(taken, segments[:, ROW, None] + torch.arange(longest, device=device), 0), taken


def expand_like(mask: Tensor, state: Tensor) -> Tensor:
    """B -> B 1 ..., to broadcast along a state."""
    return mask.view(-1, *(1,) * (state.ndim - 1))


def _segments(shape: Sequence[int], lengths: Tensor | None, cu_seqlens: Tensor | None) -> Tensor:
    batch = len(cu_seqlens) - 1 if cu_seqlens is not None else shape[0]
    start = torch.zeros(batch, 1, dtype=torch.int64)
    return make_layout(shape, start, (1,), lengths, cu_seqlens, None, (0,)).segments


def check_call(
    width: int, x: Rows, lengths: Tensor | None, cu_seqlens: Tensor | None, resets: Tensor | None, *,
    masks: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(rows, index or None); raises InvalidInput if the arguments do not fit together. `masks`: whether lengths may be
    B L booleans."""
    if isinstance(x, PackedSequence):
        raise InvalidInput(
            "a PackedSequence is not taken; pass `x, lengths = pad_packed_sequence(packed, batch_first=True)` as "
            "layer(x, lengths=lengths), or rows that lie sequence after sequence with cu_seqlens."
        )
    rows, index = x if isinstance(x, tuple) else (x, None)
    for name, value in (("the input", rows), ("the index", index), ("resets", resets)):
        if value is not None and not isinstance(value, Tensor):
            raise InvalidInput(f"{name} is a torch tensor; got {type(value).__name__}.")
    packed = cu_seqlens is not None
    if not rows.is_floating_point():
        raise InvalidInput(f"the input holds floating-point numbers; got {rows.dtype}: embed tokens first.")
    if rows.shape[-1:] != (width,):
        raise InvalidInput(f"the input has width {width} in its last dimension; got shape {tuple(rows.shape)}.")
    if index is not None:
        _check_index(rows, index, packed)
    elif rows.ndim != (2 if packed else 3):
        wanted = f"(N, {width}) with cu_seqlens" if packed else f"(B, L, {width})"
        one = "; one sequence is x[None]" if rows.ndim == 2 and not packed else ""
        raise InvalidInput(f"the input has shape {wanted}; got {tuple(rows.shape)}{one}.")
    shape = rows.shape[:-1] if index is None else index.shape
    if packed and lengths is not None:
        raise InvalidInput("lengths are for padded batches and cu_seqlens for packed ones; give one of the two.")
    if not masks or lengths is None or lengths.dtype != torch.bool:
        _check_integers("lengths", lengths, (shape[0],))
    elif lengths.shape != shape:
        got = tuple(lengths.shape)
        raise InvalidInput(f"lengths as a mask are booleans of shape {tuple(shape)}, one for each step; got {got}.")
    if cu_seqlens is not None and (cu_seqlens.ndim != 1 or len(cu_seqlens) < 1 or _is_not_integer(cu_seqlens)):
        raise InvalidInput(
            "cu_seqlens is one row of integers, 0 first and the number of rows last; "
            f"got {cu_seqlens.dtype} of shape {tuple(cu_seqlens.shape)}."
        )
    if resets is not None and (resets.dtype != torch.bool or resets.shape != shape):
        raise InvalidInput(
            f"resets are booleans of shape {tuple(shape)}; got {resets.dtype} of shape {tuple(resets.shape)}."
        )
    return rows, index


def _is_not_integer(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool


def _check_integers(name: str, tensor: Tensor | None, shape: tuple[int, ...]) -> None:
    if tensor is not None and (_is_not_integer(tensor) or tuple(tensor.shape) != shape):
        raise InvalidInput(f"{name} are integers of shape {shape}; got {tensor.dtype} of shape {tuple(tensor.shape)}.")


def _check_index(rows: Tensor, index: Tensor, packed: bool) -> None:
    if rows.ndim != 2:
        raise InvalidInput(f"with an index, the rows have shape (R, m); got {tuple(rows.shape)}.")
    if _is_not_integer(index) or index.ndim != (1 if packed else 2):
        wanted = "(N,)" if packed else "(B, L)"
        raise InvalidInput(
            f"the index holds integers of shape {wanted}; got {index.dtype} of shape {tuple(index.shape)}."
        )

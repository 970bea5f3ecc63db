"""Tables and how they compose.

    B  batch     L  length     r  heads     d  indices of a head     S  the sum of the ds

A table is d integers: table[k] is where index k goes. Time runs left to right: compose(first, then)[k] ==
then[first[k]]. Heads lie side by side: a row of S integers holds one table per head, each entry an index of its
own head (0 .. d - 1), so the same row means the same whatever stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import torch
from torch import Tensor

from exactstate.errors import InvalidInput


def offsets(heads: tuple[int, ...]) -> tuple[int, ...]:
    """Where each head begins among the S indices."""
    return tuple(accumulate(heads[:-1], initial=0))


def entry_offsets(heads: tuple[int, ...]) -> tuple[int, ...]:
    """Where each head begins among the entries of all logit matrices."""
    return tuple(accumulate((d * d for d in heads[:-1]), initial=0))


@lru_cache(maxsize=256)
def _limits(heads: tuple[int, ...]) -> Tensor:
    return torch.tensor(heads)


def cell_dtype(heads: Sequence[int]) -> torch.dtype:
    """The smallest type that holds an index of every head."""
    return torch.uint8 if max(heads) <= 256 else torch.int16


def owners(heads: Sequence[int], device: torch.device | None = None) -> Tensor:
    """S: the offset of the head that owns each index."""
    sizes = torch.tensor(heads, device=device)
    return torch.tensor(offsets(tuple(heads)), device=device).repeat_interleave(sizes)


def compose(first: Tensor, then: Tensor, heads: Sequence[int] | None = None) -> Tensor:
    """The tables that do `first`, and after it `then`: then[first[k]] for every index k of every head."""
    if first.shape != then.shape or not first.ndim or not (_is_integer(first) and _is_integer(then)):
        raise InvalidInput(
            f"the tables to compose are integers of one shape; got {first.dtype} of shape {tuple(first.shape)} and "
            f"{then.dtype} of shape {tuple(then.shape)}."
        )
    S = first.shape[-1]
    heads = (S,) if heads is None else check_heads(heads)
    if sum(heads) != S:
        raise InvalidInput(f"these tables have {S} indices in a row; heads {tuple(heads)} have {sum(heads)}.")
    places = first.long()
    limit = torch.tensor(heads, device=first.device).repeat_interleave(torch.tensor(heads, device=first.device))
    wrong = (places < 0) | (places >= limit)
    if bool(wrong.any()):
        *_, k = place = wrong.nonzero()[0].tolist()
        raise InvalidInput(
            f"an entry of the first table is {int(places[tuple(place)])}, but that head has {int(limit[k])} indices."
        )
    return composed(first, then, heads)


def composed(first: Tensor, then: Tensor, heads: Sequence[int]) -> Tensor:
    """`compose` of tables that are known to be right."""
    return then.gather(-1, first.long() + owners(heads, first.device))


def identity(heads: Sequence[int], dtype: torch.dtype = torch.int64, device: torch.device | None = None) -> Tensor:
    """S: the tables that leave every index where it is."""
    check_heads(heads)
    return torch.cat([torch.arange(d, device=device) for d in heads]).to(dtype)


def one_hot(states: Tensor, heads: Sequence[int], dtype: torch.dtype) -> Tensor:
    """... r -> ... S: a one at the index of every head."""
    places = states.long() + torch.tensor(offsets(tuple(heads)), device=states.device)
    return torch.zeros(*states.shape[:-1], sum(heads), dtype=dtype, device=states.device).scatter_(-1, places, 1)


def check_tensor(name: str, value: object) -> None:
    """Refuse anything that is not a tensor."""
    if not isinstance(value, Tensor):
        raise InvalidInput(f"{name} {'is' if name != 'tables' else 'are'} a torch tensor; got {type(value).__name__}.")


def check_heads(heads: Sequence[int]) -> tuple[int, ...]:
    """The sizes, if there are any and all are positive integers."""
    sizes = tuple(heads)
    if not sizes or any(not isinstance(d, int) or isinstance(d, bool) or d < 1 for d in sizes):
        raise InvalidInput(f"heads are one or more sizes, integers from 1 on; got {sizes}.")
    return sizes


def _is_integer(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def indices_of(one_hot: Tensor, heads: Sequence[int]) -> Tensor:
    """B S -> B r: the index of every head."""
    if len(set(heads)) == 1:  # one call instead of one for each head
        return one_hot.unflatten(1, (len(heads), heads[0])).argmax(-1)
    parts = [one_hot[:, at : at + d].argmax(-1) for d, at in zip(heads, offsets(tuple(heads)), strict=True)]
    return torch.stack(parts, dim=1)


def check_tables(tables: Tensor, heads: Sequence[int]) -> None:
    """Refuse anything that is not B L S integers in the range of their heads."""
    if tables.ndim != 3 or tables.shape[-1] != sum(heads):
        raise InvalidInput(
            f"tables for heads {tuple(heads)} have shape (B, L, {sum(heads)}); got {tuple(tables.shape)}."
        )
    if tables.dtype not in (torch.uint8, torch.int16, torch.int32, torch.int64):
        raise InvalidInput(f"tables hold integers (uint8, int16, int32 or int64); got {tables.dtype}.")
    limit = torch.tensor(heads, device=tables.device).repeat_interleave(torch.tensor(heads, device=tables.device))
    if tables.numel() and bool(((tables < 0) | (tables.long() >= limit)).any()):
        b, t, s = ((tables < 0) | (tables.long() >= limit)).nonzero()[0].tolist()
        raise InvalidInput(
            f"tables[{b}, {t}, {s}] is {int(tables[b, t, s])}, but that head has {int(limit[s])} indices "
            f"(0..{int(limit[s]) - 1})."
        )


def check_states(states: Tensor, heads: Sequence[int], batch: int) -> None:
    """Refuse anything that is not batch x r integers in the range of their heads."""
    if states.shape != (batch, len(heads)):
        raise InvalidInput(
            f"one index per sequence and head: wanted shape ({batch}, {len(heads)}); got {tuple(states.shape)}."
        )
    if states.is_floating_point() or states.is_complex() or states.dtype == torch.bool:
        raise InvalidInput(f"states are integers; got {states.dtype}.")
    limit = _limits(tuple(heads)).to(states.device)
    if states.numel() and bool(((states < 0) | (states >= limit)).any()):
        b, h = ((states < 0) | (states >= limit)).nonzero()[0].tolist()
        raise InvalidInput(
            f"the state of sequence {b}, head {h} is {int(states[b, h])}, but that head has {heads[h]} indices "
            f"(0..{heads[h] - 1})."
        )

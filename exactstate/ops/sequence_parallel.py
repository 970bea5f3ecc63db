"""One sequence over several ranks: every rank holds a stretch of it, and ranks exchange tables instead of states.

    W  ranks     B  sequences     r  heads     d  indices of a head     S  the sum of the ds

Rank q composes the tables of its stretch to one table per sequence and head (S integers), gathers those of all ranks,
and looks up where its own stretch starts. The backward pass does the same with the adjoint: A_q(k), what being at index
k before stretch q adds to the loss within the stretch (S floats), is gathered, and

    V_q(k) = A_q(k) + V_{q+1}(table_q(k))

is what being at k before stretch q is worth in all. Tables are integers, so states equal those of one process bit for
bit; V is summed in the order of the ranks, so gradients are reproducible.

Conventions: the loss is the sum of the losses of all ranks. Parameters receive the gradient of the rank's own stretch:
sum them over the group. The state that comes in is the same on all ranks and receives its gradient on rank 0; the state
that comes out is that after the last stretch, on all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from exactstate.errors import InvalidConfig
from exactstate.ops.tables import cell_dtype, offsets


@dataclass(slots=True)
class Traffic:
    """Bytes that this rank has sent to every other rank, and the number of exchanges."""

    bytes: int = 0
    exchanges: int = 0


traffic = Traffic()
"""Counted by every exchange of this process; set its fields to zero to begin again."""


def group_name(process_group: Any) -> str:
    """The name by which operators find a process group; of a one-dimensional DeviceMesh, that of its dimension."""
    if process_group is None:
        return ""
    if hasattr(process_group, "get_group"):
        if process_group.ndim != 1:
            raise InvalidConfig(
                f"a sequence is split along one dimension of a device mesh; got {process_group.ndim}: "
                "pass mesh['name']."
            )
        process_group = process_group.get_group()
    return str(process_group.group_name)


def world_size(group: str) -> int:
    return dist.get_world_size(_resolve(group))


def rows_before(group: str, rows: int, device: torch.device) -> tuple[int, int]:
    """(rows of the earlier ranks, rows of all ranks), from the number of rows of this one."""
    counts = _all_gather(torch.tensor([rows], device=device), group).flatten().tolist()
    return sum(counts[: dist.get_rank(_resolve(group))]), sum(counts)


@dataclass(frozen=True, slots=True)
class Stretches:
    """The tables of all stretches, and which of them is this rank's."""

    tables: Tensor
    """W B (S + 1): the table of every stretch; the last column is 1 if a reset cuts the sequence within it."""
    heads: tuple[int, ...]
    rank: int

    @classmethod
    def exchange(cls, group: str, finals: Sequence[Tensor], resets: Tensor, heads: Sequence[int]) -> Stretches:
        """`finals[k]` (B r): the states after this rank's stretch from index k of every head; `resets` (B)."""
        by_index = torch.stack(list(finals), dim=2)  # B r d
        parts = [by_index[:, h, :d] for h, d in enumerate(heads)]
        own = torch.cat([*parts, resets[:, None].to(by_index)], dim=1).to(cell_dtype(heads))
        return cls.of(_all_gather(own, group), group, heads)

    @classmethod
    def of(cls, tables: Tensor, group: str, heads: Sequence[int]) -> Stretches:
        return cls(tables, tuple(heads), dist.get_rank(_resolve(group)))

    def start(self, state: Tensor) -> Tensor:
        """B r: where this rank's stretch starts, from where the sequences do."""
        return self._through(state, range(self.rank))

    def final(self, state: Tensor) -> Tensor:
        """B r: the state after the last stretch."""
        return self._through(state, range(len(self.tables)))

    def _through(self, state: Tensor, ranks: range) -> Tensor:
        begin = torch.tensor(offsets(self.heads), device=state.device)
        state = state.long()
        for q in ranks:
            state = self.tables[q].gather(1, state + begin).long()
        return state

    def ahead(self, group: str, own: Tensor, finals_grad: Tensor) -> tuple[Tensor, Tensor]:
        """(V behind this rank's stretch, V before the first one): B S each, from A of this stretch (B S) and the
        gradient of the final state, of which every rank has a part."""
        gathered = _all_gather(torch.stack([own, finals_grad]), group)  # W 2 B S
        owner = torch.tensor(offsets(self.heads), device=own.device).repeat_interleave(
            torch.tensor(self.heads, device=own.device)
        )
        V = gathered[:, 1].sum(0)
        behind = V
        for q in reversed(range(len(self.tables))):
            if q == self.rank:
                behind = V
            moved = V.gather(1, self.tables[q, :, :-1].long() + owner)
            V = gathered[q, 0] + torch.where(self.tables[q, :, -1:] == 1, torch.zeros_like(moved), moved)
        return behind, V


def exchanged_bytes(batch: int, heads: Sequence[int], ranks: int, width: int, element_size: int = 4) -> dict[str, int]:
    """Bytes that one rank sends in a training step, and what an affine scan h -> A h + b of state size S would send.

    A rank sends its own part to ranks - 1 others. A diagonal affine scan sends (A, b) forward and its adjoint backward,
    2 S numbers each; one with a full matrix S * S + S.
    """
    S, cell = sum(heads), cell_dtype(heads).itemsize
    others = ranks - 1
    return {
        "forward": others * (batch * (S + 1) * cell + 8),
        "backward": others * (2 * batch * S * element_size + 8),
        "affine diagonal forward": others * batch * 2 * S * element_size,
        "affine full forward": others * batch * (S * S + S) * element_size,
        "all rows of the input": others * batch * width * element_size,
    }


def _resolve(group: str) -> Any:
    return torch.distributed.distributed_c10d._resolve_process_group(group)  # type: ignore[arg-type]


def _all_gather(own: Tensor, group: str) -> Tensor:
    """W ...: the tensors of all ranks, which have one shape."""
    handle = _resolve(group)
    world = dist.get_world_size(handle)
    parts = [torch.empty_like(own) for _ in range(world)]
    dist.all_gather(parts, own.contiguous(), group=handle)
    traffic.bytes += (world - 1) * own.numel() * own.element_size()
    traffic.exchanges += 1
    return torch.stack(parts)

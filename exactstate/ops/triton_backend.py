"""The backends `triton` and `triton_dot`: GPU kernels, launched on tensors of any device that Triton knows.

    B  batch     L  length     N  local rows     G  segments     m  width     r  heads     S  indices     E  entries

`triton` computes logits in the order that defines them, without fused multiply-add: its tables have the bits of
`reference` and `cpu`. `triton_dot` sums them in the hardware's order with fused multiply-add, about twice as fast
where logits dominate; its tables may differ at near ties. The proof of `exactstate.extract` covers both: it allows
every order, fused or not. States, read-out and sums of gradients are the same code in both. Nothing uses
floating-point atomics, so every result is reproducible.

Scans work on blocks of 32 rows: one table is composed per block, blocks are scanned in the same way, and every block is
then walked from its start: depth 32 log(L) / log(32). `TRITON_INTERPRET=1` runs the kernels on the CPU, slowly.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from exactstate.ops.segments import (
    LENGTH,
    LOCAL,
    PADDING,
    ROW,
    LogitSource,
    Noise,
    batch_segments,
    refuse_infinite,
    rows_of,
    steps_of,
)
from exactstate.ops.tables import cell_dtype, entry_offsets, identity, offsets
from exactstate.ops.torch_kernels import TorchKernels, ordered_logits, step_of

STEPS = 32
"""Rows of a block of a scan."""
TILE = 2048
"""Logits that a program holds at a time: 16 registers of each of its 128 threads."""


def why_not() -> str | None:
    """The reason why Triton kernels cannot run here, or None."""
    if find_spec("triton") is None:
        return "triton is not installed; pip install triton"
    if interpreted() or torch.cuda.is_available():
        return None
    return "torch finds no GPU; TRITON_INTERPRET=1 in the environment runs the kernels slowly on the CPU"


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, which is decided when Triton is imported."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


@dataclass(frozen=True, slots=True)
class Metadata:
    """Sizes and offsets of heads, as the kernels read them."""

    columns: Tensor
    """S 3: the d, the first index and the first entry of every column."""
    sizes: Tensor
    """r 3: the d, the first index and the first entry of every head."""
    owner: Tensor
    """S: the first index of the head that owns each index."""
    owner_head: Tensor
    """S: that head."""

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, heads: tuple[int, ...], device: torch.device) -> Metadata:
        rows = list(zip(heads, offsets(heads), entry_offsets(heads), strict=True))
        columns = [(d, first, entry + k * d) for d, first, entry in rows for k in range(d)]
        owner_head = [h for h, d in enumerate(heads) for _ in range(d)]
        table = torch.tensor(columns, dtype=torch.int32, device=device)
        return cls(
            table, torch.tensor(rows, dtype=torch.int32, device=device), table[:, 1].contiguous(),
            torch.tensor(owner_head, dtype=torch.int32, device=device),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Blocks:
    """Segments cut into blocks of at most STEPS rows."""

    first: Tensor
    """The first row of every block."""
    count: Tensor
    """Its number of rows."""
    segment: Tensor
    """The segment that it belongs to."""
    is_first: Tensor
    """Whether its segment begins with it."""
    upper: tuple[Tensor, Tensor]
    """(first block, number of blocks) of every segment, on the CPU."""

    @classmethod
    def of(cls, first: Tensor, length: Tensor, device: torch.device) -> Blocks:
        """From the first row and the length of every segment, on the CPU."""
        blocks = (length + STEPS - 1) // STEPS
        begin = blocks.cumsum(0) - blocks
        segment = torch.arange(len(length)).repeat_interleave(blocks)
        number = torch.arange(len(segment)) - begin[segment]
        return cls(
            first=(first[segment] + number * STEPS).to(device),
            count=(length[segment] - number * STEPS).clamp(max=STEPS).to(device),
            segment=segment.to(device),
            is_first=(number == 0).to(device),
            upper=(begin, blocks),
        )

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_split(self) -> bool:
        """Whether any segment has more than one block."""
        return bool((self.upper[1] > 1).any())


def _power(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def _launch(name: str, grid: tuple[int, ...], *arguments: Any, warps: int = 4, **constants: int) -> None:
    """Launch a kernel of `triton_kernels` without fused multiply-add."""
    from exactstate.ops import triton_kernels

    if all(grid):
        options: dict[str, Any] = {} if interpreted() else {"enable_fp_fusion": False, "num_warps": warps}
        getattr(triton_kernels, name)[grid](*arguments, **constants, **options)


def _blocks_of(number: int, block: int) -> int:
    return -(-number // block)


# -- scans


def _walk(
    tables: Tensor, blocks: Blocks, lane_index: Tensor, starts: Tensor, out: Tensor, every: bool,
    table_rows: Tensor | None = None, out_rows: Tensor | None = None,
) -> None:  # fmt: skip
    lanes = len(lane_index)
    block = min(_power(lanes), 128)
    _launch(
        "walk", (len(blocks), _blocks_of(lanes, block)), tables, table_rows, lane_index, starts.contiguous(), out,
        out_rows, blocks.first, blocks.count, tables.shape[-1], lanes, warps=max(1, block // 32),
        BLOCK=block, EVERY=every,
    )  # fmt: skip


def _composites(tables: Tensor, blocks: Blocks, heads: Sequence[int], table_rows: Tensor | None = None) -> Tensor:
    """One table per block: blocks x S."""
    same = identity(heads, tables.dtype, tables.device).repeat(len(blocks), 1)
    out = torch.empty_like(same)
    _walk(tables, blocks, Metadata.of(tuple(heads), tables.device).owner, same, out, False, table_rows)
    return out


def _starts_of_blocks(
    tables: Tensor, blocks: Blocks, lane_index: Tensor, starts: Tensor, heads: Sequence[int],
    table_rows: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where the lanes of every block begin, from where those of its segment do (G lanes)."""
    own = starts[blocks.segment]
    if not blocks.is_split:
        return own
    composites = _composites(tables, blocks, heads, table_rows)
    upper = Blocks.of(*blocks.upper, tables.device)
    after = torch.empty(len(blocks), len(lane_index), dtype=starts.dtype, device=starts.device)
    _walk(composites, upper, lane_index, _starts_of_blocks(composites, upper, lane_index, starts, heads), after, True)
    return torch.where(blocks.is_first[:, None], own, after.roll(1, 0))


def _walk_segments(
    tables: Tensor, first: Tensor, length: Tensor, lane_index: Tensor, starts: Tensor, out: Tensor,
    heads: Sequence[int], table_rows: Tensor | None = None, out_rows: Tensor | None = None,
) -> None:  # fmt: skip
    blocks = Blocks.of(first, length, tables.device)
    begin = _starts_of_blocks(tables, blocks, lane_index, starts, heads, table_rows)
    _walk(tables, blocks, lane_index, begin, out, True, table_rows, out_rows)


def prefix(tables: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S -> B L S: at step t, the composite of the tables 0 .. t."""
    B, L, S = tables.shape
    out = torch.empty_like(tables).view(B * L, S)
    same = identity(heads, tables.dtype, tables.device).repeat(B, 1)
    first, length = _full(B, L)
    owner = Metadata.of(tuple(heads), tables.device).owner
    _walk_segments(tables.contiguous().view(B * L, S), first, length, owner, same, out, heads)
    return out.view(B, L, S)


def run(tables: Tensor, initial_state: Tensor, heads: Sequence[int]) -> Tensor:
    """B L S, B r -> B L r: the index of every head after every step."""
    B, L, S = tables.shape
    states = torch.empty(B * L, len(heads), dtype=tables.dtype, device=tables.device)
    trajectories(tables.contiguous().view(B * L, S), batch_segments(B, L), initial_state, states, heads)
    return states.view(B, L, len(heads))


def adjoint(tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
    """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)); see `reference.adjoint`."""
    B, L, S = tables.shape
    lam = gains.clone(memory_format=torch.contiguous_format)
    flat = tables.contiguous().view(B * L, S)
    return lam, adjoint_scan_(flat, lam.view(B * L, S), last, batch_segments(B, L), heads)


def _full(batch: int, length: int) -> tuple[Tensor, Tensor]:
    return torch.arange(batch) * length, torch.full((batch,), length)


def trajectories(
    tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
    row_index: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Write the states after every row of the segments; return the last ones: G r."""
    device = tables.device
    rows = rows_of(segments).to(device)
    table_rows = None if row_index is None else row_index[rows].contiguous()
    starts = starts.to(device).long()
    first_index = Metadata.of(tuple(heads), device).sizes[:, 1].contiguous()
    _walk_segments(
        tables, segments[:, LOCAL], segments[:, LENGTH], first_index, starts, states, heads, table_rows, rows
    )
    if not len(states):
        return starts.clone()
    ends = (segments[:, ROW] + segments[:, LENGTH] - 1).clamp(min=0).to(device)
    finals = torch.where((segments[:, LENGTH] > 0).to(device)[:, None], states[ends].long(), starts)
    padding = segments[:, PADDING]
    if bool(padding.any()):
        begin = segments[:, ROW] + segments[:, LENGTH] - (padding.cumsum(0) - padding)
        held = (begin.repeat_interleave(padding) + torch.arange(int(padding.sum()))).to(device)
        states[held] = finals[torch.arange(len(segments)).repeat_interleave(padding).to(device)].to(states.dtype)
    return finals


def _adjoint(
    tables: Tensor, gains: Tensor, ahead: Tensor, blocks: Blocks, owner: Tensor, *, of_blocks: bool, every: bool
) -> Tensor:  # fmt: skip
    """The adjoint of every block from what is ahead of it (blocks x S); returns what is ahead before it."""
    S = gains.shape[-1]
    before = torch.empty_like(ahead)
    block = _power(S)
    _launch(
        "adjoint", (len(blocks),), tables, owner, gains, ahead.contiguous(), before, blocks.first, blocks.count, S,
        warps=min(8, max(1, block // 64)), BLOCK=block, OF_BLOCKS=of_blocks, EVERY=every,
    )  # fmt: skip
    return before


def _adjoint_scan(
    tables: Tensor, gains: Tensor, lasts: Tensor, blocks: Blocks, heads: Sequence[int], *, of_blocks: bool
) -> Tensor:  # fmt: skip
    """Replace gains by what `adjoint` of the kernels stores; returns what is ahead before every block."""
    owner = Metadata.of(tuple(heads), tables.device).owner
    ahead = lasts[blocks.segment]
    if blocks.is_split:
        none = torch.zeros_like(ahead)
        above = _adjoint(tables, gains, none, blocks, owner, of_blocks=of_blocks, every=False)
        upper = Blocks.of(*blocks.upper, tables.device)
        _adjoint_scan(_composites(tables, blocks, heads), above, lasts, upper, heads, of_blocks=True)
        ahead = above
    return _adjoint(tables, gains, ahead, blocks, owner, of_blocks=of_blocks, every=True)


def adjoint_scan_(tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]) -> Tensor:
    """Turn gains (N S) into lambda, in place; return lambda before the first row of every segment: G S."""
    blocks = Blocks.of(segments[:, LOCAL], segments[:, LENGTH], gains.device)
    firsts = lasts.clone(memory_format=torch.contiguous_format)
    before = _adjoint_scan(tables, gains, lasts, blocks, heads, of_blocks=False)
    firsts[blocks.segment[blocks.is_first]] = before[blocks.is_first]
    return firsts


# -- the pass of a layer


@dataclass(frozen=True, slots=True)
class TritonKernels:
    """The kernels of `exactstate.ops.interface` on a GPU."""

    ordered: bool
    """Whether logits of tables are summed in the order that defines them."""

    def logits(self, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out = torch.empty(len(rows), len(weight), dtype=weight.dtype, device=weight.device)
        grid = _blocks_of(len(rows), 32), _blocks_of(len(weight), 128)
        _launch(
            "logits", grid, rows.contiguous(), weight.T.contiguous(), bias.contiguous(), out, len(rows), rows.shape[1],
            len(weight), BLOCK_N=32, BLOCK_E=128,
        )  # fmt: skip
        return out

    def repeated_rows(self, rows: Tensor) -> None:
        """A GPU computes every row: to look for equal ones would take a pass of its own."""

    def tables(self, source: LogitSource, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
        device, N, S = source.weight.device, int(segments[:, LENGTH].sum()), sum(heads)
        rows = rows_of(segments).to(device)
        made = torch.empty(N, S, dtype=cell_dtype(heads), device=device)
        bad = torch.full((1,), N, dtype=torch.int64, device=device)
        block_j = min(_power(max(heads)), 256)
        block_n = max(16, min(32, TILE // block_j))
        block_s = max(1, TILE // (block_n * block_j))
        _launch(
            "tables", (_blocks_of(N, block_n), _blocks_of(S, block_s)), *_source(source), rows,
            Metadata.of(tuple(heads), device).columns,
            *_noise(noise, noise.temperature if noise else 1.0, segments, source), made, bad, N,
            source.weight.shape[1], S, len(source.weight), LARGEST=max(heads), BLOCK_N=block_n, BLOCK_S=block_s,
            BLOCK_J=block_j, ORDERED=self.ordered,
        )  # fmt: skip
        first_bad = int(bad)
        refuse_infinite(int(rows[first_bad]) if first_bad < N else -1)
        return made

    @staticmethod
    def trajectories(
        tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
        row_index: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        return trajectories(tables, segments, starts, states, heads, row_index)

    def argmax_trajectories(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        return trajectories(self.tables(source, segments, heads, None), segments, starts, states, heads)

    @staticmethod
    def project_values(values: Tensor, weight: Tensor, heads: Sequence[int]) -> Tensor:
        (S, v), m = values.shape, len(weight)
        vectors = torch.empty(S, m, dtype=values.dtype, device=values.device)
        meta = Metadata.of(tuple(heads), values.device)
        _launch(
            "project_values", (_blocks_of(S, 16), _blocks_of(m, 64)), values, weight, meta.sizes, meta.owner_head,
            vectors, S, v, m, len(heads), BLOCK_S=16, BLOCK_M=64,
        )  # fmt: skip
        return vectors

    @staticmethod
    def read_out(vectors: Tensor, bias: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        N, m = len(states), vectors.shape[1]
        output = torch.empty(N, m, dtype=vectors.dtype, device=vectors.device)
        sizes = Metadata.of(tuple(heads), vectors.device).sizes
        _launch(
            "read_out", (_blocks_of(N, 32), _blocks_of(m, 64)), vectors, bias, states.contiguous(), sizes, output, N, m,
            len(heads), BLOCK_N=32, BLOCK_M=64,
        )  # fmt: skip
        return output

    def step(
        self, rows: Tensor, weight: Tensor, bias: Tensor, values: Tensor, out_weight: Tensor, out_bias: Tensor,
        starts: Tensor, heads: Sequence[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return step_of(self, rows, weight, bias, values, out_weight, out_bias, starts, heads)

    @staticmethod
    def zeros(like: Tensor, *shape: int) -> Tensor:
        return like.new_zeros(shape)

    @staticmethod
    def index_gains(output_grad: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
        return output_grad[rows_of(segments).to(output_grad.device)] @ vectors.T

    @staticmethod
    def adjoint_scan_(
        tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        return adjoint_scan_(tables, gains, lasts, segments, heads)

    def surrogate_backward_(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, lam: Tensor, heads: Sequence[int],
        noise: Noise | None, temperature: float, gradients: tuple[Tensor | None, Tensor | None, Tensor],
    ) -> None:  # fmt: skip
        device, (N, S), r, m = lam.device, lam.shape, len(heads), source.weight.shape[1]
        rows, meta = rows_of(segments).to(device), Metadata.of(tuple(heads), lam.device)
        used = _used_columns(segments, starts, states, rows)
        block_j = _power(max(heads))
        block_n = max(1, min(64, 1024 // block_j))
        _launch(
            "surrogate", (_blocks_of(N, block_n), r), *_source(source), rows, meta.sizes,
            *_noise(noise, temperature, segments, source), used, lam, N, m, S, len(source.weight), r, BLOCK_N=block_n,
            BLOCK_J=block_j,
        )  # fmt: skip
        grad_rows, grad_weight, grad_bias = gradients
        if source.index is not None:
            entries = meta.columns[(used + meta.sizes[:, 1]).repeat_interleave(meta.sizes[:, 0], 1), 2].long()
            within = torch.arange(S, device=device) - meta.owner
            places = source.index[rows][:, None] * grad_bias.shape[1] + entries + within
            grad_bias.view(-1).index_put_((places.view(-1),), lam.view(-1), accumulate=True)  # sorts: reproducible
            return
        assert grad_weight is not None
        order, bounds = _grouped(used, meta)
        block_j = max(16, min(64, block_j))
        _launch(
            "grad_weight", (S, _blocks_of(m, 64), _blocks_of(max(heads), block_j)), source.input, rows, order, bounds,
            meta.columns, lam, grad_weight, grad_bias, m, S, N, BLOCK_N=32, BLOCK_J=block_j, BLOCK_M=64,
        )  # fmt: skip
        if grad_rows is not None:
            _launch(
                "grad_input", (_blocks_of(N, 32), _blocks_of(m, 64)), source.weight, rows, meta.sizes, used, lam,
                grad_rows, N, m, S, r, BLOCK_N=32, BLOCK_M=64,
            )  # fmt: skip

    @staticmethod
    def read_out_backward(output_grad: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        S, m = sum(heads), output_grad.shape[1]
        order, bounds = _grouped(states.long(), Metadata.of(tuple(heads), states.device))
        vectors_grad = torch.empty(S, m, dtype=output_grad.dtype, device=output_grad.device)
        _launch(
            "read_out_backward", (S, _blocks_of(m, 64)), output_grad, order, bounds, vectors_grad, m, BLOCK_N=32,
            BLOCK_M=64,
        )  # fmt: skip
        return vectors_grad

    @staticmethod
    def project_values_backward(
        vectors_grad: Tensor, values: Tensor, weight: Tensor, heads: Sequence[int]
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        return _PLAIN.project_values_backward(vectors_grad, values, weight, heads)


_PLAIN = TorchKernels(None, ordered_logits)
ORDERED, DOT = TritonKernels(ordered=True), TritonKernels(ordered=False)


def _source(source: LogitSource) -> tuple[Tensor | None, ...]:
    """(input, weight transposed, bias, logits of distinct rows, index): the first three or the last two are None."""
    if source.index is not None:
        return None, None, None, source.logits, source.index
    return source.input, source.weight.T.contiguous(), source.bias, None, None


def _noise(noise: Noise | None, temperature: float, segments: Tensor, source: LogitSource) -> tuple[Tensor | None, ...]:
    """(seed or None, 1 / temperature, sequence and step of every row); scalars in memory keep their type."""
    like = source.bias
    scale = torch.full((1,), 1.0 / temperature, dtype=like.dtype, device=like.device)
    if noise is None:
        return None, scale, None, None
    signed = noise.bits - (1 << 64) if noise.bits >= 1 << 63 else noise.bits
    seed = torch.full((1,), signed, dtype=torch.int64, device=like.device)
    sequence, step = (part.to(like.device).contiguous() for part in steps_of(segments))
    return seed, scale, sequence, step


def _used_columns(segments: Tensor, starts: Tensor, states: Tensor, rows: Tensor) -> Tensor:
    """N r: the index of every head before every local row."""
    used = states[(rows - 1).clamp(min=0)].long()
    is_read = segments[:, LENGTH] > 0
    used[segments[:, LOCAL][is_read].to(used.device)] = starts.to(used.device)[is_read.to(used.device)].long()
    return used.contiguous()


def _grouped(indices: Tensor, meta: Metadata) -> tuple[Tensor, Tensor]:
    """(order, bounds): rows sorted by the index of each head, head after head, and where the group of each of the S
    indices begins; S + 1 bounds."""
    keys = (indices + meta.sizes[:, 1]).T.contiguous()  # r N, each in 0 .. S - 1
    order = keys.argsort(dim=1, stable=True)
    counts = torch.bincount(keys.flatten(), minlength=len(meta.owner))
    return order.contiguous(), torch.nn.functional.pad(counts.cumsum(0), (1, 0))

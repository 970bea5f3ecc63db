"""The pass without noise in plain PyTorch operations, for exporters to formats that know no custom operator.

    B  batch     L  length     N  rows     m  width     r  heads     d  indices of a head     S  the sum of the ds

`torch.onnx.export(dynamo=True)` records these: a Scan over the features computes the logits in the order that defines
them, and a Scan over the steps gathers integer states. So the states are those of the backend; on `tree`, whose logits
are one matrix product, they are one here too.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from exactstate.errors import InvalidInput
from exactstate.ops.tables import entry_offsets, offsets

if TYPE_CHECKING:
    from exactstate.ops.nfsm_op import NfsmCall


def plain_eval(call: NfsmCall) -> tuple[Tensor, Tensor]:
    """What `exactstate::nfsm_eval` returns."""
    from torch._higher_order_ops.scan import scan

    if call.cu_seqlens is not None or call.group:
        raise InvalidInput("an exported graph takes padded batches: give lengths, not cu_seqlens or a process group.")
    heads, device = tuple(call.heads), call.input.device
    begins = torch.cat([torch.full((1,), at, device=device) for at in offsets(heads)])
    tables = _tables(call, heads).view(*call.rows, sum(heads))  # entries are places among the S indices
    if call.resets is not None:
        firsts = zip(heads, offsets(heads), call.initial_state, strict=True)
        initial = torch.cat([torch.full((d,), at + k, device=device) for d, at, k in firsts])
        tables = torch.where(call.resets[..., None], tables[..., initial], tables)  # all go where the initial one does
    if call.lengths is not None:
        mask = call.lengths
        if mask.dtype != torch.bool:
            mask = torch.arange(call.rows[1], device=device) < mask[:, None]
        tables = torch.where(mask[..., None], tables, torch.arange(sum(heads), device=device))
    final, states = scan(_step, call.start + begins, tables.transpose(0, 1).contiguous())
    states, shares = states.transpose(0, 1), call.out_weight.split(call.values.shape[1], 1)
    nothing = torch.zeros_like(call.out_bias)
    vectors = [
        plain_linear(part, share, nothing, call.backend)
        for part, share in zip(call.values.split(list(heads)), shares, strict=True)
    ]
    flat_vectors, output = torch.cat(vectors), call.out_bias.expand(*call.rows, -1)
    for h in range(len(heads)):
        output = output + flat_vectors[states[..., h]]
    return output, final - begins


def plain_linear(rows: Tensor, weight: Tensor, bias: Tensor, backend: str) -> Tensor:
    """What `exactstate::ordered_linear` returns."""
    if backend in ("tree", "triton_dot"):
        return torch.nn.functional.linear(rows, weight, bias)
    from torch._higher_order_ops.scan import scan

    total: Tensor = scan(_add_feature, bias.expand(rows.shape[0], -1).clone(), (rows.T, weight.T))[0]
    return total


def _step(state: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    after = table.gather(1, state)
    return after, after.clone()


def _add_feature(total: Tensor, feature: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    of_rows, of_weight = feature
    total = total + of_rows[:, None] * of_weight
    return total, total[:0, 0].clone()  # a scan has an output for every step: an empty one


def _tables(call: NfsmCall, heads: tuple[int, ...]) -> Tensor:
    rows = call.input.reshape(prod(call.input.shape[:-1]), call.input.shape[-1])
    logits = plain_linear(rows, call.weight, call.bias, call.backend)
    columns = [
        logits[:, at : at + d * d].view(-1, d, d).argmax(-1) + first
        for d, at, first in zip(heads, entry_offsets(heads), offsets(heads), strict=True)
    ]
    tables = torch.cat(columns, 1)
    return tables if call.row_index is None else tables[call.row_index.reshape(-1)]

"""Floating-point operations of the operators, for `torch.utils.flop_counter.FlopCounterMode`.

Counted as PyTorch counts a matrix product, two for each multiplication and addition, for a call in which no row
repeats. Gathers and compositions of tables are integers and count nothing.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import torch

from exactstate.ops.nfsm_op import _SAVED, NfsmCall


def count_flops() -> None:
    """Give the formulas to the counters that are active: their module loads Triton, so it is not imported here."""
    counter = sys.modules.get("torch.utils.flop_counter")
    if counter is None:
        return
    counter.flop_registry.update(_FORMULAS)
    for mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack():
        if isinstance(mode, counter._FlopCounterMode):
            mode.counter.flop_registry.update(_FORMULAS)


def _eval_flops(*flat: Any, out_val: Any = None) -> int:
    return _pass(NfsmCall(*flat), only_used_columns=flat[-2] == "cpu")


def _forward_flops(*flat: Any, out_val: Any = None) -> int:
    return _pass(NfsmCall(*flat), only_used_columns=False)


def _pass(call: NfsmCall, *, only_used_columns: bool) -> int:
    S, v, m = *call.values.shape, len(call.out_bias)
    rows, entries = prod(call.input.shape[:-1]), len(call.bias)
    if only_used_columns and call.row_index is None:
        entries = S
    return 2 * rows * entries * call.input.shape[-1] + 2 * S * v * m + prod(call.rows) * len(call.heads) * m


def _backward_flops(*arguments: Any, out_val: Any = None) -> int:
    saved = _SAVED.count(",") + 1
    call, wants_input = NfsmCall(*arguments[saved:]), arguments[saved - 1]
    S, v, m, width = *call.values.shape, len(call.out_bias), call.input.shape[-1]
    rows, used = prod(call.rows), 2 * prod(call.rows) * S * width
    gains, vectors = 2 * rows * S * m + rows * S, rows * len(call.heads) * m + 4 * S * v * m
    return gains + vectors + used * (3 if wants_input else 2)  # logits of used columns again, weight, input


def _linear_flops(rows: Any, weight: Any, *rest: Any, out_val: Any = None) -> int:
    return 2 * len(rows) * prod(weight.shape)


_FORMULAS = {
    torch.ops.exactstate.nfsm_eval: _eval_flops,
    torch.ops.exactstate.nfsm_forward: _forward_flops,
    torch.ops.exactstate.nfsm_backward: _backward_flops,
    torch.ops.exactstate.ordered_linear: _linear_flops,
}

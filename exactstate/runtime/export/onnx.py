"""A machine as an ONNX model: a Scan over time whose body is two Gathers. Needs the package onnx.

    symbols  B L   int64   symbol numbers
    state    B     int64   where each word starts: the start state, or the end of the word before it
    ->
    outputs  B L   int64   the output at every symbol
    states   B L   int64   the state after every symbol
    end      B     int64   the state at the end

Names of symbols, states and outputs are metadata of the model, as JSON.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.errors import BackendUnavailable
from exactstate.runtime.machine import Machine

OPSET, IR_VERSION = 17, 8


def to_onnx(machine: Machine) -> bytes:
    """The machine as a serialized model."""
    onnx = _onnx()
    helper, kind = onnx.helper, onnx.TensorProto.INT64

    def tensor(name: str, values: Ints | list[int]) -> Any:
        return onnx.numpy_helper.from_array(np.asarray(values, np.int64).reshape(-1), name)

    def value(name: str, *shape: str) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Mul", ["symbol", "states_in_all"], ["row"]),
            helper.make_node("Add", ["row", "state_before"], ["place"]),
            helper.make_node("Gather", ["next", "place"], ["state_after"]),
            helper.make_node("Gather", ["readout", "place"], ["output"]),
            helper.make_node("Identity", ["state_after"], ["state_seen"]),
        ],
        "step",
        [value("state_before", "B"), value("symbol", "B")],
        [value("state_after", "B"), value("output", "B"), value("state_seen", "B")],
    )
    scan = helper.make_node(
        "Scan", ["state", "symbols"], ["end", "outputs", "states"],
        body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1, 1],
    )  # fmt: skip
    graph = helper.make_graph(
        [scan],
        "machine",
        [value("symbols", "B", "L"), value("state", "B")],
        [value("outputs", "B", "L"), value("states", "B", "L"), value("end", "B")],
        initializer=[
            tensor("next", machine.automaton.tables), tensor("readout", machine.readout),
            tensor("states_in_all", [machine.n_states]),
        ],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="exactstate")
    model.ir_version = IR_VERSION
    names = {"symbols": machine.symbols, "states": machine.states, "outputs": machine.output_names}
    helper.set_model_props(model, {"start": str(machine.start), **{key: json.dumps(v) for key, v in names.items()}})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _onnx() -> Any:
    try:
        return import_module("onnx")
    except ImportError:
        raise BackendUnavailable("onnx is not installed; pip install onnx.") from None

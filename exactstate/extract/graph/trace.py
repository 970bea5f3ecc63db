"""Trace a model that contains NFSM layers into a `Graph`, or say by the name of a module why that is not possible.

`torch.export` records the operations of the model for a batch and a length that stay symbols, so that what holds of the
recorded graph holds at every length. NFSM layers are recorded as single operations. `lower.py` then follows every
tensor through the graph and keeps track of its axes: which is the batch, which are the steps, which are features.
"""

from __future__ import annotations

import copy
import logging
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from exactstate.errors import InvalidInput
from exactstate.extract.graph.lower import LAYER_OP, STATE_OP, Lowering, Refused
from exactstate.extract.graph.nodes import Graph
from exactstate.nn import NFSM

WAY_OUT = "Give an `Adapter` with the parts that are finite-state, or replace the module."
BATCH, LENGTH = 3, 7
"""Sizes of the example; unusual, so that no other size of a model is mistaken for them."""


@torch.library.custom_op("exactstate_extract::nfsm", mutates_args=())
def _layer(x: Tensor, layer: int) -> Tensor:
    raise NotImplementedError  # traced, never run


@_layer.register_fake
def _(x: Tensor, layer: int) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("exactstate_extract::state", mutates_args=())
def _state(x: Tensor, layer: int, heads: int) -> Tensor:
    raise NotImplementedError


@_state.register_fake
def _(x: Tensor, layer: int, heads: int) -> Tensor:
    return x.new_empty((x.shape[0], heads), dtype=torch.int64)


class Traced:
    """A model and its graph: `evaluate` runs it with the outputs of the NFSM layers given."""

    def __init__(self, model: nn.Module, vector_width: int | None) -> None:
        self.layer_names = {name: module for name, module in model.named_modules() if isinstance(module, NFSM)}
        self.modules = list(self.layer_names.values())
        if not self.modules:
            raise InvalidInput(
                f"{type(model).__name__} contains no NFSM layer, so there are no tables to extract; "
                "put a exactstate.NFSM into it."
            )
        self.vector = vector_width is not None
        self.program = _export(model, self.layer_names, vector_width)
        self.constants = _constants(self.program)
        self.graph = self._lowered()

    def _lowered(self) -> Graph:
        lowering = Lowering(self.constants, list(self.layer_names), self.modules, vector=self.vector)
        try:
            return lowering.run(self.program.graph)
        except Refused as refused:
            raise InvalidInput(f"{refused} {WAY_OUT}") from None

    def evaluate(self, inputs: Tensor, outputs: Mapping[int, Tensor], upto: int) -> Tensor:
        """The argument of the layer call `upto` (R L m), or the logits where `upto` is the number of calls.

        `inputs` are tokens (R L) or vectors (R L m); `outputs` has the outputs of the calls before (R L m).
        """
        env: dict[Any, Any] = {}
        call = 0
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                env[node] = self.constants.get(node.name, inputs)
            elif node.op == "output":
                return env[_first_tensor(node.args[0])]
            else:
                args = torch.fx.map_arg(node.args, env.__getitem__)
                if str(node.target) == LAYER_OP:
                    if call == upto:
                        return args[0]
                    env[node], call = outputs[call], call + 1
                elif str(node.target) != STATE_OP:
                    env[node] = node.target(*args, **torch.fx.map_arg(node.kwargs, env.__getitem__))
                else:
                    env[node] = torch.zeros(())
        raise AssertionError("a graph without an output")


def prepared(model: nn.Module, format: str) -> nn.Module:
    """A copy on the CPU, in evaluation mode and in a format; raises where a model cannot be traced at all."""
    model = unwrapped(model)
    check_model(model)
    try:
        return copy.deepcopy(model).to("cpu", getattr(torch, format)).eval()
    except (RuntimeError, NotImplementedError) as error:
        raise InvalidInput(f"{type(model).__name__} cannot be copied to the CPU as {format}: {_short(error)}") from None


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside `torch.compile` or a data-parallel wrapper."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
            inner = getattr(model, "module", None)
        if inner is None:
            return model
        model = inner


def check_model(model: nn.Module) -> None:
    """Raise the error for a model that can not be read: training mode, quantized, scripted, without numbers."""
    if isinstance(model, torch.jit.ScriptModule):
        raise InvalidInput("a scripted model cannot be traced; pass the nn.Module that it was made from.")
    for name, module in model.named_modules():
        if ".quantized" in type(module).__module__:
            raise InvalidInput(
                f"module {name!r} ({type(module).__name__}) is quantized: its scale is chosen from the whole batch, so "
                "a step depends on other steps. Extract the model before quantization."
            )
    if model.training:
        raise InvalidInput(
            f"{type(model).__name__} is in training mode, where dropout and norms differ; call model.eval() first."
        )
    for name, module in model.named_modules():
        if module.training:
            raise InvalidInput(f"module {name!r} is in training mode; call model.eval() first.")
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.device.type == "meta":
            raise InvalidInput(f"{name!r} is on the device 'meta' and has no numbers; load the weights first.")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InvalidInput(f"{name!r} is not finite everywhere; such weights describe no machine.")
        if tensor.is_complex():
            raise InvalidInput(f"{name!r} is complex; bounds and margins are for real numbers.")


def _export(model: nn.Module, layers: Mapping[str, NFSM], vector_width: int | None) -> torch.export.ExportedProgram:
    dtype = next(iter(layers.values())).weight.dtype
    example = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    if vector_width is not None:
        example = torch.zeros(BATCH, LENGTH, vector_width, dtype=dtype)
    auto = torch.export.Dim.AUTO
    with _recorded(layers), _quiet(), torch.no_grad():
        try:
            program = torch.export.export(
                model, (example,), strict=False,
                dynamic_shapes=({0: auto, 1: auto, **({2: None} if vector_width is not None else {})},),
            )  # fmt: skip
            operations = [str(node.target).split(".") for node in program.graph.nodes if node.op == "call_function"]
            in_place = any(parts[0] == "aten" and parts[1].endswith("_") for parts in operations)
            return program.run_decompositions({}) if in_place else program
        except InvalidInput:
            raise
        except Exception as error:  # torch.export raises whatever the code of the model raises
            raise InvalidInput(
                f"{type(model).__name__} could not be traced for every length: {_short(error)} "
                "Is there a loop over the steps or a branch on values? Give an `Adapter` instead."
            ) from error


@contextmanager
def _recorded(layers: Mapping[str, NFSM]) -> Iterator[None]:
    """Inside, calling an NFSM layer records one operation."""
    for number, (name, module) in enumerate(layers.items()):
        module.forward = types.MethodType(_recording(number, name), module)  # type: ignore[method-assign]
        for method in ("step", "states", "one_hot_states", "tables", "logits"):
            setattr(module, method, _refusing(name, method))
    try:
        yield
    finally:
        for module in layers.values():
            for method in ("forward", "step", "states", "one_hot_states", "tables", "logits"):
                del module.__dict__[method]


def _recording(number: int, name: str) -> Callable[..., tuple[Tensor, Tensor]]:
    def forward(self: NFSM, x: Any, state: Any = None, **options: Any) -> tuple[Tensor, Tensor]:
        given = [key for key, value in {"state": state, **options}.items() if value is not None and value is not False]
        if given or not isinstance(x, Tensor):
            raise InvalidInput(
                f"NFSM layer {name!r} is called with {', '.join(given) or 'rows and an index'}; to be extracted, the "
                "model must call it with its input alone, from the initial state."
            )
        if x.ndim != 3:
            raise InvalidInput(f"NFSM layer {name!r} reads B L m; the model gives it {x.ndim} dimensions.")
        return torch.ops.exactstate_extract.nfsm(x, number), torch.ops.exactstate_extract.state(
            x, number, len(self.heads)
        )

    return forward


def _refusing(name: str, method: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        raise InvalidInput(
            f"the model calls `{method}` of NFSM layer {name!r}; to be extracted, it must call the layer itself."
        )

    return refuse


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log and warnings of torch.export: errors are reported in a sentence."""
    loggers = [logging.getLogger(name) for name in ("torch.export", "torch.fx", "torch._export", "torch")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _constants(program: torch.export.ExportedProgram) -> dict[str, Tensor]:
    """Parameters, buffers and constants by the name of their placeholder."""
    constants = {}
    for spec in program.graph_signature.input_specs:
        if spec.target is not None and hasattr(spec.arg, "name"):
            tensor = program.state_dict.get(spec.target, program.constants.get(spec.target))
            if isinstance(tensor, Tensor):
                constants[spec.arg.name] = tensor.detach()
    return constants


def _first_tensor(outputs: Any) -> Any:
    """The logits, where a model returns several things."""
    while isinstance(outputs, list | tuple):
        outputs = outputs[0]
    return outputs


def _short(error: BaseException) -> str:
    """The first sentence of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return (text if len(text) < 200 else text[:197] + "...").rstrip(".") + "."

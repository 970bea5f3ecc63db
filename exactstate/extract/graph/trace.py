"""Trace a model that contains NFSM layers into a `Graph`, or say by the name of a module why that is not possible.

`torch.export` records the operations of the model for a batch and a length that stay symbols, so that what holds of the
recorded graph holds at every length. NFSM layers are recorded as single operations. `lower.py` then follows every
tensor through the graph and keeps track of its axes: which is the batch, which are the steps, which are features.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from exactstate.errors import InvalidInput
from exactstate.extract.graph.lower import LAYER_OP, STATE_OP, VALUES_OP, Lowering, Refused
from exactstate.extract.graph.nodes import Graph
from exactstate.nn import NFSM
from exactstate.nn.wrapped import has_hooks, is_plain, own_class

WAY_OUT = "Give an `Adapter` with the parts that are finite-state, or replace the module."
BATCH, LENGTH = 3, 7
"""Sizes of the example; unusual, so that no other size of a model is mistaken for them."""


@torch.library.custom_op("exactstate_extract::nfsm", mutates_args=())
def _layer(x: Tensor, layer: int) -> Tensor:
    raise NotImplementedError  # traced, never run


@_layer.register_fake
def _(x: Tensor, layer: int) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("exactstate_extract::values", mutates_args=())
def _values(x: Tensor, layer: int, width: int) -> Tensor:
    raise NotImplementedError


@_values.register_fake
def _(x: Tensor, layer: int, width: int) -> Tensor:
    return x.new_empty((*x.shape[:2], width))


@torch.library.custom_op("exactstate_extract::state", mutates_args=())
def _state(x: Tensor, layer: int, heads: int) -> Tensor:
    raise NotImplementedError


@_state.register_fake
def _(x: Tensor, layer: int, heads: int) -> Tensor:
    return x.new_empty((x.shape[0], heads), dtype=torch.int64)


class Traced:
    """A model and its graph: `evaluate` runs it with the outputs of the NFSM layers given."""

    def __init__(self, model: nn.Module, vector_width: int | None, symbols: int, own: torch.dtype) -> None:
        """`own` is the type of the model's numbers before it was copied to the format of the extraction."""
        self.layer_names = {name: module for name, module in model.named_modules() if isinstance(module, NFSM)}
        self.modules, self.symbols = list(self.layer_names.values()), symbols
        if not self.modules:
            raise InvalidInput(
                f"{type(model).__name__} contains no NFSM layer, so there are no tables to extract; "
                "put a exactstate.NFSM into it."
            )
        self.vector = vector_width is not None
        self.program, recorded = _export(model, self.layer_names, vector_width)
        self.constants = _constants(self.program)
        _write_out_epsilons(self.program, own)
        self.logits = _logits_of(self.program, type(model).__name__)
        self.graph = self._lowered()
        _refuse_guards(recorded, type(model).__name__)

    def _lowered(self) -> Graph:
        names = list(self.layer_names)
        lowering = Lowering(self.constants, names, self.modules, self.symbols, vector=self.vector)
        try:
            return lowering.run(self.program.graph, self.logits)
        except Refused as refused:
            raise InvalidInput(f"{refused} {WAY_OUT}") from None

    def digest(self, held: hashlib._Hash) -> None:
        """Add every operation with its arguments, and all numbers in the program that are no parameters."""
        number: dict[Any, str] = {}
        for node in self.program.graph.nodes:
            number[node] = f"%{len(number)}"
            args = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda arg: _Name(number[arg]))
            held.update(f"{number[node]} {node.op} {'' if node.op == 'placeholder' else node.target} {args}\n".encode())
            if node.name in self.constants:
                tensor = self.constants[node.name].detach().to("cpu").contiguous()
                shape = "x".join(map(str, tensor.shape))
                held.update(f"{str(tensor.dtype).removeprefix('torch.')} {shape}\n".encode())
                held.update(tensor.to(torch.float64).numpy().astype("<f8").tobytes())
        held.update(f"logits {number[self.logits]}\n".encode())

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
                return env[self.logits]
            else:
                args = torch.fx.map_arg(node.args, env.__getitem__)
                if str(node.target) in (LAYER_OP, VALUES_OP):
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
    # not imported, which takes a second: where it is not loaded, no model is compiled
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    while True:
        if compiler is not None and isinstance(model, compiler.OptimizedModule):
            inner: nn.Module = model._orig_mod
        elif type(model) in (nn.DataParallel, nn.parallel.DistributedDataParallel):
            inner = model.module  # type: ignore[assignment]
        else:
            return model
        if has_hooks(model):
            raise InvalidInput(f"{type(model).__name__} has hooks; attach them to the model that it wraps.")
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
    for name, module in model.named_modules():
        if isinstance(module, NFSM):
            changed = own_class(module, NFSM)
            if changed is not None:
                raise InvalidInput(
                    f"NFSM layer {name!r} ({type(module).__name__}) has a `{changed}` of its own, so its tables do "
                    "not say what it computes; put the change into a module around the layer."
                )
            if module.mix_proj is not None and not is_plain(module.mix_proj):
                raise InvalidInput(
                    f"{name}.mix_proj is a {type(module.mix_proj).__name__} or has hooks, and its weights are read; "
                    "merge or remove it first (peft: `model.merge_and_unload()`, hooks: `handle.remove()`)."
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


def _export(
    model: nn.Module, layers: Mapping[str, NFSM], vector_width: int | None
) -> tuple[torch.export.ExportedProgram, torch.export.ExportedProgram]:
    """The program, without operations that write into their arguments, and as it was recorded."""
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
            writes = [
                node for node in program.graph.nodes if getattr(getattr(node.target, "_schema", None), "is_mutable", 0)
            ]
            return (program.run_decompositions({}) if writes else program), program
        except InvalidInput:
            raise
        except Exception as error:  # torch.export raises whatever the code of the model raises
            raise InvalidInput(
                f"{type(model).__name__} could not be traced for every length: {_short(error)} "
                "Is there a loop over the steps or a branch on values? Give an `Adapter` instead."
            ) from error


SHORT = 4
"""What was traced may exclude sizes up to this one: all short words are run (see `exactstate.extract.verify`)."""


def _refuse_guards(program: torch.export.ExportedProgram, name: str) -> None:
    """Raise where tracing followed one branch: it left a condition on the length or the batch size."""
    from torch.utils._sympy.numbers import int_oo

    for guard in program._guards_code or []:
        if not _holds(guard):
            plain = re.sub(r"L\['\w+'\]\.size\(\)\[0\]", "the batch size", guard)
            plain = re.sub(r"L\['\w+'\]\.size\(\)\[1\]", "the length", plain)
            raise InvalidInput(
                f"{name} branches on the length or the batch size: what was traced holds only where {plain}. {WAY_OUT}"
            )
    for limits in program.range_constraints.values():
        if limits.upper is not int_oo or limits.lower > SHORT:
            raise InvalidInput(
                f"{name} works for lengths and batch sizes from {limits.lower} to {limits.upper} only. {WAY_OUT}"
            )


def _holds(guard: str) -> bool:
    """Whether a condition that `torch.export` wrote down holds for all sizes above `SHORT`."""
    import sympy  # type: ignore[import-untyped]

    sizes: dict[str, sympy.Expr] = {}

    def size(match: re.Match[str]) -> str:
        name = f"size_{match[1]}"
        sizes[name] = 1 + SHORT + sympy.Symbol(name, integer=True, nonnegative=True)
        return name

    text = re.sub(r"L\['\w+'\]\.size\(\)\[(\d)\]", size, guard)
    sides = re.split(r"(==|!=|<=|>=|<|>)", text.replace("min(", "Min(").replace("max(", "Max("))
    if len(sides) != 3 or not re.fullmatch(r"[\w\s+*\-/%(),]+", sides[0] + sides[2]):
        return False
    known = {**sizes, "__builtins__": {}, "Min": sympy.Min, "Max": sympy.Max}
    try:
        left, right = (eval(side, known) for side in (sides[0], sides[2]))
        apart = sympy.simplify(left - right)
        proved = {
            "==": apart.is_zero, "!=": apart.is_nonzero, "<=": apart.is_nonpositive, ">=": apart.is_nonnegative,
            "<": apart.is_negative, ">": apart.is_positive,
        }  # fmt: skip
    except Exception:  # what is not understood does not always hold
        return False
    return proved[sides[1]] is True


def _write_out_epsilons(program: torch.export.ExportedProgram, own: torch.dtype) -> None:
    """An RMS norm without an epsilon adds that of its type: that of the model, and not that of the extraction."""
    for node in program.graph.nodes:
        if str(node.target) == "aten.rms_norm.default" and (len(node.args) < 4 or node.args[3] is None):
            epsilon = torch.finfo(torch.float64 if own == torch.float64 else torch.float32).eps
            node.args = (*node.args[:2], node.args[2] if len(node.args) > 2 else node.kwargs.get("weight"), epsilon)
            node.kwargs = {}
            node.meta["epsilon by default"] = True


class _Name(str):
    """Printed as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def _logits_of(program: torch.export.ExportedProgram, model: str) -> Any:
    """The recorded logits: the result, what is called `logits` in it, or its only tensor of numbers per step."""
    (outputs,) = next(node for node in program.graph.nodes if node.op == "output").args
    assert isinstance(outputs, list | tuple)
    kept = list(outputs)[len(outputs) - program.call_spec.out_spec.num_leaves :]
    return find_logits(torch.utils._pytree.tree_unflatten(kept, program.call_spec.out_spec), model)


def find_logits(outputs: Any, model: str) -> Any:
    """The logits among what a model returns, of tensors or of the nodes that were recorded for them."""
    if isinstance(outputs, Tensor | torch.fx.Node):
        return outputs
    if isinstance(outputs, Mapping) and "logits" in outputs:
        return outputs["logits"]
    if hasattr(outputs, "logits"):
        return outputs.logits
    if isinstance(outputs, list | tuple):
        tensors = [part.meta["val"] if isinstance(part, torch.fx.Node) else part for part in outputs]
        found = [
            part for part, tensor in zip(outputs, tensors, strict=True)
            if isinstance(tensor, Tensor) and tensor.is_floating_point() and tensor.ndim == 3
        ]  # fmt: skip
        if len(found) == 1:
            return found[0]
    raise InvalidInput(
        f"which of its results are the logits of {model}? It gives {type(outputs).__name__}: return the logits alone, "
        "call them `logits`, or let them be the only floating-point tensor of shape B L labels."
    )


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
        state = torch.ops.exactstate_extract.state(x, number, len(self.heads))
        if is_plain(self.out_proj):
            return torch.ops.exactstate_extract.nfsm(x, number), state
        values = torch.ops.exactstate_extract.values(x, number, self.value_width * len(self.heads))
        return self.out_proj(values), state  # an adapter, a hook: traced like any other operations

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


def _short(error: BaseException) -> str:
    """The first sentence of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return (text if len(text) < 200 else text[:197] + "...").rstrip(".") + "."

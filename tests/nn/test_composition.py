"""What the layer composes with: tracers, exporters, counters, tensors without numbers, transforms of torch.func.

`ROWS` is the table of docs/composition.md: every row runs here, and the page has exactly these rows.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from exactstate.errors import InvalidInput
from exactstate.nn import NFSM

PAGE = Path(__file__).parents[2] / "docs" / "composition.md"
DYNAMIC, AUTO = torch.export.Dim.DYNAMIC, torch.export.Dim.AUTO


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated tracers, and of exporters about packages that are not there
        yield


def layer_of(**more: Any) -> NFSM:
    return NFSM(16, (4, 3), generator=torch.Generator().manual_seed(4), **more)


def rows_of(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, 16, generator=torch.Generator().manual_seed(seed))


def same(got: Any, want: Any) -> bool:
    return all(torch.equal(one, other) for one, other in zip(got, want, strict=True))


# -- programs that outlive the call


def traced(grad: bool, training: bool) -> bool:
    layer = layer_of().train(training)
    with torch.set_grad_enabled(grad):
        program = torch.jit.trace(layer, (rows_of(2, 9),))
    return all(same(program(x), layer(x)) for x in (rows_of(2, 9, seed=2), rows_of(3, 40, seed=3)))


def jit_trace() -> bool:
    return all(traced(grad, training) for grad in (False, True) for training in (False, True))


def jit_trace_step() -> bool:
    layer = layer_of().eval().requires_grad_(False)
    with torch.no_grad():
        program = torch.jit.trace(
            lambda x, state: layer.step(x, state), (rows_of(2), torch.zeros(2, 2, dtype=torch.int64))
        )
        x, state = rows_of(2, seed=2), torch.tensor([[1, 2], [3, 0]])
        return same(program(x, state), layer.step(x, state))


def onnx_torchscript() -> bool:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory = layer_of()

        def forward(self, x: Tensor) -> Tensor:
            return self.memory(x)[0]

    torch.onnx.export(Model().eval(), (rows_of(2, 9),), io.BytesIO(), dynamo=False)
    return True


def export() -> bool:
    """Whatever the mode of gradients: sizes stay symbols, and the program gives what the layer gives."""
    cases: list[tuple[dict[str, Any], bool, bool, Any]] = [
        ({}, training, grad, AUTO) for training in (False, True) for grad in (False, True)
    ]
    for more, training, grad, hint in [*cases, ({"dictionary": 5, "gate": True}, False, True, DYNAMIC)]:
        layer = layer_of(**more).train(training)
        with torch.set_grad_enabled(grad):
            program = torch.export.export(layer, (rows_of(2, 9),), dynamic_shapes=({0: hint, 1: hint},))
        for x in (rows_of(2, 9, seed=2), rows_of(3, 40, seed=3)):
            if not same(program.module()(x), layer(x)):
                return False
    return True


def compile_lengths() -> bool:
    """One compilation for every length, in training too."""
    graphs = []

    def count(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph

    layer = layer_of().train()
    torch._dynamo.reset()
    program = torch.compile(layer, backend=count, dynamic=True, fullgraph=True)
    same_everywhere = all(same(program(rows_of(2, length)), layer(rows_of(2, length))) for length in (9, 12, 40))
    return same_everywhere and len(graphs) == 1


class WithState(nn.Module):
    def __init__(self, memory: NFSM) -> None:
        super().__init__()
        self.memory = memory

    def forward(self, x: Tensor, state: Tensor, lengths: Tensor, resets: Tensor) -> tuple[Tensor, Tensor]:
        return self.memory(x, state, lengths=lengths, resets=resets)


def onnx_of(more: dict[str, Any]) -> bool:
    """The same states in onnxruntime, for every batch and length, from a state that is given."""
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = WithState(layer_of(**more)).eval()
    example = rows_of(2, 9), torch.zeros(2, 2, dtype=torch.int64), torch.tensor([9, 4]), torch.zeros(2, 9).bool()
    both = {0: DYNAMIC, 1: DYNAMIC}
    program = torch.onnx.export(
        model, example, dynamo=True, dynamic_shapes=(both, {0: DYNAMIC}, {0: DYNAMIC}, both),
        input_names=["x", "state", "lengths", "resets"], verbose=False,
    )  # fmt: skip
    file = io.BytesIO()
    program.save(file)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file.getvalue(), options)
    draw = torch.Generator().manual_seed(5)
    for batch, length in ((2, 9), (3, 17), (1, 1), (4, 600)):
        x, resets = rows_of(batch, length, seed=length), torch.rand(batch, length, generator=draw) < 0.1
        state = torch.randint(0, 3, (batch, 2), generator=draw)
        lengths = torch.randint(0, length + 1, (batch,), generator=draw)
        want, want_state = model(x, state, lengths, resets)
        given = dict(zip(("x", "state", "lengths", "resets"), (x, state, lengths, resets), strict=True))
        got, got_state = session.run(None, {name: part.numpy() for name, part in given.items()})
        if not np.array_equal(got_state, want_state.numpy()):
            return False
        exact = "gate" not in more  # SiLU is another function in onnxruntime, to the last bits
        if not np.allclose(got, want.detach().numpy(), rtol=0, atol=0 if exact else 1e-5):
            return False
    return True


def onnx_dynamo() -> bool:
    return onnx_of({}) and onnx_of({"gate": True, "dictionary": 5, "initial_state": (1, 2)})


# -- shapes without numbers, and counting


def meta() -> bool:
    layer = layer_of().to("meta")
    x = torch.empty(2, 9, 16, device="meta")
    y, state = layer(x)
    y.sum().backward()
    with torch.no_grad():
        stepped = layer.step(x[:, 0], state)[0]
    back = layer.to_empty(device="cpu")
    with torch.device("meta"):
        built = NFSM(16, (4, 3))
    return (
        (y.shape, state.shape, stepped.shape) == ((2, 9, 16), (2, 2), (2, 16))
        and layer.weight.is_meta is False and back.backend == layer_of().backend and built.weight.is_meta
    )  # fmt: skip


def fake() -> bool:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        layer, x = NFSM(16, (4, 3)), torch.empty(2, 9, 16)
        y, state = layer(x)
        y.sum().backward()
        with torch.no_grad():
            stepped = layer.step(x[:, 0], state)[0]
    return (y.shape, state.shape, stepped.shape) == ((2, 9, 16), (2, 2), (2, 16))


def flops() -> bool:
    m, S, E, r, v, N = 16, 7, 25, 2, 8, 18
    layer, x = layer_of(backend="tree"), rows_of(2, 9)
    with FlopCounterMode(display=False) as forward:
        layer(x)
    with FlopCounterMode(display=False) as evaluation, torch.no_grad():
        layer.eval()(x)
    once = 2 * N * E * m + 2 * S * v * m + N * r * m
    return (
        forward.get_total_flops() == evaluation.get_total_flops() == once
        and _both_passes(layer, x) == once + 2 * N * S * m + N * S + N * r * m + 4 * S * v * m + 2 * 2 * N * S * m
    )  # fmt: skip


def _both_passes(layer: NFSM, x: Tensor) -> int:
    with FlopCounterMode(display=False) as counter:
        layer.train()(x)[0].sum().backward()
    return counter.get_total_flops()


# -- derivatives and batching


def vmap() -> bool:
    layer, many = layer_of(), rows_of(3, 2, 9)
    one_by_one = torch.stack([layer(x)[0] for x in many])
    with torch.no_grad():
        evaluated = torch.func.vmap(lambda x: layer(x)[0], in_dims=1, out_dims=1)(many.transpose(0, 1))
    return torch.equal(torch.func.vmap(lambda x: layer(x)[0])(many), one_by_one) and torch.equal(
        evaluated.transpose(0, 1), one_by_one
    )


def per_sample_gradients() -> bool:
    layer, x = layer_of(), rows_of(3, 9)

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(layer, parameters, (x[None],))[0].square().sum()

    parameters = dict(layer.named_parameters())
    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    for i, row in enumerate(x):
        want = torch.autograd.grad(loss(parameters, row), list(parameters.values()))
        if not all(torch.equal(found[name][i], one) for name, one in zip(parameters, want, strict=True)):
            return False
    return True


def ensemble() -> bool:
    layers, x = [NFSM(16, (4, 3), dictionary=5) for _ in range(3)], rows_of(2, 9)
    parameters, _ = torch.func.stack_module_state(layers)  # type: ignore[arg-type]
    found = torch.func.vmap(lambda p: torch.func.functional_call(layers[0], p, (x,))[0])(parameters)
    return torch.equal(found, torch.stack([layer(x)[0] for layer in layers]))


def jacrev() -> bool:
    layer, x = layer_of(), rows_of(1, 3)
    found = torch.func.jacrev(lambda x: layer(x)[0].sum(-1))(x)
    one = torch.autograd.grad(layer(x.requires_grad_())[0].sum(-1)[0, 2], x)[0]
    return torch.equal(found[0, 2], one)


def double_backward() -> bool:
    x = rows_of(2, 9).requires_grad_()
    gradient = torch.autograd.grad(layer_of()(x)[0].square().sum(), x, create_graph=True)[0]
    gradient.square().sum().backward()
    return True


def jvp() -> bool:
    x = rows_of(2, 9)
    torch.func.jvp(lambda x: layer_of()(x)[0], (x,), (x,))
    return True


def dual_numbers() -> bool:
    """With frozen weights, where no gradient in reverse mode is asked for."""
    with forward_ad.dual_level():
        layer_of().requires_grad_(False)(forward_ad.make_dual(rows_of(2, 9), rows_of(2, 9)))
    return True


YES, NO = "yes", "no"
ROWS: dict[str, tuple[Callable[[], bool], str]] = {
    "`torch.compile(dynamic=True)`, one graph for all lengths": (compile_lengths, YES),
    "`torch.export`, batch and length dynamic": (export, YES),
    "`torch.onnx.export(dynamo=True)`, batch and length dynamic": (onnx_dynamo, YES),
    "`torch.onnx.export(dynamo=False)`": (onnx_torchscript, "pass dynamo=True"),
    "`torch.jit.trace` of a call": (jit_trace, YES),
    "`torch.jit.trace` of a step": (jit_trace_step, YES),
    "`torch.device('meta')`": (meta, YES),
    "`FakeTensorMode`": (fake, YES),
    "`FlopCounterMode`": (flops, YES),
    "`torch.func.vmap`": (vmap, YES),
    "`torch.func`, gradients of every sample": (per_sample_gradients, YES),
    "`torch.func.stack_module_state`": (ensemble, YES),
    "`torch.func.jacrev`": (jacrev, YES),
    "double backward, `torch.func.hessian`": (double_backward, "has no derivative of its own"),
    "`torch.func.jvp`, `jacfwd`": (jvp, "is defined in reverse mode only"),
    "`torch.autograd.forward_ad`": (dual_numbers, "is defined in reverse mode only"),
}


@pytest.mark.parametrize("row", ROWS)
def test_layer_composes_with(row: str) -> None:
    function, expected = ROWS[row]
    if expected == YES:
        assert function()
    else:
        with pytest.raises(InvalidInput, match=expected):
            function()


def test_page_has_the_rows_that_run() -> None:
    cells = re.findall(r"^\| (.+?) \| (yes|no) \|", PAGE.read_text(), re.MULTILINE)
    assert [(name, word) for name, word in cells] == [
        (name, YES if expected == YES else NO) for name, (_, expected) in ROWS.items()
    ]


def test_tables_are_not_recorded() -> None:
    with pytest.raises(InvalidInput, match="tables are read from a layer with numbers"), torch.no_grad():
        torch.jit.trace(lambda x: layer_of().tables(x), (rows_of(2, 9),))


def test_weights_begin_as_always_where_calls_are_counted() -> None:
    with FlopCounterMode(display=False):
        layer = layer_of()
    assert torch.equal(layer.weight, layer_of().weight)

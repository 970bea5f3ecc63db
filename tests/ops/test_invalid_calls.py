"""Wrong calls of the operators end in a sentence, never in the kernels: those get addresses and trust them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

import exactstate.baselines.aussm
import exactstate.baselines.mamba  # noqa: F401  (each adds its kernel)
from exactstate import ops
from exactstate.baselines import blocks, pdssm
from exactstate.baselines.blocks import recur
from exactstate.baselines.memory_units import memory_scan
from exactstate.baselines.pdssm import choose
from exactstate.errors import InvalidInput, UnknownName
from exactstate.nn import NFSM
from exactstate.ops import nfsm_op
from exactstate.ops.nfsm_op import NfsmCall, forward_eval, forward_sampled
from exactstate.ops.ordered_linear import ordered_linear

HEADS = (3, 2)
TABLES = torch.tensor([0, 1, 2, 1, 0], dtype=torch.uint8).expand(2, 4, 5).contiguous()
BACKENDS = ("reference", "tree", "cpu")


def gains(dtype: torch.dtype = torch.float32, shape: tuple[int, ...] = (2, 4, 5)) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"gains": gains(torch.float16), "last": gains(torch.float16, (2, 5))}, "gains are float32 or float64; got"),
        ({"gains": gains(torch.int64)}, "gains are float32 or float64; got torch.int64"),
        ({"last": gains(shape=(1, 5))}, r"last is torch.float32 of shape \(2, 5\), as the gains are; got .*\(1, 5\)"),
        ({"last": gains(shape=(2, 4))}, r"last is .* of shape \(2, 5\)"),
        ({"last": gains(torch.float64, (2, 5))}, "last is torch.float32 of shape"),
        ({"gains": gains(shape=(2, 3, 5))}, r"gains have the shape of the tables, \(2, 4, 5\); got \(2, 3, 5\)"),
        ({"heads": (3, 3)}, "tables for heads"),
        ({"heads": ()}, "heads are one or more sizes"),
        ({"heads": (6, -1)}, "heads are one or more sizes"),
        ({"heads": (2.5, 2.5)}, "heads are one or more sizes"),
        ({"tables": TABLES.float()}, "tables hold integers"),
        ({"tables": [[0, 1]]}, "tables are a torch tensor; got list"),
        ({"last": None}, "last is a torch tensor; got NoneType"),
    ],
)  # fmt: skip
def test_adjoint_of_wrong_arguments(backend: str, changed: dict[str, Any], sentence: str) -> None:
    call: dict[str, Any] = {"tables": TABLES, "gains": gains(), "last": gains(shape=(2, 5)), "heads": HEADS, **changed}
    with pytest.raises(InvalidInput, match=sentence):
        ops.adjoint(**call, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_adjoint_of_strided_arguments(backend: str) -> None:
    """Views with strides of their own are right arguments."""
    wide = torch.arange(80, dtype=torch.float64).view(2, 4, 10)
    last = torch.arange(20, dtype=torch.float64).view(2, 10)
    got = ops.adjoint(TABLES, wide[..., ::2], last[:, ::2], HEADS, backend=backend)
    want = ops.adjoint(TABLES, wide[..., ::2].clone(), last[:, ::2].clone(), HEADS, backend="reference")
    assert all(torch.allclose(one, other) for one, other in zip(got, want, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_run_and_prefix_of_wrong_arguments(backend: str) -> None:
    with pytest.raises(InvalidInput, match="states are integers"):
        ops.run(TABLES, torch.zeros(2, 2), HEADS, backend=backend)
    with pytest.raises(InvalidInput, match="initial_state is a torch tensor; got float"):
        ops.run(TABLES, 1.5, HEADS, backend=backend)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the state of sequence 1, head 0 is 3"):
        ops.run(TABLES, torch.tensor([[0, 0], [3, 0]]), HEADS, backend=backend)
    with pytest.raises(InvalidInput, match=r"tables\[0, 0, 0\] is 7"):
        ops.prefix(TABLES + 7, HEADS, backend=backend)
    with pytest.raises(InvalidInput, match="tables hold integers"):
        ops.prefix(TABLES.bool(), HEADS, backend=backend)
    assert ops.prefix(TABLES[:, :0], HEADS, backend=backend).shape == (2, 0, 5)
    assert ops.run(TABLES[:0], torch.zeros(0, 2, dtype=torch.long), HEADS, backend=backend).shape == (0, 4, 2)


def test_compose_of_wrong_arguments() -> None:
    first = torch.tensor([0, 1, 2, 1, 0])
    with pytest.raises(InvalidInput, match="the tables to compose are integers of one shape"):
        ops.compose(first, first[:3])
    with pytest.raises(InvalidInput, match="the tables to compose are integers of one shape"):
        ops.compose(first.float(), first)
    with pytest.raises(InvalidInput, match=r"5 indices in a row; heads .* have 4"):
        ops.compose(first, first, (2, 2))
    with pytest.raises(InvalidInput, match="an entry of the first table is 1"):
        ops.compose(first, first, (1, 1, 2, 1))
    with pytest.raises(InvalidInput, match="heads are one or more sizes"):
        ops.identity((3, 0))


def test_ordered_linear_of_wrong_arguments() -> None:
    rows, weight, bias = torch.ones(4, 3), torch.ones(5, 3), torch.ones(5)
    for wrong in (
        (rows, torch.ones(5, 4), bias), (rows, weight, torch.ones(4)), (rows[0], weight, bias),
        (rows.double(), weight, bias), (rows, weight, bias.double()), (rows, weight.long(), bias.long()),
    ):  # fmt: skip
        for backend in BACKENDS:
            with pytest.raises(InvalidInput, match="rows, weight and bias are floating point of one type"):
                ordered_linear(*wrong, backend)


def test_memory_scan_of_wrong_arguments() -> None:
    z, start = torch.ones(2, 4, 3), torch.zeros(2, 3)
    for wrong in (
        (z, z[:, :3], start, None, 5, 2), (z, z, start[:1], None, 5, 2), (z, z, start, None, 1, 0),
        (z, z, start, None, 5, 5), (z, z, start, torch.zeros(2, 3, dtype=torch.bool), 5, 2),
        (z * 3, z, start, None, 5, 2), (z, z, start + 9, None, 5, 2), (z[0], z[0], start, None, 5, 2),
    ):  # fmt: skip
        for backend in BACKENDS:
            with pytest.raises(InvalidInput, match="memory_scan"):
                memory_scan(*wrong, backend)


def a_call() -> NfsmCall:
    layer = NFSM(4, HEADS)
    return layer._call(torch.randn(2, 6, 4), None, None, None, None, 1, layer._readout_params)


@pytest.mark.parametrize(
    "changed",
    [
        {"weight": torch.ones(13, 5)}, {"weight": torch.ones(12, 4)}, {"bias": torch.ones(12)},
        {"values": torch.ones(4, 2)}, {"out_weight": torch.ones(4, 5)}, {"out_bias": torch.ones(5)},
        {"input": torch.ones(2, 6, 3)}, {"input": torch.ones(2, 6, 4, dtype=torch.float64)},
        {"resets": torch.zeros(2, 5, dtype=torch.bool)}, {"resets": torch.zeros(2, 6)},
        {"carry": torch.ones(2, 4)}, {"heads": (3, 0)}, {"heads": (3,)}, {"initial_state": (0, 2)},
        {"initial_state": (0,)}, {"temperature": 0.0}, {"lengths": torch.tensor([3])},
        {"start": torch.zeros(2, 3, dtype=torch.long)},
    ],
)  # fmt: skip
def test_nfsm_operators_of_wrong_arguments(changed: dict[str, Any]) -> None:
    call = a_call()._replace(**changed)
    with pytest.raises(InvalidInput):
        forward_sampled(call)
    with pytest.raises(InvalidInput):
        forward_eval(call)
    with pytest.raises(InvalidInput):
        torch.ops.exactstate.nfsm_eval(*call)


def saved_by_forward(call: NfsmCall) -> dict[str, Any]:
    """The arguments of `nfsm_backward` that the forward pass of a call gives."""
    output, finals, states, tables, vectors, exchanged = torch.ops.exactstate.nfsm_forward(*call)
    return {
        "output_grad": torch.ones_like(output), "finals_grad": torch.zeros_like(finals), "states": states,
        "tables": tables, "vectors": vectors, "exchanged": exchanged, "wants_input": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("output_grad", lambda x: x[:, :5]), ("output_grad", lambda x: x[..., :3]), ("output_grad", lambda x: x.half()),
        ("output_grad", lambda x: x[:0]),
        ("finals_grad", lambda x: x[:1]), ("finals_grad", lambda x: x.long()), ("finals_grad", lambda x: x[:, :4]),
        ("states", lambda x: x[:-1]), ("states", lambda x: x.float()), ("states", lambda x: x + 3),
        ("states", lambda x: x[:, :1]), ("tables", lambda x: x[:-1]), ("tables", lambda x: x + 200),
        ("tables", lambda x: x.long()), ("tables", lambda x: x[:0]), ("vectors", lambda x: x[:-1]),
        ("vectors", lambda x: x.double()),
    ],
)  # fmt: skip
def test_nfsm_backward_of_wrong_arguments(name: str, change: Any) -> None:
    call = a_call()
    saved = saved_by_forward(call)
    assert len(torch.ops.exactstate.nfsm_backward(*saved.values(), *call)) == 7
    saved[name] = change(saved[name])
    with pytest.raises(InvalidInput, match=f"^{name} "):
        torch.ops.exactstate.nfsm_backward(*saved.values(), *call)


def test_nfsm_backward_of_a_wrong_call() -> None:
    call = a_call()
    saved = saved_by_forward(call)
    for wrong in ({"weight": torch.ones(13, 5)}, {"heads": (3, -2)}, {"input": torch.ones(2, 6, 3)}):
        with pytest.raises(InvalidInput):
            torch.ops.exactstate.nfsm_backward(*saved.values(), *call._replace(**wrong))


def test_recur_of_wrong_arguments() -> None:
    streams, start = [torch.ones(2, 6, 4), torch.ones(2, 6, 4)], torch.zeros(2, 4, 3)
    for wrong, sentence in (
        (("lstm", streams, [], start, True), "unknown kernel 'lstm'"),
        (("mamba", [], [], start, True), "streams are one or more tensors of shape B L"),
        (("mamba", [streams[0], streams[1][:, :5]], [], start, True), "streams are one or more"),
        (("mamba", [streams[0], streams[1][:1]], [], start, True), "streams are one or more"),
        (("mamba", [streams[0][0]], [], start, True), "streams are one or more"),
        (("mamba", streams, [], start[:1], True), "start has one state for each of 2 sequences"),
        (("mamba", streams, [], start[0, 0], True), "start has one state"),
        (("mamba", streams, [], start.double(), True), "of one floating-point type and device"),
        (("mamba", [x.long() for x in streams], [], start.long(), True), "of one floating-point type"),
    ):  # fmt: skip
        with pytest.raises((InvalidInput, UnknownName), match=sentence):
            recur(*wrong)


def test_choose_of_wrong_arguments() -> None:
    mixtures, dictionary = torch.rand(5, 3), torch.rand(4, 4, 3)
    assert choose(mixtures, dictionary).shape == (5, 4)
    assert choose(mixtures[:0], dictionary).shape == (0, 4)
    for wrong in (
        (mixtures[:, :2], dictionary), (mixtures[0], dictionary), (mixtures, dictionary[:3]),
        (mixtures, dictionary[:0, :0]), (mixtures.double(), dictionary), (mixtures.long(), dictionary.long()),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="mixtures and dictionary are floating point of one type"):
            choose(*wrong)


def test_operators_of_tensors_on_two_devices() -> None:
    """Called without the dispatcher, which would take a tensor on `meta` for tracing."""
    with pytest.raises(InvalidInput, match=r"of one floating-point type and device; got .*cpu.*meta"):
        blocks._recur("mamba", [torch.ones(2, 6, 4)], [], torch.zeros(2, 4, 3, device="meta"), True)
    with pytest.raises(InvalidInput, match=r"mixtures and dictionary are .* of one type and device.*meta"):
        pdssm._choose(torch.rand(5, 3), torch.rand(4, 4, 3, device="meta"))
    call = a_call()
    saved = saved_by_forward(call)
    saved["output_grad"] = saved["output_grad"].to("meta")
    with pytest.raises(InvalidInput, match="output_grad is on meta, and the input on cpu"):
        nfsm_op._checked_backward(*saved.values(), *call)


def test_adjoint_of_half_precision_does_not_crash() -> None:
    """In a process of its own: this was a segmentation fault."""
    program = """
import torch
from exactstate import ops
tables = torch.zeros(4, 64, 8, dtype=torch.uint8)
for gains, last in ((torch.ones(4, 64, 8).half(), torch.ones(4, 8).half()), (torch.ones(4, 64, 8), torch.ones(1, 1))):
    try:
        ops.adjoint(tables, gains, last, (8,), backend="cpu")
    except ValueError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2), done.stderr

"""Backends by name, and kernels of every backend against their definitions."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import Tensor

from exactstate import native
from exactstate.errors import BackendUnavailable, InvalidInput, UnknownName
from exactstate.ops import available, interface, resolve
from exactstate.ops.interface import Kernels, Scan, kernels, scan
from exactstate.ops.segments import padded_segments, rows_of, windows
from exactstate.ops.torch_kernels import project_values
from tests.conftest import backends_under_test

HEADS = (4, 1, 3)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_available_lists_every_backend_under_test() -> None:
    assert set(available()) == set(backends_under_test())


def test_resolve_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = interface.Backend(interface.scan("cpu"), interface.kernels("cpu"), lambda: "nothing was compiled")
    monkeypatch.setitem(interface._BACKENDS, "cpu", backend)
    assert (resolve("auto"), resolve("tree"), available()) == ("tree", "tree", ("reference", "tree"))
    message = "backend 'cpu' cannot be used: nothing was compiled; or pass backend='tree'."
    with pytest.raises(BackendUnavailable, match=message):
        resolve("cpu")


def test_resolve_auto_is_the_fastest() -> None:
    assert resolve("auto") == ("cpu" if native.available() else "tree")


def test_resolve_refuses_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match=r"'treee'.*auto, reference, tree, cpu"):
        resolve("treee")


@pytest.mark.parametrize("backend", backends_under_test())
@pytest.mark.parametrize(("protocol", "get"), [(Scan, scan), (Kernels, kernels)], ids=["scan", "kernels"])
def test_backends_have_the_signatures_of_the_protocols(protocol: type, get: object, backend: str) -> None:
    """What mypy checks, at run time: names, order and defaults of the arguments."""
    for name, wanted in vars(protocol).items():
        if inspect.isfunction(wanted) and not name.startswith("_"):
            expected = list(inspect.signature(wanted).parameters.values())[1:]
            given = list(inspect.signature(getattr(get(backend), name)).parameters.values())  # type: ignore[operator]
            assert [(p.name, p.kind, p.default) for p in given] == [(p.name, p.kind, p.default) for p in expected], name


@pytest.mark.parametrize("backend", backends_under_test())
def test_project_values_by_the_columns_of_each_head(backend: str) -> None:
    values, weight = draw(8, 5), draw(7, 15, seed=1)
    concatenated = torch.block_diag(*values.split(HEADS))  # S x (r v): an index's value stands in its head's columns
    for vectors in (kernels(backend).project_values(values, weight, HEADS), project_values(values, weight, HEADS)):
        assert torch.allclose(vectors, concatenated @ weight.T, atol=1e-12)


def test_project_values_of_cpu_and_reference_are_equal_to_the_last_bit() -> None:
    values, weight = draw(8, 5, dtype=torch.float32), draw(7, 15, seed=1, dtype=torch.float32)
    compiled, defined = (kernels(name).project_values(values, weight, HEADS) for name in ("cpu", "reference"))
    assert torch.equal(compiled, defined)


@pytest.mark.parametrize("backend", backends_under_test())
def test_project_values_backward_is_autograds(backend: str) -> None:
    values, weight = draw(8, 5).requires_grad_(), draw(7, 15, seed=1).requires_grad_()
    vectors_grad = draw(8, 7, seed=2)
    concatenated = torch.block_diag(*values.split(HEADS))
    wanted = torch.autograd.grad((concatenated @ weight.T * vectors_grad).sum(), (values, weight))
    grads = kernels(backend).project_values_backward(vectors_grad, values.detach(), weight.detach(), HEADS)
    for ours, theirs in zip(grads, wanted, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("backend", backends_under_test())
def test_read_out_adds_the_vectors_head_by_head(backend: str) -> None:
    values, weight, bias = draw(8, 5), draw(7, 15, seed=1), draw(7, seed=2)
    states = torch.tensor([[3, 0, 2], [0, 0, 0], [1, 0, 1]])
    ops = kernels(backend)
    vectors = ops.project_values(values, weight, HEADS)
    output = ops.read_out(vectors, bias, states, HEADS)
    wanted = bias + vectors[states[:, 0]] + vectors[4 + states[:, 1]] + vectors[5 + states[:, 2]]
    assert torch.equal(output, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("batch", "width", "heads"),
    [(1, 64, (12,) * 3), (2, 7, HEADS), (37, 13, (12, 5, 1)), (300, 16, (3, 17, 40)), (0, 4, (2,))],
)
def test_step_is_a_pass_of_one_step_to_the_last_bit(
    batch: int, width: int, heads: tuple[int, ...], dtype: torch.dtype
) -> None:
    entries, indices, v = sum(d * d for d in heads), sum(heads), 3
    shapes = (batch, width), (entries, width), (entries,), (indices, v), (9, len(heads) * v), (9,)
    rows, *weights = (draw(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes))
    generator = torch.Generator().manual_seed(1)
    starts = torch.stack([torch.randint(d, (batch,), generator=generator) for d in heads], 1)
    results = [kernels(name).step(rows, *weights, starts, heads) for name in ("reference", "cpu")]
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    assert batch < 2 or len({tuple(row) for row in results[0][1].tolist()}) > 1  # not one state for all
    if batch > 1:
        odd, beyond = rows.clone(), starts.clone()
        odd[[1, -1]], beyond[1, 0] = float("nan"), heads[0]
        with pytest.raises(InvalidInput, match="row 1 of the input gives NaN"):
            kernels("cpu").step(odd, *weights, starts, heads)
        with pytest.raises(InvalidInput, match="the state of sequence 1, head 0 is"):
            kernels("cpu").step(rows, *weights, beyond, heads)


@pytest.mark.parametrize("backend", backends_under_test())
@pytest.mark.parametrize("lengths", [[9, 4, 0, 7], [0, 0], [40, 33, 1]])
def test_index_gains_of_the_rows_that_are_read(backend: str, lengths: list[int]) -> None:
    segments = padded_segments(torch.tensor(lengths), 40)
    output_grad, vectors = draw(40 * len(lengths), 7, seed=1), draw(8, 7, seed=2)
    for window in windows(segments, 16):
        wanted = torch.einsum("nm,sm->ns", output_grad[rows_of(window)], vectors)
        assert torch.allclose(kernels(backend).index_gains(output_grad, vectors, window), wanted, atol=1e-12)

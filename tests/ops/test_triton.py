"""The backends `triton` and `triton_dot`: in Triton's interpreter against `reference`, and compiled for four GPUs.

No GPU is needed. The interpreter executes the kernels with NumPy, one rounding per operation; that a GPU gives the same
bits follows for the ordered sums from the compiled code, which has no fused multiply-add (`test_compile_...`).
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from exactstate.errors import BackendUnavailable, InvalidInput
from exactstate.nn import NFSM
from exactstate.ops import reference, resolve, triton_backend
from exactstate.ops.gumbel import gumbel
from exactstate.ops.interface import kernels, scan
from exactstate.ops.segments import LogitSource, Noise, batch_segments, padded_segments, rows_of, steps_of


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton kernels run on CPU tensors; blocks of four rows, so that few rows need several levels of the scan."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(triton_backend, "STEPS", 4)
    monkeypatch.setattr(triton_backend, "TILE", 1 << 14)  # fewer, larger programs: their number is what takes time


def draw_tables(B: int, L: int, heads: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    return torch.cat([torch.randint(0, d, (B, L, d), generator=generator) for d in heads], dim=-1).to(dtype)


def draw_states(B: int, heads: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.stack([torch.randint(0, d, (B,), generator=generator) for d in heads], dim=1)


# -- scans


@pytest.mark.usefixtures("interpreter", "poisoned")
@pytest.mark.parametrize(
    ("L", "heads"),
    [(0, (5,)), (1, (33, 2)), (4, (5,)), (5, (4, 1, 3)), (17, (12, 12)), (18, (300, 2)), (66, (4, 1, 3))],
)
def test_triton_prefix_and_run_are_the_reference(L: int, heads: tuple[int, ...], generator: torch.Generator) -> None:
    dtype = torch.int16 if max(heads) > 256 else torch.uint8
    tables, start = draw_tables(2, L, heads, generator, dtype), draw_states(2, heads, generator)
    assert torch.equal(scan("triton").run(tables, start, heads), reference.run(tables, start, heads))
    if L < 18:
        assert torch.equal(scan("triton").prefix(tables, heads), reference.prefix(tables, heads))


@pytest.mark.usefixtures("interpreter")
def test_triton_run_notices_one_wrong_entry(generator: torch.Generator) -> None:
    tables = draw_tables(1, 20, (5,), generator, torch.int64)
    start = torch.zeros(1, 1, dtype=torch.int64)
    wanted = reference.run(tables, start, (5,))
    used = int(wanted[0, 8, 0])
    tables[0, 9, used] = (tables[0, 9, used] + 1) % 5
    found = scan("triton").run(tables, start, (5,))
    assert torch.equal(found[:, :9], wanted[:, :9])
    assert not torch.equal(found, wanted)


# float64 sums of at most 18 terms of order one, taken in another order
ADJOINT_TOLERANCE = 1e-12


@pytest.mark.usefixtures("interpreter", "poisoned")
@pytest.mark.parametrize(("L", "heads"), [(0, (5,)), (1, (4, 1, 3)), (5, (33, 2)), (18, (4, 1, 3)), (16, (12, 12))])
def test_triton_adjoint_is_the_reference(L: int, heads: tuple[int, ...], generator: torch.Generator) -> None:
    tables = draw_tables(2, L, heads, generator, torch.uint8)
    gains = torch.randn(2, L, sum(heads), dtype=torch.float64, generator=generator)
    last = torch.randn(2, sum(heads), dtype=torch.float64, generator=generator)
    found, wanted = (scan(name).adjoint(tables, gains, last, heads) for name in ("triton", "reference"))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, atol=ADJOINT_TOLERANCE, rtol=0)


# -- kernels of the layer


def draw_source(
    heads: tuple[int, ...], rows: int, width: int, dtype: torch.dtype, generator: torch.Generator
) -> LogitSource:
    E = sum(d * d for d in heads)
    parts = [torch.randn(*shape, dtype=dtype, generator=generator) for shape in ((rows, width), (E, width), (E,))]
    return LogitSource(*parts)


@pytest.mark.usefixtures("interpreter", "poisoned")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("heads", [(5,), (4, 1, 3), (12, 12), (33, 2)], ids=str)
@pytest.mark.parametrize("seed", [None, -1])
def test_triton_tables_are_the_reference_to_the_last_bit(
    seed: int | None, heads: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> None:
    source = draw_source(heads, 3 * 12, 7, dtype, generator)
    segments = padded_segments(torch.tensor([12, 0, 5]), 12)
    segments[:, 3] += 2**40  # sequences and steps beyond 32 bits
    segments[:, 4] += 2**33
    noise = None if seed is None else Noise(seed, 0.7)
    found, wanted = (kernels(name).tables(source, segments, heads, noise) for name in ("triton", "reference"))
    assert torch.equal(found, wanted)


@pytest.mark.usefixtures("interpreter")
def test_triton_tables_take_the_lowest_index_on_a_tie() -> None:
    source = LogitSource(torch.zeros(5, 3), torch.zeros(25, 3), torch.zeros(25))
    assert not kernels("triton").tables(source, batch_segments(1, 5), (5,), None).any()


@pytest.mark.usefixtures("interpreter")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy, of the NaN
def test_triton_tables_refuse_infinite_logits(generator: torch.Generator) -> None:
    source = draw_source((4, 3), 9, 5, torch.float32, generator)
    source.input[7, 2] = float("inf")
    source.input[8, 0] = float("nan")
    with pytest.raises(InvalidInput, match="row 7 of the input gives NaN or infinite logits"):
        kernels("triton").tables(source, batch_segments(1, 9), (4, 3), None)


@pytest.mark.usefixtures("interpreter")
def test_triton_noise_is_that_of_gumbel() -> None:
    """Zero logits, temperature one: the arg max of the noise itself."""
    segments, heads = batch_segments(2, 9), (6,)
    source = LogitSource(torch.zeros(18, 1), torch.zeros(36, 1), torch.zeros(36))
    noise = gumbel(torch.tensor(5), *steps_of(segments), 36)
    found = kernels("triton").tables(source, segments, heads, Noise(5, 1.0))
    assert torch.equal(found.long(), noise.view(18, 6, 6).argmax(-1))


@pytest.mark.usefixtures("interpreter", "poisoned")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_triton_logits_project_values_and_read_out_are_the_reference(
    dtype: torch.dtype, generator: torch.Generator
) -> None:
    heads, m, v = (4, 1, 3), 70, 5

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=dtype, generator=generator)

    rows, weight, bias = draw(33, 6), draw(130, 6), draw(130)
    values, out_weight, out_bias, states = draw(8, v), draw(m, 3 * v), draw(m), draw_states(33, heads, generator)
    ours, theirs = kernels("triton"), kernels("reference")
    assert torch.equal(ours.logits(rows, weight, bias), theirs.logits(rows, weight, bias))
    vectors = ours.project_values(values, out_weight, heads)
    assert torch.equal(vectors, theirs.project_values(values, out_weight, heads))
    assert torch.equal(
        ours.read_out(vectors, out_bias, states, heads), theirs.read_out(vectors, out_bias, states, heads)
    )


PASSES: dict[str, dict[str, object]] = {
    "plain": {},
    "lengths and resets": {"lengths": [13, 0, 8], "resets": True},
    "chunks": {"chunk": 5},
    "index": {"index": True},
    "index and lengths": {"index": True, "lengths": [13, 0, 8]},
}
# float64 sums of a few thousand terms of order one to ten; rounding is 1e-16 each
GRADIENT_TOLERANCE = {"atol": 1e-10, "rtol": 1e-10}


@pytest.mark.usefixtures("interpreter", "poisoned")
@pytest.mark.parametrize(("backend", "case"), [*(("triton", case) for case in PASSES), ("triton_dot", "plain")])
def test_triton_layer_is_the_reference(backend: str, case: str, generator: torch.Generator) -> None:
    """Outputs and states bit for bit, gradients of input, parameters and start state to rounding."""
    options = PASSES[case]
    drawn = torch.randn(3, 13, 6, dtype=torch.float64, generator=generator)
    index = torch.randint(0, 13, (3, 13), generator=generator) if "index" in options else None
    lengths = torch.tensor(options["lengths"]) if "lengths" in options else None
    resets = torch.rand(3, 13, generator=generator) < 0.25 if "resets" in options else None
    results = []
    for name in ("reference", backend):
        layer = NFSM(
            6, (4, 3), initial_state=(2, 1), chunk=int(options.get("chunk", 0)), backend=name,  # type: ignore[call-overload]
            generator=torch.Generator().manual_seed(1),
        ).double()  # fmt: skip
        x = (drawn if index is None else drawn[0]).clone().requires_grad_()
        start = torch.nn.functional.pad(torch.eye(4, dtype=torch.float64)[[1, 2, 0]], (0, 3))
        start[:, 5] = 1
        start.requires_grad_()
        given = x if index is None else (x, index)
        y, last = layer(given, start, seed=3, carry_gradient=True, lengths=lengths, resets=resets)
        loss = (y**2).sum() + (last * torch.arange(7)).sum()
        results.append([y, last, *torch.autograd.grad(loss, [x, start, *layer.parameters()])])
    (y, last, *wanted), (found_y, found_last, *found) = results
    assert torch.equal(found_last, last)
    assert torch.equal(found_y, y)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, **GRADIENT_TOLERANCE)


@pytest.mark.usefixtures("interpreter")
def test_triton_surrogate_backward_is_reproducible(generator: torch.Generator) -> None:
    layer = NFSM(6, (4, 3), backend="triton", generator=torch.Generator().manual_seed(1))
    x = torch.randn(2, 9, 6, generator=generator)
    one, two = (torch.autograd.grad(layer(x, seed=1)[0].sum(), list(layer.parameters())) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.usefixtures("interpreter")
def test_triton_evaluation_and_empty_batches(generator: torch.Generator) -> None:
    layers = [
        NFSM(6, (4, 3), backend=name, generator=torch.Generator().manual_seed(1)).eval()
        for name in ("reference", "triton")
    ]
    for shape in ((2, 9), (0, 9), (2, 0)):
        x = torch.randn(*shape, 6, generator=generator)
        with torch.no_grad():
            (y, state), (found, found_state) = (layer(x) for layer in layers)
        assert torch.equal(found, y)
        assert torch.equal(found_state, state)
    x = torch.randn(2, 6, generator=generator)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in zip(layers[1].step(x), layers[0].step(x), strict=True))


# -- by name


def test_triton_is_unavailable_without_a_gpu_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BackendUnavailable, match="torch finds no GPU; TRITON_INTERPRET=1"):
        resolve("triton")
    monkeypatch.setattr(triton_backend, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"pip install triton"):
        resolve("triton")


def test_resolve_auto_by_device_is_triton_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve("auto", "cuda") == "triton"
    assert resolve("auto", "mps") == "tree"


# -- compiled


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("triton"))


def compiled_table(cache: str, *arguments: str) -> list[dict[str, str]]:
    """`python -m benchmarks._triton_compile`, in a process that does not interpret."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._triton_compile", *arguments], capture_output=True, text=True,
        env=environment | {"TRITON_CACHE_DIR": cache},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names, *rows = (line.split() for line in done.stdout.splitlines())
    return [dict(zip(names, row, strict=False)) for row in rows]


def check_compiled(rows: list[dict[str, str]]) -> None:
    assert [row for row in rows if row["spills"] != "0"] == []
    bits_matter = [row for row in rows if row["kernel"] in ("tables", "logits", "project_values", "read_out")]
    assert bits_matter
    assert [row for row in bits_matter if row["fused"] != "0"] == []


def test_compile_triton_tables_for_four_gpus(cache: str) -> None:
    """The kernel that samples tables: nothing spills at the default heads, nothing is fused."""
    rows = compiled_table(cache, "--kernels", "tables", "--once")
    assert [row["target"] for row in rows] == ["sm_80", "sm_90", "sm_100", "gfx942"]
    check_compiled(rows)


@pytest.mark.slow
def test_compile_every_triton_kernel_for_every_target(cache: str) -> None:
    rows = compiled_table(cache)
    assert {row["target"] for row in rows} == {"sm_80", "sm_90", "sm_100", "gfx942"}
    assert len({row["kernel"] for row in rows}) == 10
    check_compiled(rows)


def test_compiled_code_that_fuses_is_noticed() -> None:
    with pytest.raises(AssertionError):
        check_compiled([{"kernel": "tables", "spills": "0", "fused": "3"}])
    with pytest.raises(AssertionError):
        check_compiled([{"kernel": "tables", "spills": "8", "fused": "0"}])


def test_rows_of_the_test_segments_are_read() -> None:
    """The padded segments of the tests above leave rows out, which a kernel that ignores `rows` would read."""
    rows = rows_of(padded_segments(torch.tensor([12, 0, 5]), 12))
    assert rows.tolist() == [*range(12), *range(24, 29)]

"""The layer on a GPU: equality with the CPU, then the paper's wall-clock figure and the default heads against cuDNN.

Where there is a GPU: outputs and states of `triton` against `cpu` to the bit; then one training step over lengths to
2^17 and sizes to 256 (16 sequences of width 256, one head of d indices, as the paper times it), and sixteen heads of
twelve against cuDNN's GRU and LSTM and, where they are installed, fla's GLA and mamba-ssm. Everywhere: a PREDICTION by
`_roofline`, from data sheets; it is not a measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks._roofline import CARDS, predicted_seconds, training_step
from benchmarks.harness import Report, Unequal
from exactstate.nn import NFSM
from exactstate.ops.triton_backend import why_not

SEED = 7
BATCH, WIDTH, D = 16, 256, 16
"""Of the paper's figure."""
LENGTHS = tuple(1 << power for power in range(6, 18))
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
WARM, CALLS = 5, 10
WIDE = (8, 4096, 128)
"""Batch, length and width of the case with the default heads."""


def run(quick: bool) -> Report:
    report = Report(title="The layer on a GPU; without one, a prediction")
    predict(report)
    reason = why_not()
    if reason is not None or not torch.cuda.is_available():
        report.notes.append(f"nothing was timed: {reason or 'torch finds no GPU'}.")
        return report
    agree(report)
    lengths, sizes = (LENGTHS[:6], SIZES[:5]) if quick else (LENGTHS, SIZES)
    for length in lengths:
        measure(report, f"L={length}, d={D}", nfsms(WIDTH, (D,)), BATCH, length, WIDTH)
    for size in sizes:
        measure(report, f"L=4096, d={size}", nfsms(WIDTH, (size,)), BATCH, 4096, WIDTH)
    measure(report, "16 heads of 12", nfsms(WIDE[2], (12,) * 16) | others(WIDE[2]), *WIDE)
    return report


def predict(report: Report) -> None:
    """The roofline of every case, as notes that say that they are predictions."""
    cases = [(f"L={length}, d={D}", BATCH, length, WIDTH, 1, D) for length in LENGTHS[::2] + LENGTHS[-1:]]
    cases += [(f"L=4096, d={size}", BATCH, 4096, WIDTH, 1, size) for size in SIZES]
    cases.append(("16 heads of 12, B=8, L=4096, m=128", *WIDE, 16, 12))
    for name, batch, length, width, heads, size in cases:
        for backend, ordered in (("triton", True), ("triton_dot", False)):
            works = training_step(batch, length, width, heads, size, ordered=ordered)
            gigabytes = sum(work.bytes for work in works) / 1e9
            giga = sum(work.instructions for work in works) / 1e9
            times = ", ".join(f"{card.name} {1e3 * predicted_seconds(works, card):.3g} ms" for card in CARDS)
            slowest = max(works, key=lambda work: work.seconds(CARDS[0])).kernel
            report.notes.append(
                f"prediction, {name}, {backend}: {giga:.3g} G instructions, {gigabytes:.3g} GB; at least {times}; "
                f"most of it in {slowest}"
            )
    report.notes.append(
        "the paper's figure was measured on one A100 80 GB; its text gives no numbers to compare with: the NFSM was "
        "the fastest of four layers at every length at d=16, and from d=4 to d=64 at L=4096"
    )


def nfsms(width: int, heads: tuple[int, ...]) -> dict[str, nn.Module]:
    return {
        name: NFSM(width, heads, dictionary=None, backend=name, generator=torch.Generator().manual_seed(SEED)).cuda()
        for name in ("tree", "triton", "triton_dot")
    }


def others(width: int) -> dict[str, nn.Module]:
    """cuDNN's layers, and those of other libraries that are installed."""
    torch.manual_seed(SEED)
    found: dict[str, nn.Module] = {
        "GRU (cuDNN)": nn.GRU(width, width, batch_first=True).cuda(),
        "LSTM (cuDNN)": nn.LSTM(width, width, batch_first=True).cuda(),
    }
    if find_spec("fla") is not None:
        from fla.layers import GatedLinearAttention  # type: ignore[import-not-found]

        found["GLA (fla)"] = GatedLinearAttention(hidden_size=width, num_heads=4).cuda()
    if find_spec("mamba_ssm") is not None:
        from mamba_ssm import Mamba2  # type: ignore[import-not-found]

        found["Mamba2 (mamba-ssm)"] = Mamba2(d_model=width, headdim=32).cuda()
    return found


def agree(report: Report) -> None:
    """The bits of the CPU, or nothing is timed."""
    for heads in ((5,), (4, 1, 3), (12,) * 16, (256,)):
        layer = NFSM(64, heads, dictionary=None, backend="cpu", generator=torch.Generator().manual_seed(SEED))
        moved = NFSM(64, heads, dictionary=None, backend="triton", generator=torch.Generator().manual_seed(SEED)).cuda()
        for length in (1, 31, 32, 33, 1025):
            x = torch.randn(3, length, 64, generator=torch.Generator().manual_seed(length))
            wanted, found = layer(x, seed=SEED), moved(x.cuda(), seed=SEED)
            if not all(torch.equal(a, b.cpu()) for a, b in zip(wanted, found, strict=True)):
                raise Unequal(f"heads {heads}, {length} steps: triton and cpu differ; nothing was timed.")
    report.checks.append("triton and cpu: outputs and states to the bit, heads of 5, 4 1 3, 16 of 12 and 256")


def measure(report: Report, case: str, layers: dict[str, nn.Module], batch: int, length: int, width: int) -> None:
    """Time a training step of every layer, alternating, with synchronized calls."""
    x = torch.randn(batch, length, width, generator=torch.Generator().manual_seed(SEED)).cuda().requires_grad_()
    for layer in layers.values():
        for _ in range(WARM):
            step(layer, x)
    spent: dict[str, list[float]] = {name: [] for name in layers}
    for _ in range(CALLS):
        for name, layer in layers.items():
            spent[name].append(seconds(lambda layer=layer: step(layer, x)))  # type: ignore[misc]
    report.record(case, spent, dict.fromkeys(layers, batch * length), unit="steps")
    report.notes.append(
        f"{case}: median of {CALLS} calls, {1e3 * statistics.median(spent['triton']):.3g} ms for triton"
    )


def step(layer: nn.Module, x: Tensor) -> None:
    layer.zero_grad(set_to_none=True)
    x.grad = None
    result: Any = layer(x, seed=SEED) if isinstance(layer, NFSM) else layer(x)
    y = result[0] if isinstance(result, tuple) else result
    y.square().mean().backward()


def seconds(call: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000

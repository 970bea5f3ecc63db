"""The default heads of an NFSM layer, sixteen of twelve indices, against `torch.nn.GRU` and `LSTM` of the same width.

One training step: forward, and the gradient of the mean squared output with respect to parameters and input; float32,
one thread. "NFSM" takes the arg max (`noise=False`), "NFSM, sampled" adds Gumbel noise, "NFSM, dictionary" mixes its
logits from 24 learned matrices. Each shape has two cases: CPU time of the process, by which the targets go because
other processes do not count in it, and wall time.

Inputs are random rows, no two of them alike, or "symbols": a sequence of 32 embedded symbols, as in a model of state
tracking, where the compiled backend computes the tables of each distinct row once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.harness import Report, Unequal
from exactstate import native
from exactstate.nn import NFSM

SEED, MATRICES, SYMBOLS = 7, 24, 32
CLOSE = 1e-9
"""Largest difference of gradients in float64 from the reference, relative to the largest entry."""


@dataclass(frozen=True)
class Shape:
    batch: int
    length: int
    width: int
    rounds: int
    symbols: int = 0
    """How many distinct rows the input has; 0: all rows are random."""
    targets: tuple[tuple[str, float], ...] = ()
    """(layer, how many times as fast the NFSM should be)."""

    def __str__(self) -> str:
        return f"B={self.batch}, L={self.length}, width {self.width}{', symbols' if self.symbols else ''}"


SHAPES = tuple(
    Shape(*sizes, rounds=rounds, symbols=symbols, targets=targets)
    for symbols in (0, SYMBOLS)
    for sizes, rounds, targets in (
        ((64, 32, 64), 31, (("LSTM", 1.0),)),
        ((32, 256, 128), 9, ()),
        ((8, 4096, 128), 5, (("LSTM", 3.0), ("GRU", 6.0))),
    )
)


def run(quick: bool) -> Report:
    report = Report(title="Wide layers: sixteen heads of twelve against GRU and LSTM")
    agree(report)
    with one_thread():
        for shape in SHAPES:
            measure(report, shape, rounds=max(2, shape.rounds // 4) if quick else shape.rounds)
    return report


def layers(width: int) -> dict[str, nn.Module]:
    """The layers by name, the baseline first."""
    torch.manual_seed(SEED)
    return {
        "LSTM": nn.LSTM(width, width, batch_first=True),
        "GRU": nn.GRU(width, width, batch_first=True),
        "NFSM": NFSM(width, noise=False),
        "NFSM, sampled": NFSM(width, noise=True),
        "NFSM, dictionary": NFSM(width, dictionary=MATRICES),
    }


def training_step(layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Forward and backward; returns the output and the last state."""
    layer.zero_grad(set_to_none=True)
    x.grad = None
    y, state = layer(x, seed=SEED) if isinstance(layer, NFSM) else layer(x)
    y.backward(y.detach() * (2 / y.numel()))
    return y.detach(), state


def agree(report: Report, *, batch: int = 3, length: int = 40, width: int = 64) -> None:
    """Compare the fastest backend with the reference: outputs and last states to the bit if it is compiled, gradients
    in float64 to rounding; raises Unequal."""
    cases = [("noise", False), ("noise", True), ("dictionary", MATRICES)]
    for symbols, (setting, value) in ((many, case) for many in (0, batch * length // 20) for case in cases):
        x = inputs(batch, length, width, symbols)
        torch.manual_seed(SEED)
        fast = NFSM(width, **{setting: value})  # type: ignore[arg-type]
        slow = NFSM(width, **{setting: value}, backend="reference")  # type: ignore[arg-type]
        slow.load_state_dict(fast.state_dict())
        name = f"NFSM with {setting}={value}{' on symbols' if symbols else ''}"
        if fast.backend == "cpu":
            if not all(map(torch.equal, training_step(fast, x), training_step(slow, x))):
                raise Unequal(f"{name}: outputs or states differ from the reference's; nothing was timed.")
            report.checks.append(f"{name}: compiled and reference backends, outputs and last states to the bit")
        computed, wanted = (gradients(layer.double(), x.detach().double()) for layer in (fast, slow))
        for part, right in wanted.items():
            if not float((computed[part] - right).abs().max()) <= CLOSE * float(right.abs().max()):
                raise Unequal(f"{name}: the gradient of {part} differs from the reference's; nothing was timed.")
        report.checks.append(f"{name}: gradients in float64, to {CLOSE:g} of their largest entry")


def gradients(layer: NFSM, x: Tensor) -> dict[str, Tensor]:
    """The gradients of a training step, by name."""
    training_step(layer, x.requires_grad_())
    named = [("the input", x), *layer.named_parameters()]
    return {name: part.grad for name, part in named if part.grad is not None}


def measure(report: Report, shape: Shape, *, rounds: int) -> None:
    """Time every layer once per round, in CPU and in wall time."""
    x, steps = inputs(shape.batch, shape.length, shape.width, shape.symbols), layers(shape.width)
    for layer in steps.values():
        training_step(layer, x)
    spent = [{name: seconds(lambda part=layer: training_step(part, x)) for name, layer in steps.items()}  # type: ignore[misc]
             for _ in range(rounds)]  # fmt: skip
    items = dict.fromkeys(steps, shape.batch * shape.length)
    for which, clock in enumerate(("CPU", "wall")):
        times = {name: [row[name][which] for row in spent] for name in steps}
        report.record(f"{shape}, {clock}", times, items, unit="steps")
    for over, at_least in shape.targets:
        report.target(f"{shape}, CPU", "NFSM", at_least=at_least, over=over)


def seconds(call: Callable[[], object]) -> Sequence[float]:
    """Duration of one call: (CPU time of the process, wall time)."""
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def inputs(batch: int, length: int, width: int, symbols: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    if not symbols:
        return torch.randn(batch, length, width, generator=generator).requires_grad_()
    rows = torch.randn(symbols, width, generator=generator)
    return rows[torch.randint(symbols, (batch, length), generator=generator)].requires_grad_()


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch and the kernels use one thread."""
    before = torch.get_num_threads(), native.threads()
    torch.set_num_threads(1)
    native.set_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        native.set_threads(before[1])

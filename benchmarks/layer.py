"""One NFSM layer, one training step (forward and backward): backends, lengths, head sizes, memory, streaming.

B = 16 sequences, inputs of width 256, one head of d indices, float32, gradients of the parameters.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from benchmarks._layers import PAPER
from benchmarks._memory import peak_bytes
from benchmarks.harness import Method, Report, Target
from exactstate import ops as scan
from exactstate.nn import NFSM
from exactstate.ops import cpu
from exactstate.ops.gumbel import gumbel
from exactstate.ops.segments import LogitSource, Noise, batch_segments, steps_of

B, WIDTH, SEED = 16, 256, 7


def run(quick: bool) -> Report:
    report = Report(title="One NFSM layer in a training step")
    rounds, length = (3, 1024) if quick else (7, 4096)
    compare_backends(report, length, rounds)
    compare_backwards(report, length, rounds)
    sweep_lengths(report, [2**i for i in ((6, 8, 10, 12) if quick else range(6, 18))], rounds)
    sweep_sizes(report, (2, 4, 8, 16, 32) if quick else (2, 4, 8, 16, 32, 64, 128, 256), length, rounds)
    stream(report, 500 if quick else 5000)
    return report


def layer_of(d: int, backend: str = "cpu", chunk: int = 0, dtype: torch.dtype = torch.float32) -> NFSM:
    generator = torch.Generator().manual_seed(SEED)
    return NFSM(WIDTH, (d,), **PAPER, backend=backend, chunk=chunk, generator=generator).to(dtype)


def inputs(length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(B, length, WIDTH, generator=torch.Generator().manual_seed(SEED), dtype=dtype)


def training_step(layer: NFSM, x: Tensor) -> Tensor:
    """Forward, mean squared output, backward; returns the last states."""
    layer.zero_grad(set_to_none=True)
    y, state = layer(x, seed=SEED)
    y.square().mean().backward()
    return state


def compare_backends(report: Report, length: int, rounds: int) -> None:
    """Runs of given tables, then the whole layer, on each backend."""
    tables = torch.randint(0, 16, (B, length, 16), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    start = torch.zeros(B, 1, dtype=torch.int64)
    composing = [
        Method(name, partial(scan.run, tables, start, backend=name), items=B * length)
        for name in ("reference", "tree", "cpu")
    ]
    report.measure(f"states of given tables, d=16, L={length}", composing, unit="steps", rounds=rounds)

    x = inputs(length)
    slow = [Method(name, partial(_made_and_trained, x, name), items=B * length) for name in ("reference", "cpu")]
    case = f"training step against the loop, d=16, L={length}"
    report.measure(case, slow, unit="steps", rounds=2)
    report.target(case, "cpu", at_least=10)

    # the tree's logits come from BLAS: its states are compared in float64, where no two logits are that close
    exact = inputs(min(length, 1024), torch.float64)
    double = [Method(name, partial(_made_and_trained, exact, name), items=1) for name in ("tree", "cpu")]
    report.agree("sampled states in float64", double)
    layers = {name: layer_of(16, name) for name in ("tree", "cpu")}
    fast = [
        Method(name, partial(_silently, training_step, layer, x), items=B * length) for name, layer in layers.items()
    ]
    case = f"training step against the tree, d=16, L={length}"
    report.measure(case, fast, unit="steps", rounds=rounds)
    report.target(case, "cpu", at_least=3)


def compare_backwards(report: Report, length: int, rounds: int) -> None:
    """From the gradient of the output to those of the parameters: the used columns alone, against d x d each step."""
    d, heads = 16, (16,)
    segments, noise = batch_segments(B, length), Noise(SEED, 0.5)
    x = inputs(length).view(-1, WIDTH)
    layer = layer_of(d)
    weight, bias = layer.weight.detach(), layer.bias.detach()
    source, vectors = LogitSource(x, weight, bias), torch.randn(d, WIDTH, generator=torch.Generator().manual_seed(2))
    start = torch.zeros(B, 1, dtype=torch.int64)
    tables = cpu.tables(source, segments, heads, noise)
    states = torch.zeros(len(x), 1, dtype=torch.uint8)
    cpu.trajectories(tables, segments, start, states, heads)
    gradient = torch.randn(len(x), WIDTH, generator=torch.Generator().manual_seed(3)) / len(x)

    drawn = gumbel(torch.tensor(SEED), *steps_of(segments), d * d)
    before = torch.cat([start, states.view(B, length)[:, :-1].long()], dim=1).view(-1)
    used = torch.nn.functional.one_hot(before, d).float()[:, :, None]

    def lam() -> Tensor:
        gains = gradient @ vectors.T
        cpu.adjoint_scan_(tables, gains, gains.new_zeros(B, d), segments, heads)
        return gains

    def sparse() -> Tensor:
        summed = torch.zeros_like(weight), torch.zeros_like(bias)
        cpu.surrogate_backward_(source, segments, start, states, lam(), heads, noise, 0.5, (None, *summed))
        return summed[0]

    def dense() -> Tensor:
        scores = (torch.nn.functional.linear(x, weight, bias) * 2 + drawn).view(-1, d, d)
        value = lam()[:, None]
        p = scores.softmax(-1)
        each_step = p * (value - (p * value).sum(-1, keepdim=True)) * 2 * used
        return each_step.view(len(x), d * d).T @ x

    one, other = sparse(), dense()
    error = float((one - other).abs().max() / other.abs().max())
    report.targets.append(
        Target(what="relative error of the sparse gradient", wanted=1e-4, measured=error, at_most=True)
    )
    case = f"backward of the parameters, d=16, L={length}"
    methods = [
        Method(name, partial(_silently, call), items=len(x)) for name, call in (("dense", dense), ("sparse", sparse))
    ]
    report.measure(case, methods, unit="steps", rounds=rounds)
    report.target(case, "sparse", at_least=2)


def sweep_lengths(report: Report, lengths: Sequence[int], rounds: int) -> None:
    """Time in proportion to the length; memory beyond the arrays that come in and go out, flat with chunks."""
    per_step, memory = {}, {}
    for length in lengths:
        x = inputs(length)
        layer = layer_of(16, chunk=512)
        spent = _median(partial(_both_ways, layer, x), rounds if length <= 2**14 else 3)
        per_step[length] = spent / length
        outside = x.numel() * x.element_size()  # the output, which is also its own gradient here
        memory[length] = peak_bytes(partial(_both_ways, layer, x)) - outside
        report.notes.append(
            f"L={length}, d=16, chunks of 512: {spent * 1e3:.3g} ms, {per_step[length] * 1e6:.3g} us per step of the "
            f"batch, {memory[length] / 2**20:.0f} MiB beyond the input and the output"
        )
        del x
    middle = statistics.median(per_step.values())
    spread = max(max(value / middle, middle / value) for value in per_step.values())
    report.targets.append(
        Target(what="time per step, largest departure from proportion", wanted=1.25, measured=spread, at_most=True)
    )
    longest, chunk = max(lengths), [length for length in lengths if length >= 1024]
    growth = (memory[longest] - memory[chunk[0]]) / 2**20 if chunk else 0.0
    report.targets.append(
        Target(
            what=f"MiB more at L={longest} than at L={chunk[0]}, with chunks", wanted=64, measured=growth, at_most=True
        )
    )


def sweep_sizes(report: Report, sizes: Sequence[int], length: int, rounds: int) -> None:
    """Time of a step as the head grows, and the share of the matrix product of the logits.

    The product is never computed alone: its logits stay in the first-level cache until their arg max is taken. So it is
    measured as tables without noise, which are the product and that arg max.
    """
    x = inputs(length)
    flat, segments = x.view(-1, WIDTH), batch_segments(B, length)
    for d in sizes:
        layer = layer_of(d)
        few = rounds if d <= 32 else 1
        whole = _median(partial(_both_ways, layer, x), few)
        source = LogitSource(flat, layer.weight.detach(), layer.bias.detach())
        product = _median(partial(cpu.tables, source, segments, (d,), None), few)
        report.notes.append(
            f"d={d}, L={length}: {whole * 1e3:.3g} ms, {product / whole:.0%} of it the matrix product of the logits"
        )
        if d == 16:
            share = Target(what="share of the logits' product at d=16", wanted=0.5, measured=product / whole)
            report.targets.append(share)
            torch_takes = _median(partial(torch.nn.functional.linear, flat, source.weight, source.bias), rounds)
            report.notes.append(
                f"d=16, L={length}: torch's product of the same size, which stores its logits, takes "
                f"{torch_takes / whole:.0%} of the time of the whole step"
            )


def stream(report: Report, steps: int) -> None:
    """One step of a small layer at a time."""
    layer = NFSM(128, (11, 11, 11, 11), **PAPER, generator=torch.Generator().manual_seed(SEED)).eval()
    x, state = torch.randn(1, 128, generator=torch.Generator().manual_seed(SEED)), None
    with torch.inference_mode():
        spent = []
        for _ in range(steps):
            begun = time.perf_counter()
            _, state = layer.step(x, state)
            spent.append(time.perf_counter() - begun)
    microseconds = statistics.median(spent) * 1e6
    report.targets.append(
        Target(
            what="microseconds of step(), m=128, heads (11,11,11,11), batch 1",
            wanted=50,
            measured=microseconds,
            at_most=True,
        )
    )


def _both_ways(layer: NFSM, x: Tensor) -> None:
    """The layer's own forward and backward pass, given the gradient of the output: no loss in between."""
    layer.zero_grad(set_to_none=True)
    y, _ = layer(x, seed=SEED)
    y.backward(y.detach())


def _made_and_trained(x: Tensor, backend: str) -> Tensor:
    """The last states of a training step of a layer made for it, in the type of the input."""
    return training_step(layer_of(16, backend, dtype=x.dtype), x)


def _silently(call: Callable[..., object], *arguments: object) -> None:
    """Call it and return None: results with rounding are not compared bit for bit."""
    call(*arguments)


def _median(call: Callable[[], object], rounds: int) -> float:
    call()
    spent = []
    for _ in range(rounds):
        begun = time.perf_counter()
        call()
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent)

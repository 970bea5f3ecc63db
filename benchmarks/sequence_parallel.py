"""One long sequence on one rank and on two: bits, time and memory of a training step, and what the ranks send.

Every rank is a process with one thread on this machine (gloo). With two ranks each holds half of the rows and nothing
of the other half; they exchange one table per head and one adjoint per index. Time is that of the slowest rank,
memory the increase of the largest one during the step. Processor time does not depend on what else the machine does.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from benchmarks._memory import peak_bytes
from benchmarks.harness import Report, Target, Unequal
from exactstate import native
from exactstate.nn import NFSM
from exactstate.ops.sequence_parallel import exchanged_bytes, traffic

LENGTH, QUICK_LENGTH = 1 << 20, 1 << 16
WIDTH, HEADS, SEED, ROUNDS = 32, (12,) * 4, 7, 3
BLOCK = 1 << 14
"""Rows whose inputs and outputs are drawn and hashed at a time; a stretch is a whole number of blocks."""


def run(quick: bool) -> Report:
    report = Report(title="One sequence over ranks: a training step of an NFSM layer")
    length = QUICK_LENGTH if quick else LENGTH
    found = {world: _on_ranks(world, length) for world in (1, 2)}
    digests = {world: [digest for rank in ranks for digest in rank["digests"]] for world, ranks in found.items()}
    if digests[1] != digests[2] or len({tuple(rank["final"]) for ranks in found.values() for rank in ranks}) != 1:
        raise Unequal("one rank and two give different outputs or final states.")
    report.checks.append(f"{length} steps: outputs and final states of one rank and of two, to the bit")
    spent = {
        f"ranks: {world}": [max(times) for times in zip(*(rank["seconds"] for rank in ranks), strict=True)]
        for world, ranks in found.items()
    }
    case = f"B=1, L={length}, width {WIDTH}, {len(HEADS)} heads of {HEADS[0]}"
    report.record(case, spent, dict.fromkeys(spent, length), unit="steps")
    cpu = {world: max(rank["cpu"] for rank in ranks) for world, ranks in found.items()}
    peaks = {world: max(rank["peak"] for rank in ranks) >> 20 for world, ranks in found.items()}
    one, two = (found[world][0]["gradient"] for world in (1, 2))
    largest = float((two - one).abs().max() / one.abs().max())
    sent, formula = found[2][0]["sent"], exchanged_bytes(1, HEADS, 2, WIDTH)
    report.notes += [
        f"processor time of the step, largest rank: {cpu[1]:.2f} s on one rank, {cpu[2]:.2f} s on two, "
        f"{cpu[1] / cpu[2]:.2f} times less; the machine was shared: a load of {os.getloadavg()[1]:.1f} on its "
        f"{os.cpu_count()} cores",
        f"peak memory of a rank during the step: {peaks[1]} MiB on one rank, {peaks[2]} MiB on two",
        f"a rank sent {sent} bytes in one step; with as many state entries a diagonal affine scan sends "
        f"{formula['affine diagonal forward']} forward alone, one with full matrices {formula['affine full forward']}",
        f"largest difference of a weight's gradient, relative to the largest entry: {largest:.1e}",
    ]
    wanted = formula["forward"] + formula["backward"]
    report.targets.append(Target(what="bytes sent by a rank", wanted=wanted, measured=sent, at_most=True))
    return report


def _on_ranks(world: int, length: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (world, length, folder), nprocs=world)
        found = [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(world)]
    return found


def _rank(rank: int, world: int, length: int, folder: str) -> None:
    torch.set_num_threads(1)
    native.set_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    rows = length // world
    blocks = range(rank * rows // BLOCK, (rank + 1) * rows // BLOCK)
    x = torch.cat([torch.randn(1, BLOCK, WIDTH, generator=torch.Generator().manual_seed(block)) for block in blocks], 1)
    layer = NFSM(WIDTH, HEADS, generator=torch.Generator().manual_seed(SEED), process_group=dist.group.WORLD)
    kept: list[Any] = []

    def step() -> None:
        layer.zero_grad(set_to_none=True)
        y, final = layer(x, seed=SEED)
        y.square().sum().backward()
        kept[:] = [y.detach(), final]

    peak = peak_bytes(step)
    traffic.bytes = 0
    seconds, cpu = [], []
    for _ in range(ROUNDS):
        dist.barrier()
        begun, used = time.perf_counter(), time.process_time()
        step()
        cpu.append(time.process_time() - used)
        dist.barrier()
        seconds.append(time.perf_counter() - begun)
    sent = traffic.bytes // ROUNDS
    gradient = layer.weight.grad
    assert gradient is not None
    dist.all_reduce(gradient)
    digests = [hashlib.sha256(part.numpy().tobytes()).hexdigest() for part in kept[0].split(BLOCK, 1)]
    result = {"peak": peak, "seconds": seconds, "cpu": statistics.median(cpu), "sent": sent, "digests": digests,
              "final": kept[1][0].tolist(), "gradient": gradient}  # fmt: skip
    torch.save(result, f"{folder}/{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()

"""`exactstate run --cluster local` against `exactstate run` on text: throughput, scaling, memory, kills.

The text is a log of two events, ten to twenty on a line, that move a machine of six states (S3). The outputs of all
runs are hashed and must be equal; in the kill test a worker is killed in the middle of each of ten runs. Processor
time and peak resident memory are sampled from /proc, with what other work used meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._processes import ProcessTree
from benchmarks.harness import Report, Target, Unequal
from exactstate.runtime import Machine
from exactstate.runtime.cluster import connected, run_files
from exactstate.tasks import task

SIZE, QUICK_SIZE = 5 * 10**9, 2 * 10**8
KILL_SIZE, KILLS = 10**8, 10
MIB = 1 << 20
EVENTS = ("acquire", "release")


def run(quick: bool) -> Report:
    report = Report(title="A machine over files: one process, and a Ray cluster of one and two workers")
    size, rounds = (QUICK_SIZE if quick else SIZE), KILLS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        machine = place / "s3.json"
        machine_of_events().save(machine)
        if shutil.disk_usage(place).free < size + (1 << 30):
            report.notes.append(f"{size} bytes of text do not fit on this disk; nothing was measured.")
            return report
        files = write_text(place, size)
        measure(report, machine, files, sum(path.stat().st_size for path in files))
        kill(report, machine, place, rounds, QUICK_SIZE // 10 if quick else KILL_SIZE)
    return report


def machine_of_events() -> Machine:
    """S3, its two generators named as events."""
    return Machine.of(replace(task("S3").machine, symbols=EVENTS))


def write_text(folder: Path, size: int, files: int = 2, seed: int = 7) -> list[Path]:
    """Files of random events; lines of ten to twenty, blocks of a megabyte in random order."""
    drawn = random.Random(seed)
    blocks = []
    for _ in range(16):
        lines: list[str] = []
        left = MIB
        while left > 0:
            lines.append(" ".join(drawn.choices(EVENTS, k=drawn.randint(10, 20))) + "\n")
            left -= len(lines[-1])
        blocks.append("".join(lines).encode())
    paths = [folder / f"{number}.txt" for number in range(files)]
    for path in paths:
        left = size // files
        with path.open("wb") as file:
            while left > 0:
                block = drawn.choice(blocks)
                file.write(block[: block.rfind(b"\n", 0, left) + 1])  # a line that was cut would join the next file
                left -= len(block)
    return paths


@dataclass(frozen=True)
class Run:
    """What one command took."""

    seconds: float
    digest: str
    """Hash of what it wrote."""
    cpu: float
    """Seconds of processor time of all its processes."""
    driver_cpu: float
    """Those of its first process: on a cluster the driver, of which there is one."""
    others: float
    """Processors that the rest of the machine used meanwhile, on average."""
    driver: int
    """Peak bytes of its first process."""
    worker: int
    """Peak bytes of the largest worker of Ray, with the part of the object store that it touched."""


def hashed(command: list[str]) -> Run:
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    digest = hashlib.sha256()
    with ProcessTree(process.pid) as tree:
        while chunk := process.stdout.read(MIB):
            digest.update(chunk)
        if process.wait() != 0:
            raise Unequal(f"{' '.join(command)} ended with exit code {process.returncode}.")
    seconds = time.perf_counter() - begun
    return Run(
        seconds, digest.hexdigest(), tree.cpu_seconds, tree.cpu.get(process.pid, 0.0), tree.others / seconds,
        tree.peaks.get(process.pid, 0), tree.largest("ray::"),
    )  # fmt: skip


def measure(report: Report, machine: Path, files: list[Path], size: int) -> None:
    """`exactstate run`, and the same on clusters of one and two workers."""
    program = [sys.executable, "-m", "exactstate", "run", str(machine), *map(str, files)]
    ways = {
        "exactstate run": program,
        "cluster, 1 worker": [*program, "--cluster", "local", "--workers", "1"],
        "cluster, 2 workers": [*program, "--cluster", "local", "--workers", "2"],
    }
    runs: dict[str, Run] = {}
    for name, command in ways.items():
        runs[name] = run = hashed(command)
        if run.digest != runs["exactstate run"].digest:
            raise Unequal(f"{name}: the output differs from that of exactstate run.")
        workers = f", largest worker {run.worker / MIB:.0f} MiB" if run.worker else ""
        report.notes.append(
            f"{name}: {run.cpu:.1f} CPU s, of them {run.driver_cpu:.1f} of its first process, whose peak is "
            f"{run.driver / MIB:.0f} MiB{workers}; meanwhile other work used {run.others:.2f} of {os.cpu_count()} cores"
        )
    report.checks.append(f"{size} bytes: the outputs of all ways, by SHA-256")
    spent = {name: [run.seconds] for name, run in runs.items()}
    report.record(f"S3, {size / 1e9:.3g} GB", spent, dict.fromkeys(ways, size), unit="bytes")
    alone, one, two = (run.seconds for run in runs.values())
    report.notes.append(
        f"two workers are {one / two:.2f} times as fast as one; one worker takes {one / alone:.2f} times as long as "
        "exactstate run, the start of Ray included"
    )


def kill(report: Report, machine: Path, folder: Path, rounds: int, size: int) -> None:
    """Runs in which one worker is killed; all outputs must be that of one process."""
    from exactstate.runtime import load

    (folder / "kill").mkdir()
    files = write_text(folder / "kill", size)
    wanted = hashed([sys.executable, "-m", "exactstate", "run", str(machine), *map(str, files)]).digest
    equal = 0
    with connected("local", 2):
        for number in range(rounds):
            digest, seen, killed = hashlib.sha256(), 0, list[int]()

            def watch(pid: int, number: int = number, killed: list[int] = killed) -> None:
                nonlocal seen
                seen += 1
                if seen == number + 1 and not killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

            run_files(load(machine), files, digest.update, workers=2, partition=4 * MIB, watch=watch)
            equal += digest.hexdigest() == wanted and bool(killed)
    report.targets.append(
        Target(what=f"runs with a killed worker that are equal, of {rounds}", wanted=rounds, measured=equal)
    )

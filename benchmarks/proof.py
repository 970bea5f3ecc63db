"""How long a proof takes: extract the machine of a network, compare it with its target, bound rounding, check the file.

The networks are given their machines (recipe `distill`): what is timed begins with finished weights. Seconds are those
of the processor; memory is the increase of this process during the proof.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

from benchmarks._memory import peak_bytes
from benchmarks.harness import Report, Target, Unequal
from exactstate import native
from exactstate.certify import Certificate
from exactstate.certify.check import check
from exactstate.train import configure, train
from exactstate.train.verify import extract_and_certify, make_certificate

T = TypeVar("T")
TASKS: dict[str, tuple[float, float | None] | None] = {"S3": None, "A5": None, "M11": (20.0, None), "M12": (600.0, 4.0)}
"""Each task with the most processor seconds and GiB that its proof may take."""
QUICK = ("S3", "A5")


def run(quick: bool) -> Report:
    report = Report(title="The proof of a network, from its weights to a checked certificate")
    torch.set_num_threads(1)
    native.set_threads(1)
    for name in QUICK if quick else TASKS:
        _task(report, name)
    report.notes.append("processor seconds; an item is a state of the target; ratios are over the extraction")
    return report


def _task(report: Report, name: str) -> None:
    run, trained = _timed(lambda: train(configure(name, recipe="distill")))
    spent: dict[str, float] = {}

    def prove() -> Certificate:
        (extracted, verdict), spent["extract and compare"] = _timed(lambda: extract_and_certify(run.model, run.task))
        certificate, spent["bound rounding"] = _timed(
            lambda: make_certificate(run.model, extracted, verdict, title=name)
        )
        return certificate

    found: list[Certificate] = []
    peak = peak_bytes(lambda: found.append(prove()))
    (certificate,) = found
    with tempfile.TemporaryDirectory() as folder:
        certificate.write(path := Path(folder) / "certificate.json")
        verdict, spent["check the file"] = _timed(lambda: check(path))
        size = path.stat().st_size
    if not verdict or "float32" not in certificate.proved:
        raise Unequal(f"{name}: the proof does not hold.")
    report.checks.append(f"{name}: the checked certificate proves {', '.join(certificate.proved)}")
    states, total = run.task.machine.n_states, sum(spent.values()) - spent["check the file"]
    report.record(f"{name}, {states} states", {key: [value] for key, value in spent.items()},
                  dict.fromkeys(spent, states), unit="states")  # fmt: skip
    report.notes.append(
        f"{name}: {total:.1f} s of proof beside {trained:.1f} s of training; {peak / 2**30:.2f} GiB; "
        f"a file of {size / 2**20:.1f} MiB"
    )
    if (limits := TASKS[name]) is not None:
        seconds, memory = limits
        report.targets.append(Target(what=f"{name}, seconds of proof", wanted=seconds, measured=total, at_most=True))
        if memory is not None:
            report.targets.append(
                Target(what=f"{name}, GiB of proof", wanted=memory, measured=peak / 2**30, at_most=True)
            )


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    result = call()
    return result, time.process_time() - began

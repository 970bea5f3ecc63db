"""What one layer costs in a training step: the NFSM beside Mamba-, AUSSM and PD-SSM, as scans and as loops.

Timed is what the paper times (appendix "Wall-clock measurements"): the layer alone, its forward pass and the gradient
of the mean squared output with respect to the parameters, Gumbel noise and surrogate gradients included, in float32;
`_layers` says what size d means for each. A loop takes one step after another in Python and computes the same layer.
The layers of a case take turns. Memory is how far the process rises during a call above what it held before: the
input, 16 KiB per step, and the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from benchmarks._layers import MODELS, WIDTH, B, agree, inputs, layer_of, training_step
from benchmarks._memory import available_bytes, peak_bytes
from benchmarks.harness import Report, Target, seconds
from detent.records import Row, stamp, write_atomically

ROWS = Path(__file__).parent.parent / "results" / "walltime.jsonl"
GIB = 1 << 30
ROOM, CHUNK = 6 * GIB, 1 << 12
"""A layer that would take more memory than this runs in chunks of so many steps."""
SECONDS, CALLS = 12.0, 9
"""A case is measured again until that took so long, or so often."""
OURS, *OTHERS = MODELS
D = 16


def run(quick: bool) -> Report:
    report = Report(title="One layer in a training step: NFSM, Mamba-, AUSSM, PD-SSM")
    for model in MODELS:
        agree(report, model)
    lengths, looped, length = ((6, 8, 10), 1 << 8, 1 << 10) if quick else (range(6, 18), 1 << 12, 1 << 12)
    rows = sweep_lengths(report, [1 << power for power in lengths], looped)
    for d in (4, 64) if quick else (2, 4, 8, 32, 64, 128, 256):
        rows += measure(report, length, d)
    promise(report, rows, length)
    if not quick:
        made = stamp()
        write_atomically(ROWS, "".join(json.dumps(row | made) + "\n" for row in rows))
    return report


def sweep_lengths(report: Report, lengths: Sequence[int], looped: int) -> list[Row]:
    """Scans at every length, in chunks where memory asks for it, and loops up to the length where they get long."""
    rows: list[Row] = []
    peaks, chunked = dict.fromkeys(MODELS, 0), set[str]()
    for length in lengths:
        expected = {model: 2 * peak for model, peak in peaks.items()}  # each length is at least twice the last
        chunked |= {model for model in MODELS if expected[model] > ROOM}
        needed = max(expected.values()) + 4 * B * length * WIDTH
        if needed > available_bytes():
            report.notes.append(f"L={length} was not measured: {needed / GIB:.1f} GiB are not free on this machine.")
            break
        found = measure(report, length, D, chunked=chunked)
        peaks = {row["model"]: row["peak_bytes"] for row in found}
        rows += found
        if length <= looped:
            rows += measure(report, length, D, form="loop")
    return rows


def measure(report: Report, length: int, d: int, *, form: str = "scan", chunked: Collection[str] = ()) -> list[Row]:
    """Weigh and time all layers at one length and size. The first calls count only where there is no time for more."""
    x = inputs(length)
    layers = {model: layer_of(model, d, form=form, chunk=CHUNK * (model in chunked)) for model in MODELS}
    spent: dict[str, list[float]] = {model: [] for model in MODELS}

    def call(model: str) -> None:
        spent[model].append(seconds(partial(training_step, layers[model], x)))

    peaks = {model: peak_bytes(partial(call, model)) for model in MODELS}
    rounds = min(CALLS, int(SECONDS / sum(map(sum, spent.values()))))
    for _ in range(rounds):
        for model in MODELS:
            call(model)
    if rounds > 1:
        spent = {model: calls[1:] for model, calls in spent.items()}

    names = {model: f"{model}, in chunks" if model in chunked else model for model in MODELS}
    case = f"L={length}, d={d}" + (", loops" if form == "loop" else "")
    timings = report.record(
        case, {names[model]: spent[model] for model in MODELS}, dict.fromkeys(names.values(), B * length), unit="steps"
    )
    weighed = ", ".join(f"{model} {peaks[model] / 2**20:.0f}" for model in MODELS)
    report.notes.append(f"{case}: MiB at the peak: {weighed}")
    return [
        {
            "model": model, "form": form, "L": length, "d": d, "seconds": timing.seconds, "calls": timing.calls,
            "ratio": timing.ratio, "peak_bytes": peaks[model], "chunked": model in chunked,
        }
        for model, timing in zip(MODELS, timings, strict=True)
    ]  # fmt: skip


def promise(report: Report, rows: Sequence[Row], length: int) -> None:
    """The NFSM first at d = 16 and, at the length of the sizes, from d = 4 to 64; there at least twice PD-SSM."""
    cells: dict[tuple[str, int, int], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["form"], row["L"], row["d"]), {})[row["model"]] = row
    for (form, L, d), cell in cells.items():
        if form == "scan" and 4 <= d <= 64:
            next_best = max(OTHERS, key=lambda model: float(cell[model]["ratio"]))
            _promised(report, f"L={L}, d={d}, NFSM over {next_best}, the next best", 1, 1 / cell[next_best]["ratio"])
    for (form, L, d), cell in cells.items():
        if form == "scan" and length == L:
            _promised(report, f"L={L}, d={d}, NFSM over PD-SSM", 2, 1 / cell["PD-SSM"]["ratio"])
    for (form, L, d), cell in cells.items():
        if form == "loop":
            scan = cells["scan", L, d]
            model, least = min(
                ((model, cell[model]["seconds"] / scan[model]["seconds"]) for model in MODELS), key=lambda pair: pair[1]
            )
            _promised(report, f"L={L}, d={d}, scan over loop, the least of four ({model})", 1, least)


def _promised(report: Report, what: str, wanted: float, measured: float) -> None:
    report.targets.append(Target(what=what, wanted=wanted, measured=measured))

"""Time and memory of one layer in a training step: the NFSM, Mamba-, AUSSM and PD-SSM, as scans and as loops.

Timed is what the paper times (appendix "Wall-clock measurements"): the layer alone, its forward pass and the gradient
of the mean squared output with respect to the parameters, Gumbel noise and surrogate gradients included, in float32;
`_layers` defines what size d means for each. A loop computes the same layer step by step in Python. The layers of a
case alternate. Memory is the increase of the process during a call above what it held before: the input, 16 KiB per
step, and the parameters.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from functools import partial
from math import inf
from pathlib import Path

import torch

from benchmarks._layers import MATRICES, MODELS, PAPER, SEED, WIDTH, B, agree, inputs, layer_of, training_step
from benchmarks._memory import available_bytes, peak_bytes
from benchmarks.harness import Report, Target, seconds
from exactstate.nn import NFSM
from exactstate.records import Row, stamp, write_atomically

ROWS = Path(__file__).parent.parent / "results" / "walltime.jsonl"
GIB = 1 << 30
ROOM, CHUNK = 6 * GIB, 1 << 12
"""A layer that would need more memory than the first runs in chunks of the second many steps."""
SECONDS, ROUGHLY, CALLS, MINUTES = 8.0, 2.0, 25, 9.2
"""A case is measured again until that took so long (or so long, when quick), or so often; and no case begins that would
end too late."""
OURS, *OTHERS = MODELS
D = 16


def run(quick: bool) -> Report:
    report = Report(title="One layer in a training step: NFSM, Mamba-, AUSSM, PD-SSM")
    for model in MODELS:
        agree(report, model)
    lengths, looped, length = ((6, 8, 10), 1 << 8, 1 << 10) if quick else (range(6, 18), 1 << 12, 1 << 12)
    deadline = time.perf_counter() + MINUTES * 60
    spend = ROUGHLY if quick else SECONDS
    rows = sweep_lengths(report, [1 << power for power in lengths], looped, deadline, spend)
    rows += sweep_sizes(report, (4, 64) if quick else (2, 4, 8, 32, 64, 128, 256), length, deadline, spend)
    promise(report, rows, length)
    explain(report, rows, length)
    if not quick:
        made = stamp()
        write_atomically(ROWS, "".join(json.dumps(row | made) + "\n" for row in rows))
    return report


def sweep_lengths(
    report: Report, lengths: Sequence[int], looped: int, deadline: float = inf, spend: float = SECONDS
) -> list[Row]:
    """Scans at every length, in chunks where memory requires it, and loops up to a length."""
    rows: list[Row] = []
    last: list[Row] = []
    chunked = set[str]()
    for length in lengths:
        longer = length / last[0]["L"] if last else 0
        expected = {row["model"]: longer * row["peak_bytes"] for row in last}
        chunked |= {model for model in expected if expected[model] > ROOM}
        needed = max(expected.values(), default=0) + 4 * B * length * WIDTH
        if needed > available_bytes():
            report.notes.append(f"L={length} was not measured: {needed / GIB:.1f} GiB are not free on this machine.")
            break
        if _too_late(report, f"L={length}", longer, last, deadline):
            break
        last = measure(report, length, D, chunked=chunked, spend=spend)
        rows += last
        if length <= looped:
            rows += measure(report, length, D, form="loop", spend=spend)
    return rows


def sweep_sizes(
    report: Report, sizes: Sequence[int], length: int, deadline: float = inf, spend: float = SECONDS
) -> list[Row]:
    """Scans of layers of every size."""
    rows: list[Row] = []
    last: list[Row] = []
    for d in sizes:
        larger = (d / last[0]["d"]) ** 2 if last else 0
        if _too_late(report, f"d={d}", larger, last, deadline):
            break
        last = measure(report, length, d, spend=spend)
        rows += last
    return rows


def _too_late(report: Report, what: str, times: float, last: Sequence[Row], deadline: float) -> bool:
    """Whether a case that costs so many times the last one would not end before the deadline."""
    expected, left = times * sum(row["seconds"] for row in last), deadline - time.perf_counter()
    if expected > left:
        report.notes.append(f"{what} was not measured: it takes about {expected:.0f} s, and {left:.0f} s were left.")
    return expected > left


def measure(
    report: Report, length: int, d: int, *, form: str = "scan", chunked: Collection[str] = (), spend: float = SECONDS
) -> list[Row]:
    """Memory and time of all layers at one length and size. First calls count only where there is no time for more."""
    x = inputs(length)
    layers = {model: layer_of(model, d, form=form, chunk=CHUNK * (model in chunked)) for model in MODELS}
    spent: dict[str, list[float]] = {model: [] for model in MODELS}

    def call(model: str) -> None:
        spent[model].append(seconds(partial(training_step, layers[model], x)))

    peaks = {model: peak_bytes(partial(call, model)) for model in MODELS}
    rounds = min(CALLS, int(spend / sum(map(sum, spent.values()))))
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


def explain(report: Report, rows: Sequence[Row], length: int) -> None:
    """Where the NFSM is not ahead as promised: what calls alone cost where words are short, what its logits alone cost
    where heads are large, and what they cost as PD-SSM makes them."""
    ours = {row["L"]: row for row in rows if (row["model"], row["form"], row["d"]) == (OURS, "scan", D)}
    for row in rows:
        if row["form"] == "scan" and row["L"] < length and row["ratio"] > 1:
            alone = {model: 1e3 * call_alone(model, D) for model in (row["model"], OURS)}
            report.notes.append(
                f"L={row['L']}, d={D}: {row['model']} takes {1e3 * row['seconds']:.3g} ms, the NFSM "
                f"{1e3 * ours[row['L']]['seconds']:.3g} ms; calls for a single step, {B} rows in all, take "
                f"{alone[row['model']]:.3g} and {alone[OURS]:.3g} ms"
            )
    cells = {(row["model"], row["d"]): row for row in rows if (row["form"], row["L"]) == ("scan", length)}
    for (model, d), row in cells.items():
        if row["ratio"] > (0.5 if model == "PD-SSM" else 1):
            bare = product_of_logits(length, d)
            report.notes.append(
                f"L={length}, d={d}: {model} takes {row['seconds']:.3g} s, the NFSM {cells[OURS, d]['seconds']:.3g} s; "
                f"torch's bare matrix product of {WIDTH} inputs with d x d logits takes {bare:.3g} s"
            )
    for d in sorted({d for (model, d), row in cells.items() if model == "PD-SSM" and row["ratio"] > 0.5}):
        layer, x = (
            NFSM(WIDTH, (d,), **{**PAPER, "dictionary": MATRICES}, generator=torch.Generator().manual_seed(SEED)),
            inputs(length),
        )
        spent = min(seconds(partial(training_step, layer, x)) for _ in range(2))
        report.notes.append(
            f"L={length}, d={d}: the NFSM with logits mixed from {MATRICES} matrices, as PD-SSM mixes its own, takes "
            f"{spent:.3g} s: {cells['PD-SSM', d]['seconds'] / spent:.3g} times as fast as PD-SSM"
        )


def call_alone(model: str, d: int) -> float:
    """Seconds of a training step on words of length one, where almost nothing is computed."""
    layer, x = layer_of(model, d), inputs(1)
    return sorted(seconds(partial(training_step, layer, x)) for _ in range(CALLS))[CALLS // 2]


def product_of_logits(length: int, d: int, sample: int = 4096) -> float:
    """Seconds for the product alone, from a sample of the rows."""
    rows, weight = inputs(sample, batch=1)[0], inputs(d * d, batch=1)[0]
    part = rows.new_empty(256, d * d)
    spent = seconds(lambda: [torch.mm(here, weight.T, out=part) for here in rows.split(256)])
    return spent * B * length / sample


def _promised(report: Report, what: str, wanted: float, measured: float) -> None:
    report.targets.append(Target(what=what, wanted=wanted, measured=measured))

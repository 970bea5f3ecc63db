"""One step of streaming, `NFSM.step`, beside one call of `torch.nn.GRUCell` and `LSTMCell` of the same width.

Sixteen heads of twelve, float32, one thread, evaluation under `inference_mode`, CPU time of the process. The state of a
step is that of the step before, from inputs that are drawn anew. A layer in a loop of steps is what an agent, a stream
and a model that generates a token at a time pay for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from benchmarks.harness import Report, Unequal
from benchmarks.wide import one_thread
from exactstate.nn import NFSM

SEED, SHAPES = 7, tuple((batch, width) for batch in (1, 64) for width in (64, 128))
"""(batch, width)."""


def run(quick: bool) -> Report:
    report = Report(title="One step: the NFSM beside GRUCell and LSTMCell")
    with torch.inference_mode(), one_thread():
        for batch, width in SHAPES:
            case, layer = f"B={batch}, width {width}", NFSM(width, generator=torch.Generator().manual_seed(SEED)).eval()
            rows = torch.randn(16, batch, width, generator=torch.Generator().manual_seed(SEED))
            agree(report, case, layer, rows)
            measure(report, case, layer, rows, rounds=5 if quick else 31)
    return report


def agree(report: Report, case: str, layer: NFSM, rows: Tensor) -> None:
    """Steps one by one equal one call over all of them, to the bit; raises Unequal."""
    y, last = layer(rows.transpose(0, 1))
    outputs, state = [], None
    for row in rows:
        stepped, state = layer.step(row, state)
        outputs.append(stepped)
    if not (state is not None and torch.equal(last, state) and torch.equal(y, torch.stack(outputs, 1))):
        raise Unequal(f"{case}: steps differ from one call; nothing was timed.")
    report.checks.append(f"{case}: {len(rows)} steps and one call, outputs and last states to the bit")


def measure(report: Report, case: str, layer: NFSM, rows: Tensor, *, rounds: int) -> None:
    """CPU time of as many steps as there are rows, over and over, the methods in turn."""
    gru, lstm = nn.GRUCell(rows.shape[2], rows.shape[2]), nn.LSTMCell(rows.shape[2], rows.shape[2])
    loops: dict[str, Callable[[], object]] = {
        "GRUCell": lambda: chained(gru, rows),
        "LSTMCell": lambda: chained(lstm, rows),
        "NFSM.step": lambda: chained(lambda row, held: layer.step(row, held[1] if held else None), rows),
        "NFSM, call of length 1": lambda: chained(
            lambda row, held: layer(row[:, None], held[1] if held else None), rows
        ),
    }
    spent: dict[str, list[float]] = {name: [] for name in loops}
    for n in range(rounds + 1):
        for name, loop in loops.items():
            begun = time.process_time()
            for _ in range(4):
                loop()
            spent[name] += [(time.process_time() - begun) / 4] * (n > 0)
    steps = len(rows) * rows.shape[1]
    report.record(f"{case}, CPU", spent, dict.fromkeys(loops, steps), unit="steps")
    report.target(f"{case}, CPU", "NFSM.step", at_least=1)


def chained(cell: Callable[..., object], rows: Sequence[Tensor] | Tensor) -> object:
    """Every step from the state of the last one."""
    held = None
    for row in rows:
        held = cell(row, held)
    return held

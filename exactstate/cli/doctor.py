"""`exactstate doctor`: installed packages, available backends, helpful programs, measured speed."""

from __future__ import annotations

import shutil
import subprocess
import timeit
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from exactstate import native
from exactstate.cli._output import AsJson, facts, print_json, show
from exactstate.records import versions

PACKAGES = (
    "exactstate", "torch", "numpy", "safetensors", "typer", "rich", "matplotlib", "networkx", "onnx", "onnxruntime",
    "triton", "ray",
)  # fmt: skip
PROGRAMS = {
    "c++": "not found; it compiles the kernels when exactstate is installed",
    "cc": "not found; it compiles machines exported as C",
    "node": "not found; it runs machines exported as JavaScript",
    "dot": "not found; it draws .dot files, and exactstate does not need it",
}
REPEATS = 5


def doctor(
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Measure the speed of the backends.")] = True,
    as_json: AsJson = False,
) -> None:
    """List installed packages and backends, the reason where a backend is not available, and measured speeds.

    The measurement takes a few seconds: the fastest of several calls, with the ratio to the slowest. Exit code 0 when
    all backends of the CPU work, 1 when the compiled kernels are missing, with the way to get them.

    Examples:

        exactstate doctor
        exactstate doctor --no-measure --json
    """
    result: dict[str, Any] = {"packages": packages(), "backends": backends(), "programs": programs()}
    if measure:
        result["speeds"] = speeds([one["name"] for one in result["backends"] if one["available"]])
    if as_json:
        print_json(result)
    else:
        _show(result)
    raise typer.Exit(0 if all(one["available"] or one.get("optional") for one in result["backends"]) else 1)


def _show(result: dict[str, Any]) -> None:
    _table("Packages", [(name, version or "not installed") for name, version in result["packages"].items()])
    _table("Backends", [(one["name"], one["reason"] or one["about"]) for one in result["backends"]])
    _table("Programs", [(one["name"], one["version"] or one["hint"]) for one in result["programs"]])
    for measured in result.get("speeds", []):
        rows = [(row["name"], f"{row['milliseconds']:10.3f} ms   x {row['ratio']:.1f}") for row in measured["rows"]]
        _table(measured["what"], rows)


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    from rich.text import Text

    show(Text(title, style="bold"), facts(rows))


def packages() -> dict[str, str | None]:
    """Versions by name; None for packages that are not installed."""
    installed = versions(*PACKAGES)
    return {name: installed.get(name) for name in PACKAGES}


def backends() -> list[dict[str, Any]]:
    """Every backend: whether it is available here, and if not, the reason."""
    reason, cuda = native.why_not(), _cuda()  # which imports torch, and with it the operators
    from exactstate.ops import triton_backend

    gpu = triton_backend.why_not()
    threads = f"compiled kernels on {native.threads()} threads"
    return [
        {"name": "cpu", "available": reason is None, "reason": reason, "about": threads},
        {"name": "tree", "available": True, "reason": None, "about": f"torch operations; {cuda}"},
        {"name": "reference", "available": True, "reason": None, "about": "a Python loop, for comparison"},
        *({"name": name, "available": gpu is None, "reason": gpu, "about": about, "optional": True} for name, about in {
            "triton": f"GPU kernels, the bits of cpu; {cuda}", "triton_dot": f"GPU kernels, fused sums; {cuda}",
        }.items()),
    ]  # fmt: skip


def programs() -> list[dict[str, Any]]:
    """Programs that exactstate can use; none is required."""
    return [{"name": name, "version": _version(name), "hint": hint} for name, hint in PROGRAMS.items()]


def speeds(names: list[str]) -> list[dict[str, Any]]:
    """The layer with every backend, and a machine with the interpreter and with a Python loop."""
    import numpy as np
    import torch

    from exactstate.nn import NFSM
    from exactstate.runtime import Machine
    from exactstate.tasks import task

    x = torch.randn(4, 1024, 64, generator=torch.Generator().manual_seed(0))
    layers = {name: NFSM(64, (4, 3, 2), backend=name).eval().requires_grad_(False) for name in names}
    s4 = task("S4")
    machine = Machine.of(s4.machine)
    word = s4.sample(1, 1 << 18, np.random.default_rng(0)).inputs[0]
    rows, letters = machine.automaton.tables.tolist(), word.tolist()

    def loop() -> int:
        state = machine.start
        for a in letters:
            state = rows[a][state]
        return state

    assert loop() == machine.run(word)
    return [
        _measured("NFSM(64, heads=(4, 3, 2)), 4 words of 1,024 steps, forward",
                  {name: partial(layer, x) for name, layer in layers.items()}),
        _measured("S4, 262,144 steps, the machine alone",
                  {f"exactstate.runtime ({machine.strategy})": partial(machine.run, word), "a loop in Python": loop}),
    ]  # fmt: skip


def _measured(what: str, calls: dict[str, Callable[[], object]]) -> dict[str, Any]:
    """The fastest of several calls."""
    times = {name: min(timeit.repeat(call, number=1, repeat=REPEATS)) for name, call in calls.items()}
    slowest = max(times.values())
    rows = [
        {"name": name, "milliseconds": round(1000 * seconds, 4), "ratio": round(slowest / seconds, 2)}
        for name, seconds in times.items()
    ]
    return {"what": what, "rows": rows}


def _cuda() -> str:
    import torch

    return f"also on {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else "torch finds no GPU"


def _version(program: str) -> str | None:
    """The first line of the program's version."""
    if shutil.which(program) is None:
        return None
    try:
        done = subprocess.run(
            [program, "-V" if program == "dot" else "--version"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(iter((done.stdout or done.stderr).splitlines()), "").strip() or "installed"

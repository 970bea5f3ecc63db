"""`exactstate doctor`: installed packages, available backends, helpful programs, measured speed."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from exactstate import native
from exactstate.cli._output import AsJson, print_json, show

PACKAGES = (
    "exactstate",
    "torch",
    "numpy",
    "safetensors",
    "typer",
    "rich",
    "matplotlib",
    "networkx",
    "onnx",
    "onnxruntime",
    "triton",
    "ray",
)
PROGRAMS = {
    "c++": "not found; it compiles the kernels when exactstate is installed",
    "cc": "not found; it compiles machines exported as C",
    "node": "not found; it runs machines exported as JavaScript",
    "dot": "not found; it draws .dot files, and exactstate does not need it",
}
MAX_REPEATS, MAX_SECONDS = 7, 0.4
"""Of a measurement."""


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
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    show(Text(title, style="bold"), table)


def packages() -> dict[str, str | None]:
    """Versions by name; None for packages that are not installed."""
    return {name: _installed(name) for name in PACKAGES}


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
    return [_layer(names), _machine()]


def _layer(names: list[str]) -> dict[str, Any]:
    import torch

    from exactstate.nn import NFSM

    x = torch.randn(4, 1024, 64, generator=torch.Generator().manual_seed(0))
    calls: dict[str, Callable[[], object]] = {}
    for name in names:
        layer = NFSM(64, (4, 3, 2), backend=name, generator=torch.Generator().manual_seed(0)).eval()
        calls[name] = _without_gradient(layer, x)
    return _measured("NFSM(64, heads=(4, 3, 2)), 4 words of 1,024 steps, forward", calls)


def _machine() -> dict[str, Any]:
    import numpy as np

    from exactstate.runtime import Machine
    from exactstate.tasks import task

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
    calls = {f"exactstate.runtime ({machine.strategy})": lambda: machine.run(word), "a loop in Python": loop}
    return _measured("S4, 262,144 steps, the machine alone", calls)


def _measured(what: str, calls: dict[str, Callable[[], object]]) -> dict[str, Any]:
    times = {name: _fastest(call) for name, call in calls.items()}
    slowest = max(times.values())
    rows = [
        {"name": name, "milliseconds": round(1000 * seconds, 4), "ratio": round(slowest / seconds, 2)}
        for name, seconds in times.items()
    ]
    return {"what": what, "rows": rows}


def _fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, after a warm-up."""
    call()
    times: list[float] = []
    while len(times) < MAX_REPEATS and sum(times) < MAX_SECONDS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def _without_gradient(layer: Any, x: Any) -> Callable[[], object]:
    import torch

    def call() -> object:
        with torch.no_grad():
            return layer(x)

    return call


def _installed(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


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

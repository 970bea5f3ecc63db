"""`detent doctor`: what is installed, which backends work here and why the others do not, and how fast they are."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

import numpy as np
import typer

from detent import native
from detent.cli._output import AsJson, print_json, show

# -- What `detent doctor` finds: packages, backends, programs, speeds.

PACKAGES = ("detent", "torch", "numpy", "safetensors", "typer", "rich", "matplotlib", "networkx", "onnx", "onnxruntime")
PROGRAMS = {
    "c++": "not found: compiles the kernels, once, when detent is installed",
    "cc": "not found: compiles machines that were exported as C",
    "node": "not found: runs machines that were exported as JavaScript",
    "dot": "not found: draws .dot files; detent's own drawings do not need it",
}
TURNS, ENOUGH = 7, 0.4
"""At most so many turns, or so many seconds."""


def packages() -> dict[str, str | None]:
    """Versions by name; None for what is not there."""
    return {name: _installed(name) for name in PACKAGES}


def backends() -> list[dict[str, Any]]:
    """Every backend, whether it works here and why not."""
    why_not, cuda = native.why_not(), _cuda()
    threads = f"compiled kernels on {native.threads()} threads"
    return [
        {"name": "cpu", "available": why_not is None, "wanted": True, "why_not": why_not, "about": threads},
        {"name": "tree", "available": True, "wanted": True, "why_not": None, "about": f"plain torch; {cuda}"},
        {"name": "reference", "available": True, "wanted": True, "why_not": None, "about": "a loop, for comparison"},
    ]  # fmt: skip


def programs() -> list[dict[str, Any]]:
    """Programs that something here can make use of; none of them is needed."""
    return [{"name": name, "version": _version(name), "what_for": what} for name, what in PROGRAMS.items()]


def speeds(names: list[str]) -> list[dict[str, Any]]:
    """The layer under every backend, and a machine under the interpreter and a plain loop."""
    return [_layer(names), _machine()]


def _layer(names: list[str]) -> dict[str, Any]:
    import torch

    from detent.nn import NFSM

    x = torch.randn(4, 1024, 64, generator=torch.Generator().manual_seed(0))
    timed: dict[str, Callable[[], object]] = {}
    for name in names:
        layer = NFSM(64, (4, 3, 2), backend=name, generator=torch.Generator().manual_seed(0)).eval()
        timed[name] = _without_gradient(layer, x)
    return _measured("NFSM(64, heads=(4, 3, 2)), 4 words of 1,024 steps, forward", timed)


def _machine() -> dict[str, Any]:
    from detent.runtime import Machine
    from detent.tasks import task

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
    named = {f"detent.runtime ({machine.strategy})": lambda: machine.run(word), "a loop in Python": loop}
    return _measured("S4, 262,144 steps, the machine alone", named)


def _measured(what: str, timed: dict[str, Callable[[], object]]) -> dict[str, Any]:
    taken = {name: _fastest(work) for name, work in timed.items()}
    slowest = max(taken.values())
    rows = [
        {"name": name, "milliseconds": round(1000 * seconds, 4), "ratio": round(slowest / seconds, 2)}
        for name, seconds in taken.items()
    ]
    return {"what": what, "rows": rows}


def _fastest(work: Callable[[], object]) -> float:
    """The fastest of a few turns, after one that does not count."""
    work()
    turns: list[float] = []
    while len(turns) < TURNS and sum(turns) < ENOUGH:
        begun = time.perf_counter()
        work()
        turns.append(time.perf_counter() - begun)
    return min(turns)


def _without_gradient(layer: Any, x: Any) -> Callable[[], object]:
    import torch

    def work() -> object:
        with torch.no_grad():
            return layer(x)

    return work


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cuda() -> str:
    import torch

    return f"on {torch.cuda.get_device_name(0)} too" if torch.cuda.is_available() else "torch sees no GPU"


def _version(program: str) -> str | None:
    """The first line that the program says about itself."""
    if shutil.which(program) is None:
        return None
    try:
        asked = subprocess.run(
            [program, "-V" if program == "dot" else "--version"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return next(iter((asked.stdout or asked.stderr).splitlines()), "").strip() or "there"


def doctor(
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Whether to time the backends.")] = True,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, which backends are available and why not, and how fast they are here.

    The measurement takes a few seconds. Times are the fastest of several turns; ratios are to the slowest.
    Exit code 0 when the compiled kernels work, 1 when everything works but slower, and the remedy is told.

    Examples:

        detent doctor
        detent doctor --no-measure --json
    """

    found: dict[str, Any] = {"packages": packages(), "backends": backends(), "programs": programs()}
    if measure:
        found["speeds"] = speeds([one["name"] for one in found["backends"] if one["available"]])
    if as_json:
        print_json(found)
    else:
        _tell(found)
    raise typer.Exit(0 if all(one["available"] for one in found["backends"] if one["wanted"]) else 1)


def _tell(found: dict[str, Any]) -> None:
    _table("Packages", [(name, version or "not installed") for name, version in found["packages"].items()])
    _table("Backends", [(one["name"], one["why_not"] or one["about"]) for one in found["backends"]])
    _table("Programs", [(one["name"], one["version"] or one["what_for"]) for one in found["programs"]])
    for measured in found.get("speeds", []):
        rows = [(row["name"], f"{row['milliseconds']:10.3f} ms   x {row['ratio']:.1f}") for row in measured["rows"]]
        _table(measured["what"], rows)


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    show(Text(title, style="bold"), table)

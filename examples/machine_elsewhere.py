"""A trained machine as a C program and as a JavaScript module: exported, compiled, run, and compared with Python.

The folder `exported` holds the hand-written part: a C program that links the machine, and a page with buttons.

    python examples/machine_elsewhere.py
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import exactstate
from exactstate.runtime import load

HERE = Path(__file__).parent / "exported"
WORD = "locked"


def turnstile() -> exactstate.Moore:
    states = ("locked", "open")
    return exactstate.Moore(
        symbols=("coin", "push"), tables=[[1, 1], [0, 0]], states=states, outputs=states, readout=range(2)
    )


def in_c(folder: Path, text: str) -> str:
    """Compile the machine with the program beside it, and run it."""
    sources = [str(folder / "machine.c"), str(HERE / "count_alarms.c")]
    subprocess.run(["cc", "-O2", "-DMACHINE_WITHOUT_MAIN", *sources, "-o", str(folder / "count")], check=True)
    return subprocess.run([str(folder / "count"), WORD], input=text, capture_output=True, text=True, check=True).stdout


def in_javascript(folder: Path, text: str) -> str:
    """Run the module of the page in node."""
    shutil.copy(HERE / "page.mjs", folder)
    program = ["node", str(folder / "page.mjs"), text, WORD]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = exactstate.train(turnstile(), width=32, out=folder / "run")
        assert run.certified, run.verdict.explain()
        machine = load(folder / "run" / "machine.json")
        machine.export(folder / "machine.c")
        machine.export(folder / "machine.mjs")

        symbols = np.random.default_rng(0).choice(machine.symbols, 5_000).tolist()
        here = machine.outputs(symbols).count(WORD)
        for program, elsewhere in (("cc", in_c), ("node", in_javascript)):
            if shutil.which(program) is None:
                print(f"{program} is not installed: skipped")
                continue
            there = int(elsewhere(folder, " ".join(symbols)))
            assert there == here
            print(f"{program}: outputs {WORD!r} {there} times on {len(symbols):,} symbols, as in Python")


if __name__ == "__main__":
    main()

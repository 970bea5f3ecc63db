"""`detent extract`: read the machine out of a trained network and write it where it can be used without one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from detent.cli._output import AsJson, print_json
from detent.errors import unknown

MACHINES, PROGRAMS = (".json", ".detent", ".dot", ".gv", ".att", ".ba"), (".c", ".js", ".mjs", ".onnx")


def extract(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `detent train` left.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help=f"Where to: {', '.join((*MACHINES, *PROGRAMS))}.")
    ],
    as_json: AsJson = False,
) -> None:
    """Read the machine out of a trained network, without a look at any target, and write it.

    The ending of the file says how: a machine file (`.json` and `.detent` keep the heads), or a program that needs no
    detent (`.c`, `.js`, `.onnx`).

    Examples:

        detent extract runs/S3-42-default -o s3.json
        detent extract runs/S3-42-default -o s3.c && cc -O2 s3.c -o s3
    """
    from detent.train.run import read_out
    from detent.train.run_dir import RunDir

    if output.suffix.lower() not in (*MACHINES, *PROGRAMS):
        raise unknown("ending", output.suffix or str(output), (*MACHINES, *PROGRAMS))
    found, machine = read_out(run)
    if output.suffix.lower() in PROGRAMS:
        machine.export(output)
    else:
        machine.save(output)
    if as_json:
        print_json({
            "run": str(run), "file": str(output), "heads": [list(layer) for layer in found.heads],
            "joint_indices": found.joint_indices, "reached": len(found.reached), "states": machine.n_states,
            "symbols": list(machine.symbols), "weights": found.weights,
        })  # fmt: skip
    else:
        registers = {part.name: part.of_state for part in RunDir(run).task().registers}
        print(found.describe(registers), f"{machine.n_states} states: {output}", sep="\n")

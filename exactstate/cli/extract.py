"""`exactstate extract`: extract the machine from a trained network and write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import unknown

MACHINES, PROGRAMS = (".json", ".exactstate", ".dot", ".gv"), (".c", ".js", ".mjs", ".onnx")


def extract(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, from `exactstate train`.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help=f"Its ending: {', '.join((*MACHINES, *PROGRAMS))}."),
    ],
    as_json: AsJson = False,
) -> None:
    """Extract the machine from the weights of a run, without access to its target, and write it to a file.

    The ending of the file selects the format: a machine file (`.json` and `.exactstate` keep the heads), or a
    program that does not need exactstate (`.c`, `.js`, `.onnx`).

    Examples:

        exactstate extract runs/S3-42-gradient -o s3.json
        exactstate extract runs/S3-42-gradient -o s3.c && cc -O2 s3.c -o s3
    """
    from exactstate.train.run import load_nfsm_run

    if output.suffix.lower() not in (*MACHINES, *PROGRAMS):
        raise unknown("ending", output.suffix or str(output), (*MACHINES, *PROGRAMS))
    trained = load_nfsm_run(run)
    extracted, machine = trained.extracted, trained.machine()
    if output.suffix.lower() in PROGRAMS:
        machine.export(output)
    else:
        machine.save(output)
    if as_json:
        print_json({
            "run": str(run), "file": str(output), "heads": [list(layer) for layer in extracted.heads],
            "joint_indices": extracted.joint_indices, "reached": len(extracted.reached), "states": machine.n_states,
            "symbols": list(machine.symbols), "weights": extracted.weights,
        })  # fmt: skip
    else:
        registers = {part.name: part.of_state for part in trained.task.registers}
        print_text(extracted.describe(registers), f"{machine.n_states} states, written to {output}")

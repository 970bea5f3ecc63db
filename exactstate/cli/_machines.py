"""Machines that verbs are given: a task, a machine file, or the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.errors import BrokenFile, unknown

if TYPE_CHECKING:
    from exactstate.automata import Mealy, Moore

WAYS = {"refuse": "error", "sink": "sink", "loop": "loop"}
Missing = Annotated[str, typer.Option(help="Where a file has no transition: refuse it, lead to a sink, or add a loop.")]


def named_machine(name: str) -> tuple[str, Moore | Mealy]:
    """(its name, the machine) of a task, a file or a run."""
    from exactstate.tasks.registry import by_name

    path = Path(name)
    task = None if path.exists() else by_name(name)
    title = path.name if path.is_dir() else path.stem if task is None else task.name
    return title, read_any(name)


def read_any(name: str, missing: str = "refuse") -> Moore | Mealy:
    """The machine of a task, a file or a run; incomplete files are completed as `missing` says."""
    from exactstate.automata import Moore, read_machine
    from exactstate.automata.machine import Mealy
    from exactstate.tasks.registry import by_name

    if missing not in WAYS:
        raise unknown("way to complete a machine", missing, WAYS)
    path = Path(name)
    if path.is_dir():
        from exactstate.train.run_dir import RunDir

        machine = RunDir(path).machine()
        if machine is None:
            raise BrokenFile(path, f"there is no {RunDir(path).machine_path.name} here; name the folder of a run.")
        return machine.automaton
    if not path.exists() and (task := by_name(name)) is not None:
        return task.machine
    if path.suffix.lower() in (".exactstate", ".json"):
        from exactstate.runtime import load

        return load(path).automaton
    read = read_machine(path, missing=WAYS[missing])  # type: ignore[arg-type]
    return read if isinstance(read, Moore | Mealy) else Moore.of(read)

"""The campaign `protocols`: `exactstate train FILE.dot` by the default recipe, on a folder of public protocol machines.

The machines are not part of the project. `folder` has a folder for every repository they come from, named owner+name,
with the DOT files in it:

    python -m paper run protocols --set folder=machines

Each is learned from its states and from its outputs. A run ends when it is certified, when its attempts are used up, or
after `seconds` of CPU time, at the next check.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from exactstate.automata import Mealy, read_machine
from exactstate.errors import BudgetExceeded, InvalidConfig, NotLearned
from exactstate.records import Row
from exactstate.train import configure, train
from exactstate.train.run import tables_method
from paper.experiments.runner import Campaign, Job, Options

SUPERVISION = ("states", "outputs")


class OutOfTime(Exception):
    """The CPU time of a run is used up."""


def protocol_files(folder: Path) -> list[Path]:
    """The DOT files in the folders of repositories, by name."""
    files = sorted(folder.glob("*+*/*.dot"), key=lambda path: path.name)
    if not files:
        raise InvalidConfig(
            f"{folder} has no machines; wanted DOT files in folders named after their repository, such as "
            f"{folder / 'DES-Lab+AALpy' / 'CC2650.dot'}. Choose another with --set folder=FOLDER."
        )
    return files


def protocol_row(path: Path, supervise: str, recipe: str, seed: int, seconds: float) -> Row:
    """Learn a machine within so many CPU seconds; its row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ambiguities of a file, which `exactstate train` names
        machine = read_machine(path)
        config = configure(str(path), recipe=recipe, seed=seed, supervise=supervise)
    config = replace(config, gradient=replace(config.gradient, compress=False))
    started, history = time.process_time(), list[Row]()

    def watch(row: Row) -> None:
        history.append(row)
        if time.process_time() - started > seconds:
            raise OutOfTime(f"not certified after {seconds:g} CPU seconds")

    row: Row = {
        "name": path.stem, "source": path.parent.name.replace("+", "/"), "states": machine.n_states,
        "inputs": machine.n_symbols, "outputs": len(machine.outputs) if isinstance(machine, Mealy) else 0,
        "supervision": supervise, "recipe": recipe, "seed": seed, "budget_seconds": seconds, "certified": False,
    }  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = train(config, watch)
    except (NotLearned, BudgetExceeded, OutOfTime) as error:
        row["verdict"] = str(error)
        row |= {"tables": tables_method(history)} if recipe == "gradient" else {}
        return {**row, "cpu_seconds": round(time.process_time() - started, 1)}
    row |= {"certified": run.certified, "verdict": run.verdict.explain(), "heads": list(run.heads)}
    row |= {"tables": run.tables} if recipe == "gradient" else {}
    row |= {
        "steps": run.steps, "restarts": run.restarts, "repairs": run.repairs, "reached": len(run.extracted.reached),
    }  # fmt: skip
    if run.certified:
        row["proved"] = list(run.certificate().proved)
    return {**row, "cpu_seconds": round(time.process_time() - started, 1)}


def protocol_jobs(options: Options) -> Iterator[Job]:
    """Every machine from its states, then from its outputs; small files first."""
    folder, seconds = Path(str(options.settings["folder"])), float(options.settings["seconds"])
    recipe = options.recipe or "gradient"
    for path in sorted(protocol_files(folder), key=lambda path: path.stat().st_size):
        for supervise in SUPERVISION:
            for seed in options.seeds:
                key: Row = {"name": path.stem, "supervision": supervise, "recipe": recipe, "seed": seed}
                yield Job(key, partial(protocol_row, path, supervise, recipe, seed, seconds))


PROTOCOLS = Campaign(
    name="protocols", file="protocols.jsonl", jobs=protocol_jobs, seeds=(42,), recipe="gradient",
    settings={"folder": "machines", "seconds": 60.0},
    summary="Learn a folder of public protocol machines from their states and from their outputs.",
)  # fmt: skip

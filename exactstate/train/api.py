"""`exactstate.train`: train a task, extract the machine from the network, and certify it.

run = train("S4", seed=42)                       # a task by name
run = train("mine.dot", out="runs/mine")         # a machine file; a killed run resumes from the folder
run = train(Task.of(machine, name="mine"))       # a task of your own
run = train("S4", cell="mamba", out="runs/S4")   # another cell, by a recipe of baselines
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from exactstate.automata import Mealy, Moore
from exactstate.errors import InvalidConfig
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train.checkpoint import SAVE_EVERY
from exactstate.train.config import TrainConfig
from exactstate.train.fit import fit
from exactstate.train.recipes import configure
from exactstate.train.run import Run, load_run
from exactstate.train.run_dir import RunDir
from exactstate.train.trainer import Trainer, Watcher, interrupted_by_sigterm


def train(
    what: str | os.PathLike[str] | Task | Moore | Mealy | TrainConfig, watch: Watcher | None = None, *,
    out: str | os.PathLike[str] | None = None, save_every: float = SAVE_EVERY, until: int | None = None,
    max_seconds: float | None = None, heads: Sequence[int] | None = None, **settings: Any,
) -> Run:  # fmt: skip
    """Train a task; for an NFSM, extract its machine and compare it with the target on all words.

    - `what`: a task by name, the path of a machine file, a task or machine of your own, or a whole configuration.
    - `watch`: called with every row of the history.
    - `out`: a folder for the run. An unfinished run with the same configuration resumes; another run is refused.
    - `save_every`: seconds between two checkpoints in that folder.
    - `until`, `max_seconds`: pause at this step of a phase, or after so much time, with a checkpoint in the folder.
    - `heads`: indices of each head, chosen by the library when not given.
    - `settings`: `cell`, `recipe`, `seed` and other fields of `TrainConfig`. A Mealy machine is learned from its
      outputs unless `supervise="states"`.
    """
    if isinstance(heads, int):
        raise InvalidConfig(f"heads is one size per head: pass heads=({heads},) for one head of {heads} indices.")
    config, task = _configure(what, {**settings, **({} if heads is None else {"heads": tuple(heads)})})
    task = config.apply_supervision(task)
    config = config.adapt_to_task(task)
    if out is None:
        return fit(config, task, Trainer(None, watch, until=until, max_seconds=max_seconds))
    run_dir = RunDir(out)
    run_dir.claim(config, task)
    if run_dir.finished:
        run = load_run(out)
        run.resumed_at = run.steps
        return run
    with run_dir.lock(), interrupted_by_sigterm():
        try:
            trainer = Trainer(run_dir, watch, save_every=save_every, until=until, max_seconds=max_seconds)
            run = fit(config, task, trainer)
        except InvalidConfig:  # a configuration that cannot be trained does not keep the folder from one that can
            run_dir.withdraw()
            raise
        if run.finished:
            run.save(run_dir)
    return run


def _configure(
    what: str | os.PathLike[str] | Task | Moore | Mealy | TrainConfig, settings: dict[str, Any]
) -> tuple[TrainConfig, Task]:
    if isinstance(what, TrainConfig):
        return replace(what, **settings), get_task(what.task)
    if isinstance(what, Task):
        name, task = what.name, what
    elif isinstance(what, Moore | Mealy):
        name, task = "machine", get_task(what)
    else:
        name, task = os.fspath(what), get_task(os.fspath(what))
    return configure(name, task=task, **{"supervise": None, **settings}), task

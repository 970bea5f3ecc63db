"""The way in: `detent.train("S4", seed=42)`, with or without a folder that outlives the program.

run = train("S4", seed=42)                    # a task by name
run = train("mine.dot", out="runs/mine")      # a machine file; the folder is gone on with after a kill
run = train(Task.of(machine, name="mine"))    # a task of one's own
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from detent.automata import Mealy, Moore
from detent.errors import InvalidConfig
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.train.checkpointer import EVERY, Keeper
from detent.train.config import Plan
from detent.train.induce import Run, learn
from detent.train.loop import Row, Watcher
from detent.train.run import finish, finished
from detent.train.run_dir import RunDir
from detent.train.stack_pretraining import fitted


def train(
    what: str | os.PathLike[str] | Task | Moore | Mealy | Plan, watch: Watcher | None = None, *,
    out: str | os.PathLike[str] | None = None, keep_every: float = EVERY, heads: Sequence[int] | None = None,
    **settings: Any,
) -> Run:  # fmt: skip
    """Learn a task, read the machine out of the network, and compare it with the target on all words.

    - `what`: a task by name, the path of a machine file, a task or machine of one's own, or a whole plan.
    - `watch`: called with every row of the history.
    - `out`: a folder for the run. One that holds the same run is gone on with, and another run is refused.
    - `keep_every`: seconds between two checkpoints in that folder.
    - `heads`: indices of each head, found by the library when not given; `seed`, `arm` and other settings: see `Plan`.
    """
    plan, task = _planned(what, {**settings, **({} if heads is None else {"heads": tuple(heads)})})
    task = plan.heard(task)
    plan = fitted(plan, task)
    if out is None:
        return learn(plan, watch, task=task)
    folder = Path(out)
    run_dir = RunDir(folder)
    run_dir.claim(asdict(plan), task)
    over = finished(folder)
    if over is not None:
        return over
    keeper = Keeper(run_dir.checkpoint_path, every=keep_every)

    def note(row: Row) -> None:
        run_dir.append_history(row)
        if watch is not None:
            watch(row)

    try:
        run = learn(plan, note, task=task, keeper=keeper, history=run_dir.truncate_history(keeper.rows))
    except InvalidConfig:  # a plan that cannot be followed does not keep the folder from one that can
        run_dir.withdraw()
        raise
    finish(folder, run)
    return run


def _planned(what: str | os.PathLike[str] | Task | Moore | Mealy | Plan, settings: dict[str, Any]) -> tuple[Plan, Task]:
    if isinstance(what, Plan):
        return replace(what, **settings), get_task(what.task)
    if isinstance(what, Task):
        return Plan(task=what.name, **settings), what
    if isinstance(what, Moore | Mealy):
        return Plan(task="machine", **settings), get_task(what)
    return Plan(task=os.fspath(what), **settings), get_task(os.fspath(what))

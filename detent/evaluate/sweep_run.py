"""Sweep the length of a run: an NFSM by its tables or as a network, a baseline as a network; one row comes of it.

    sweep, row = sweep_run(Path("runs/S3-42-default"))

The paper's bars: an NFSM fails below 100% of the words, a baseline below 90%. A task with questions is scored by its
answers, the others by whole words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detent import records
from detent.errors import BrokenFile
from detent.evaluate.accuracy import BASELINE, EXACT, Bar
from detent.evaluate.length_sweep import LONGEST, Progress, Scores, Sweep, sweep_questions, sweep_words
from detent.evaluate.predictors import NetworkReader, Reader, TableReader
from detent.extract import extract
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.train import baselines
from detent.train import run_dir as folder

TABLES, NETWORK = "tables", "network"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is swept."""

    task: Task
    reader: Reader
    bar: Bar
    path: str
    """Whether tables or the network are run."""
    about: dict[str, Any]
    """What the row says of the run."""


def sweep_run(
    run: Path, *, longest: int = LONGEST, batch: int = 64, seed: int = 0, format: str = "float32",
    exact_forward: bool = False, progress: Progress | None = None,
) -> tuple[Sweep, dict[str, Any]]:  # fmt: skip
    """(what came of the sweep, its row). A sweep that was cut off goes on when it is asked for again."""
    subject = subject_of(run, format, exact_forward)
    asks = subject.task.question is not None
    name = run / f".sweep-{format}-{subject.path}-{batch}x{longest}-{seed}"
    asked = {"bar": subject.bar, "batch": batch, "longest": longest, "seed": seed, "progress": progress}
    if asks:
        known = Scores(name.with_name(f"{name.name}.json"), [subject.task.name, batch, seed])
        swept = sweep_questions(subject.reader, subject.task, known=known, **asked)  # type: ignore[arg-type]
        known.over()
    else:
        swept = sweep_words(subject.reader, subject.task, keep=name.with_name(f"{name.name}.npz"), **asked)  # type: ignore[arg-type]
    row = {**subject.about, **swept.row(), "format": format, "path": subject.path, **records.stamp()}
    return swept, row


def subject_of(run: Path, format: str = "float32", exact_forward: bool = False) -> Subject:
    """The run of a folder, ready to be swept."""
    if cell_of(run) == "nfsm":
        return _machine(run, format, exact_forward)
    plan, model = baselines.load(run)
    task = get_task(plan.task)
    best = baselines.best_accuracy(run)
    about = {
        "task": task.name, "cell": plan.cell, "recipe": plan.recipe, "seed": plan.seed,
        "learned": best >= baselines.LEARNED, "accuracy": best, "certified": False,
    }  # fmt: skip
    reader = NetworkReader(model, format, answers=task.question is not None)
    return Subject(task=task, reader=reader, bar=BASELINE, path=NETWORK, about=about)


def cell_of(run: Path) -> str:
    """Which cell the run of a folder has."""
    try:
        return str(json.loads((run / baselines.CONFIG).read_text(encoding="utf-8")).get("cell", "nfsm"))
    except OSError:
        raise BrokenFile(run, f"this is not the folder of a run: it has no {baselines.CONFIG}") from None
    except (ValueError, AttributeError) as error:
        raise BrokenFile(run / baselines.CONFIG, f"this is not the plan of a run ({error})") from None


def _machine(run: Path, format: str, exact_forward: bool) -> Subject:
    plan, model = folder.load(run)
    task = folder.task_of(run, plan)
    asks = task.question is not None
    certified = (run / folder.CERTIFICATE).exists()
    about = {
        "task": task.name, "cell": "nfsm", "recipe": plan.arm, "seed": plan.seed, "learned": certified,
        "certified": certified,
    }  # fmt: skip
    reader: Reader
    if exact_forward or format != "float32":
        reader, path = NetworkReader(model, format, answers=asks), NETWORK
    else:
        found = extract(model, grammar=task.grammar if asks else None, format=format)
        reader, path = TableReader(found, answers=asks), TABLES
    return Subject(task=task, reader=reader, bar=EXACT, path=path, about=about)

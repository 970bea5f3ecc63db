"""Length sweep of a run: an NFSM by its extracted tables or as a network, a baseline as a network.

    sweep, row = sweep_run(Path("runs/S3-42-gradient"))

The paper's thresholds: an NFSM fails below 100% of the words, a baseline below 90%. A task with questions is scored by
its answers, the others by whole words.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exactstate import records
from exactstate.evaluate.accuracy import BASELINE_THRESHOLD, NFSM_THRESHOLD, AccuracyThreshold
from exactstate.evaluate.length_sweep import MAX_LENGTH, LengthSweep, Progress, sweep_questions, sweep_words
from exactstate.evaluate.predictors import NetworkPredictor, SequencePredictor, TablePredictor
from exactstate.extract import extract
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train.run import load_run as run_of
from exactstate.train.run_dir import RunDir

TABLES, NETWORK = "tables", "network"


@dataclass(frozen=True, kw_only=True)
class EvaluatedRun:
    """A run, ready to be evaluated."""

    task: Task
    predictor: SequencePredictor
    threshold: AccuracyThreshold
    path: str
    """Whether the tables or the network are evaluated."""
    row: Row
    """The entries that identify the run in a result row."""


def sweep_run(
    run: Path, *, max_length: int = MAX_LENGTH, batch: int = 64, seed: int = 0, format: str = "float32",
    exact_forward: bool = False, progress: Progress | None = None,
) -> tuple[LengthSweep, Row]:  # fmt: skip
    """(the sweep, its result row). An interrupted sweep resumes when it is called again with the same arguments."""
    evaluated = load_run(run, format, exact_forward)
    sweep = sweep_words if evaluated.task.question is None else sweep_questions
    swept = sweep(
        evaluated.predictor, evaluated.task, threshold=evaluated.threshold, batch=batch, max_length=max_length,
        seed=seed, progress=progress,
        checkpoint=run / f".sweep-{format}-{evaluated.path}-{batch}x{max_length}-{seed}.npz",
    )  # fmt: skip
    return swept, {**evaluated.row, **swept.row(), "format": format, "path": evaluated.path, **records.stamp()}


def load_run(run: Path, format: str = "float32", exact_forward: bool = False) -> EvaluatedRun:
    """The run of a folder; `exact_forward` evaluates the network of an NFSM instead of its tables."""
    trained = run_of(run, extract=False)
    task, config, nfsm = trained.task, trained.config, trained.config.cell == "nfsm"
    asks = task.question is not None
    predictor: SequencePredictor
    if not nfsm or exact_forward or format != "float32":
        predictor, path = NetworkPredictor(trained.model, format, answers=asks), NETWORK
    else:
        extracted = extract(trained.model, grammar=task.grammar if asks else None, format=format)
        predictor, path = TablePredictor(extracted, answers=asks), TABLES
    certified = RunDir(run).certificate_path.exists()
    row = {
        "task": task.name, "cell": config.cell, "recipe": config.recipe, "seed": config.seed,
        "learned": certified if nfsm else trained.learned, "certified": certified,
        **({} if nfsm else {"accuracy": trained.accuracy}),
    }  # fmt: skip
    threshold = NFSM_THRESHOLD if nfsm else BASELINE_THRESHOLD
    return EvaluatedRun(task=task, predictor=predictor, threshold=threshold, path=path, row=row)

"""`detent train`: train a network on a task, extract its machine, certify it; or train a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from detent.cli import _completion
from detent.cli._errors import Interrupted
from detent.cli._output import AsJson, TrainingStatus, print_json
from detent.errors import InvalidConfig, NotLearned, unknown
from detent.records import Row

if TYPE_CHECKING:
    from detent.certify import Certificate
    from detent.train import Run


def train(
    name: Annotated[
        str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.", autocompletion=_completion.tasks)
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of words, initial weights and noise.")] = 42,
    cell: Annotated[
        str,
        typer.Option(help="nfsm, or a baseline: mamba, aussm, pdssm, bmru.", autocompletion=_completion.cells),
    ] = "nfsm",
    recipe: Annotated[
        str,
        typer.Option(
            help="default, anchored or paper; of a baseline cpu, cpu-long, cpu-short or paper.",
            autocompletion=_completion.recipes,
        ),
    ] = "default",
    supervise: Annotated[str, typer.Option(help="Labels: the states of the target, or its outputs.")] = "states",
    heads: Annotated[
        str | None, typer.Option(metavar="D,D,...", help="Indices of each head. Default: chosen by the library.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="The folder of the run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a network on a task, extract its machine, and certify that it equals the target on every word.

    The folder of the run has the configuration, weights, history, machine, certificate and report. An interrupted run
    resumes when the command is repeated, and ends with the same weights; a folder with a different run is an error.
    Exit code 0 when the machine is certified, 1 when it is not, with a shortest word on which it is wrong.

    A baseline has no tables to extract. It has learned, exit code 0, when nine words in ten are correct at the training
    length; `detent sweep` finds the length at which it fails.

    Examples:

        detent train S3
        detent train A5 --heads 5,12 --seed 43
        detent train mine.dot --out runs/mine
        detent train mine.dot --supervise outputs
        detent train S3 --cell mamba
    """
    from detent.train.build import CELLS

    if cell not in CELLS:
        raise unknown("cell", cell, CELLS)
    if cell == "nfsm":
        done = _train_nfsm(name, seed, recipe, supervise, heads, out, as_json)
    elif supervise != "states":
        raise InvalidConfig(f"a baseline is trained on states; remove --supervise {supervise}, or --cell {cell}.")
    elif heads is not None:
        raise InvalidConfig(f"only the NFSM has heads; remove --heads, or --cell {cell}.")
    else:
        done = _train_baseline(name, cell, seed, recipe, out, as_json)
    raise typer.Exit(0 if done else 1)


def _train_nfsm(
    name: str, seed: int, recipe: str, supervise: str, heads: str | None, out: Path | None, as_json: bool
) -> bool:
    """Whether the machine is certified."""
    from detent.report import write_report
    from detent.train import Plan
    from detent.train import train as train_nfsm
    from detent.train.config import ARMS

    if recipe not in ARMS:
        raise unknown("recipe", recipe, ARMS)
    plan = Plan(task=name, seed=seed, arm=recipe, supervise=supervise, heads=_sizes(heads))
    labels = "" if supervise == "states" else f"-{supervise}"
    folder = out or Path("runs") / f"{Path(name).stem}-{seed}-{recipe}{labels}"
    try:
        with TrainingStatus(plan.longest) as status:
            run = train_nfsm(plan, status, out=folder)
    except NotLearned as error:
        row = {"task": name, "recipe": recipe, "seed": seed, "certified": False, "verdict": str(error)}
        print_json(row) if as_json else print(error)
        return False
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"{str(interrupt) or 'interrupted'}; repeat the command to resume {folder}.") from None
    certificate = run.certificate() if run.certified else None
    report = write_report(folder)
    if as_json:
        print_json(_row(run, certificate, folder, report))
    else:
        restarts = f", {run.restarts} restarts" if run.restarts else ""
        sizes = " ".join(map(str, run.heads))
        print(
            f"{run.task.name}: heads {sizes}, {run.steps} steps{restarts}, {run.seconds:.1f} s",
            run.verdict.explain() if certificate is None else certificate.summary(),
            f"saved to {folder}; report: {report}",
            sep="\n",
        )
    return run.certified


def _train_baseline(name: str, cell: str, seed: int, recipe: str, out: Path | None, as_json: bool) -> bool:
    """Whether the baseline has learned the task."""
    import torch

    from detent.report import write_report
    from detent.train.baselines import BaselinePlan, row_of
    from detent.train.baselines import train as train_baseline

    recipe = "cpu" if recipe == "default" else recipe
    plan = BaselinePlan.named(name, cell, recipe=recipe, seed=seed)
    folder = out or Path("runs") / f"{Path(name).stem}-{seed}-{cell}-{recipe}"
    torch.set_num_threads(1)  # arrays are small: a second thread costs more than it saves
    try:
        with TrainingStatus({"tracking": plan.settings.steps}) as status:
            outcome = train_baseline(plan, folder, status)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; repeat the command to resume {folder}.") from None
    report = write_report(folder)
    if as_json:
        print_json({**row_of(outcome, folder), "folder": str(folder), "report": str(report)})
    else:
        learned = "learned" if outcome.learned else "not learned"
        print(
            f"{name}, {cell}, {recipe}, seed {seed}: {learned}, {outcome.accuracy:.1%} of words correct at length "
            f"{plan.settings.length} after {outcome.steps} steps, {outcome.seconds:.1f} s",
            f"saved to {folder}; report: {report}",
            sep="\n",
        )
    return outcome.learned


def _sizes(heads: str | None) -> tuple[int, ...] | None:
    if heads is None:
        return None
    try:
        return tuple(int(size) for size in heads.split(","))
    except ValueError:
        raise InvalidConfig(f"--heads takes numbers separated by commas, such as 4,3,2; got {heads!r}.") from None


def _row(run: Run, certificate: Certificate | None, folder: Path, report: Path) -> Row:
    return {
        "task": run.task.name, "recipe": run.plan.arm, "seed": run.plan.seed, "heads": list(run.heads),
        "certified": run.certified, "certificate": None if certificate is None else certificate.sha256,
        "proved": [] if certificate is None else list(certificate.proved), "verdict": run.verdict.explain(),
        "steps": run.steps, "restarts": run.restarts, "seconds": round(run.seconds, 3),
        "weights": run.extracted.weights, "folder": str(folder), "report": str(report),
    }  # fmt: skip

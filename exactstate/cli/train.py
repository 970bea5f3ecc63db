"""`exactstate train`: train a network on a task, extract its machine, certify it; or train a baseline."""

from __future__ import annotations

import warnings
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.baselines.cells import BASELINES
from exactstate.cli import _completion
from exactstate.cli._errors import Interrupted
from exactstate.cli._output import AsJson, TrainingStatus, print_json, print_text
from exactstate.errors import BrokenFile, InvalidConfig, NotLearned

if TYPE_CHECKING:
    from exactstate.train import Run, TrainConfig
    from exactstate.train.distributed import Group


def train(
    name: Annotated[
        str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.", autocompletion=_completion.tasks)
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of words, initial weights and noise.")] = 42,
    cell: Annotated[
        str,
        typer.Option(help=f"nfsm, or a baseline: {', '.join(BASELINES)}.", autocompletion=_completion.cells),
    ] = "nfsm",
    recipe: Annotated[
        str | None,
        typer.Option(
            help="gradient (default), straight_through, induce, distill, paper; of a baseline cpu (default), "
            "cpu-long, cpu-short, paper.",
            autocompletion=_completion.recipes,
        ),
    ] = None,
    supervise: Annotated[
        str | None,
        typer.Option(
            help="Labels: states, outputs, or answers alone. Default: the outputs of a Mealy machine, else states."
        ),
    ] = None,
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
    length; `exactstate sweep` finds the length at which it fails.

    `torchrun --nproc-per-node 2 -m exactstate train S3 --recipe straight_through` computes the
    gradients of every batch on two processes.

    Examples:

        exactstate train S3
        exactstate train A5 --recipe induce --heads 5,12 --seed 43
        exactstate train mine.dot --out runs/mine
        exactstate train mine.dot --supervise outputs
        exactstate train S3 --cell mamba
    """
    from exactstate.report import write_report
    from exactstate.train import train as train_task
    from exactstate.train.distributed import data_parallel
    from exactstate.train.recipes import configure
    from exactstate.train.run_dir import RunDir

    config = configure(name, cell=cell, recipe=recipe, seed=seed, supervise=supervise, heads=_sizes(heads))
    folder = out or _folder(config)
    finished = RunDir(folder).finished
    try:
        with data_parallel() as group, TrainingStatus(config.max_steps) as status:
            if group is not None and group.rank > 0:
                serve_gradients(group, config)
                raise typer.Exit(0)
            run = train_task(config, status, out=folder)
    except NotLearned as error:
        row = {"task": name, "recipe": config.recipe, "seed": seed, "certified": False, "verdict": str(error)}
        print_json(row) if as_json else print_text(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"{str(interrupt) or 'interrupted'}; repeat the command to resume {folder}.") from None
    row, sentences = (run.row(), []) if as_json else ({}, _sentences(run))
    report: Path | None = None
    try:
        report = write_report(folder)
    except BrokenFile as error:
        if not finished:
            raise
        warnings.warn(f"the report was not written again: {error}", stacklevel=2)
    if as_json:
        print_json({**row, "folder": str(folder), "report": None if report is None else str(report)})
    else:
        print_text(*sentences, f"saved to {folder}" if report is None else f"saved to {folder}; report: {report}")
    raise typer.Exit(0 if run.learned else 1)


def serve_gradients(group: Group, config: TrainConfig) -> None:
    """What the other ranks of torchrun do."""
    from exactstate.tasks import task as get_task
    from exactstate.train.distributed import serve

    task = config.apply_supervision(get_task(config.task))
    serve(group, config.adapt_to_task(task), task)


def _folder(config: TrainConfig) -> Path:
    """The folder of a run; files that share a name have different ones."""
    from exactstate.train.run_dir import RunDir

    folder = Path("runs") / _folder_name(config)
    if RunDir(folder).exists and RunDir(folder).config().get("task") != config.task:
        return folder.with_name(f"{folder.name}-{sha256(config.task.encode()).hexdigest()[:8]}")
    return folder


def _folder_name(config: TrainConfig) -> str:
    cell = "" if config.cell == "nfsm" else f"-{config.cell}"
    labels = "" if config.supervise == "states" else f"-{config.supervise}"
    return f"{Path(config.task).stem}-{config.seed}{cell}-{config.recipe}{labels}"


def _sizes(heads: str | None) -> tuple[int, ...] | None:
    if heads is None:
        return None
    try:
        return tuple(int(size) for size in heads.split(","))
    except ValueError:
        raise InvalidConfig(f"--heads takes numbers separated by commas, such as 4,3,2; got {heads!r}.") from None


def _sentences(run: Run) -> list[str]:
    config = run.config
    if config.cell != "nfsm":
        learned = "learned" if run.learned else "not learned"
        return [
            f"{run.task.name}, {config.cell}, {config.recipe}, seed {config.seed}: {learned}, {run.accuracy:.1%} of "
            f"words correct at length {config.end_to_end.length} after {run.steps} steps, {run.seconds:.1f} s"
        ]
    restarts = f", {run.restarts} restarts" if run.restarts else ""
    sizes = " ".join(map(str, run.heads))
    return [
        f"{run.task.name}: heads {sizes}, {run.steps} steps{restarts}, {run.seconds:.1f} s",
        *(f"  {stage}: heads {' '.join(map(str, row['heads']))}" for stage, row in run.stages.items()),
        run.certificate().summary() if run.certified else run.verdict.explain(),
        *([] if run.certified else [run.failure_frequency()]),
        *([run.rarest_state()] if hasattr(run.task.sampler, "depth") else []),
    ]

"""`detent train`: learn a task, read the machine out of the network, and certify it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli import _completion
from detent.cli._errors import Stopped
from detent.cli._output import AsJson, Live, print_json
from detent.errors import InvalidConfig, NotLearned, unknown

if TYPE_CHECKING:
    from detent.certify import Certificate
    from detent.train import Run

# -- `detent train --cell NAME` for the cells that have no tables: train, keep, say how well it went.


def train_baseline(
    name: str, cell: str, seed: int, recipe: str, heads: str | None, out: Path | None, as_json: bool
) -> int:
    """Train one; the exit code, 0 when it has learned."""
    import torch

    from detent.report import write_report
    from detent.train.baselines import BaselinePlan, row_of, train

    if heads is not None:
        raise InvalidConfig(f"heads belong to the NFSM; {cell} has none, leave --heads out.")
    recipe = "cpu" if recipe == "default" else recipe
    plan = BaselinePlan.named(name, cell, recipe=recipe, seed=seed)
    folder = out or Path("runs") / f"{Path(name).stem}-{seed}-{cell}-{recipe}"
    torch.set_num_threads(1)  # arrays are small: waking a second thread costs more than it brings
    try:
        with Live({"tracking": plan.settings.steps}) as show:
            outcome = train(plan, folder, show)
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; {folder} is gone on with when the command is repeated.") from None
    report = write_report(folder)
    if as_json:
        print_json({**row_of(outcome, folder), "folder": str(folder), "report": str(report)})
    else:
        said = "learned" if outcome.learned else "not learned"
        print(
            f"{name}, {cell}, {recipe}, seed {seed}: {said}, {outcome.accuracy:.1%} of the words right at length "
            f"{plan.settings.length} after {outcome.steps} steps, {outcome.seconds:.1f} s",
            f"kept in {folder}; look at {report}",
            sep="\n",
        )
    return 0 if outcome.learned else 1


def train(
    name: Annotated[
        str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.", autocompletion=_completion.tasks)
    ],
    seed: Annotated[int, typer.Option(min=0, help="Names the words, the initial weights and the noise.")] = 42,
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
    supervise: Annotated[
        str, typer.Option(help="What is told at every symbol: the states of the machine, or its outputs.")
    ] = "states",
    heads: Annotated[
        str | None, typer.Option(metavar="D,D,...", help="Indices of each head; chosen if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where the run goes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a task, read the machine out of the network, and certify that it is the target on every word.

    Leaves a folder with the plan, the weights, the history, the machine, the certificate, for `detent check`, and all
    of it on one page, report.html. A run that was stopped or killed goes on when the command is repeated, and ends with
    the same weights; a folder with another run is refused. Exit code 0 when it is certified, 1 when it is not, with a
    shortest word that shows it. A baseline has no tables to read out: it has learned, exit code 0, when nine words in
    ten are right at the length it was trained at; `detent sweep` says how much longer they may be.

    Examples:

        detent train S3
        detent train A5 --heads 5,12 --seed 43
        detent train mine.dot --out runs/mine
        detent train mine.dot --supervise outputs
        detent train S3 --cell mamba
    """
    from detent.report import write_report
    from detent.train import Plan
    from detent.train import train as learn
    from detent.train.build import CELLS
    from detent.train.config import ARMS

    if cell not in CELLS:
        raise unknown("cell", cell, CELLS)
    if cell != "nfsm":
        if supervise != "states":
            raise InvalidConfig(f"a baseline is told the states; leave --supervise {supervise} out, or --cell {cell}.")
        raise typer.Exit(train_baseline(name, cell, seed, recipe, heads, out, as_json))
    if recipe not in ARMS:
        raise unknown("recipe", recipe, ARMS)
    plan = Plan(task=name, seed=seed, arm=recipe, supervise=supervise, heads=_sizes(heads))
    heard = "" if supervise == "states" else f"-{supervise}"
    folder = out or Path("runs") / f"{Path(name).stem}-{seed}-{recipe}{heard}"
    try:
        with Live(plan.longest) as show:
            run = learn(plan, show, out=folder)
    except NotLearned as error:
        told = {"task": name, "recipe": recipe, "seed": seed, "certified": False, "verdict": str(error)}
        print_json(told) if as_json else print(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt as stop:
        raise Stopped(f"{str(stop) or 'interrupted'}; {folder} is gone on with when the command is repeated.") from None
    certificate = run.certificate() if run.certified else None
    write_report(folder)
    if as_json:
        print_json(_row(run, certificate, folder))
    else:
        print(*_sentences(run, certificate, folder), sep="\n")
    raise typer.Exit(0 if run.certified else 1)


def _sizes(heads: str | None) -> tuple[int, ...] | None:
    if heads is None:
        return None
    try:
        return tuple(int(size) for size in heads.split(","))
    except ValueError:
        raise InvalidConfig(f"heads are numbers with commas between them, such as 4,3,2; got {heads!r}.") from None


def _row(run: Run, certificate: Certificate | None, folder: Path) -> dict[str, Any]:
    return {
        "task": run.task.name, "recipe": run.plan.arm, "seed": run.plan.seed, "heads": list(run.heads),
        "certified": run.certified, "certificate": None if certificate is None else certificate.sha256,
        "proved": [] if certificate is None else list(certificate.proved), "verdict": run.verdict.explain(),
        "steps": run.steps, "restarts": run.restarts, "seconds": round(run.seconds, 3),
        "weights": run.extracted.weights, "folder": str(folder),
        "report": str(folder / "report.html"),
    }  # fmt: skip


def _sentences(run: Run, certificate: Certificate | None, folder: Path) -> list[str]:
    again = f", {run.restarts} restarts" if run.restarts else ""
    learned = f"{run.task.name}: heads {' '.join(map(str, run.heads))}, {run.steps} steps{again}, {run.seconds:.1f} s"
    said = run.verdict.explain() if certificate is None else certificate.summary()
    return [learned, said, f"kept in {folder}; look at {folder / 'report.html'}"]

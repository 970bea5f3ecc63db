"""`detent train`: learn a task, read the machine out of the network, and certify it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli import completing
from detent.cli.guard import Stopped
from detent.cli.output import AsJson, print_json
from detent.cli.progress import Live
from detent.errors import InvalidConfig, NotLearned, unknown

if TYPE_CHECKING:
    from detent.certification import Certificate
    from detent.recipes import Run


def train(
    name: Annotated[
        str, typer.Argument(metavar="TASK|FILE", help="A task, or a machine file.", autocompletion=completing.tasks)
    ],
    seed: Annotated[int, typer.Option(min=0, help="Names the words, the initial weights and the noise.")] = 42,
    cell: Annotated[
        str,
        typer.Option(help="nfsm, or a baseline: mamba, aussm, pdssm, bmru.", autocompletion=completing.cells),
    ] = "nfsm",
    recipe: Annotated[
        str,
        typer.Option(
            help="default, anchored or paper; of a baseline cpu, cpu-long, cpu-short or paper.",
            autocompletion=completing.recipes,
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
    from detent.cli.train_baseline import train_baseline
    from detent.recipes import Plan
    from detent.recipes import train as learn
    from detent.recipes.cells import CELLS
    from detent.recipes.plan import ARMS
    from detent.report import write_report

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

"""`detent train --cell NAME` for the cells that have no tables: train, keep, say how well it went."""

from __future__ import annotations

from pathlib import Path

from detent.cli.guard import Stopped
from detent.cli.output import print_json
from detent.cli.progress import Live
from detent.errors import InvalidConfig


def train_baseline(
    name: str, cell: str, seed: int, recipe: str, heads: str | None, out: Path | None, as_json: bool
) -> int:
    """Train one; the exit code, 0 when it has learned."""
    import torch

    from detent.recipes.baseline_campaign import row_of
    from detent.recipes.baselines import BaselinePlan, train
    from detent.report import write_report

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

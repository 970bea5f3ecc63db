"""`detent demo`: the library at work on S3, in about a minute, with an affine layer beside it that loses track."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli._errors import Stopped
from detent.cli._output import AsJson, print_json, show

if TYPE_CHECKING:
    from detent.train.baselines import BaselinePlan

LONGEST, BASELINE_LONGEST = 1 << 20, 1 << 12


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where everything goes.")] = Path(
        "runs/demo"
    ),
    longest: Annotated[int, typer.Option("--max-length", min=2, help="Of the words that are swept.")] = LONGEST,
    as_json: AsJson = False,
) -> None:
    """Learn S3, certify it, sweep it to a million steps, and watch a small Mamba fail; then look at the report.

    Repeated, it shows what it found the first time. Exit code 0 when the NFSM is certified, holds, and the affine layer
    does not.

    Examples:

        detent demo
        detent demo --out demos/s3 --json
    """
    import torch

    begun = time.perf_counter()
    torch.set_num_threads(1)  # a few rows at a time: waking a second thread costs more than it brings
    say = (lambda *_: None) if as_json else _say
    try:
        found = {"nfsm": _nfsm(out / "nfsm", longest, say), "mamba": _mamba(out / "mamba", longest, say)}
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; what was done is in {out}, and the demo goes on when it is repeated.") from None
    report = _reports(out, found)
    right = found["nfsm"]["certified"] and found["nfsm"]["failing_length"] is None
    as_expected = right and found["mamba"]["failing_length"] is not None
    if as_json:
        print_json({**found, "report": str(report), "seconds": round(time.perf_counter() - begun, 1)})
    else:
        _summary(found["nfsm"], found["mamba"])
        _close(report, time.perf_counter() - begun)
    raise typer.Exit(0 if as_expected else 1)


def _nfsm(folder: Path, longest: int, say: Any) -> dict[str, Any]:
    from detent.evaluate.sweep_run import sweep_run
    from detent.train import train

    say("Three cards in a row, and two moves: swap the first two, swap the last two. Which order are they in now?")
    say("That is the task S3. Learn it from words of 64 moves, with the order after every move")
    run = train("S3", out=folder)
    say(f"heads of {' and '.join(map(str, run.heads))} indices, {run.steps} steps, {run.seconds:.1f} s", 1)
    say("Read the machine out of the weights, compare it with S3 on all words, bound the rounding")
    for line in _told(run):
        say(line, 1)
    say(f"Try it as well: 64 words of {longest:,} moves")
    swept, row = sweep_run(folder, max_length=longest)
    say(f"{_found(swept.failing_length)} ({swept.seconds:.1f} s)", 1)
    return {**row, "steps": run.steps, "training_seconds": round(run.seconds, 2)}


def _told(run: Any) -> list[str]:
    from detent.report.sentences import claim

    return [claim(run.certificate().content)] if run.certified else [run.verdict.explain()]


def _mamba(folder: Path, longest: int, say: Any) -> dict[str, Any]:
    from detent.evaluate.sweep_run import sweep_run
    from detent.train.baselines import train

    plan = _plan()
    say(f"Train a small Mamba on the same task, from words of {plan.settings.length} moves")
    outcome = train(plan, folder)
    say(f"{outcome.accuracy:.0%} of fresh words right, {outcome.steps} steps, {outcome.seconds:.1f} s", 1)
    say("Read longer words")
    swept, row = sweep_run(folder, max_length=min(longest, BASELINE_LONGEST))
    shares = [f"{length}: {share:.0%}" for length, share in sorted(swept.accuracies.items()) if length >= 8]
    say(f"{_found(swept.failing_length)}; words right by length: {', '.join(shares)}", 1)
    return {**row, "steps": outcome.steps, "training_seconds": round(outcome.seconds, 2)}


def _plan() -> BaselinePlan:
    """One layer, as small as learns it in seconds."""
    from detent.train import Settings
    from detent.train.baselines import BaselinePlan
    from detent.train.build import Size

    settings = Settings(
        batch=64, length=16, rate=3e-3, last_rate=3e-4, steps=400, check_every=25, check_words=256, perfect_checks=1_000
    )
    size = Size(layers=1, width=32, channels=32, states=16, dropout=0.0)
    return BaselinePlan(task="S3", cell="mamba", seed=42, recipe="demo", size=size, settings=settings, checks=2)


def _reports(out: Path, found: dict[str, dict[str, Any]]) -> Path:
    """The reports of both; that of the NFSM has both sweeps."""
    from detent import records
    from detent.report import write_report
    from detent.train.run_dir import RunDir

    for name, shown in {"mamba": ["mamba"], "nfsm": [*found]}.items():
        rows = "".join(json.dumps(found[one]) + "\n" for one in shown)
        records.write_atomically(RunDir(out / name).sweeps_path, rows)
        report = write_report(out / name)
    return report


def _summary(nfsm: dict[str, Any], mamba: dict[str, Any]) -> None:
    """What was seen, in two lines."""
    from rich.table import Table
    from rich.text import Text

    _say("In short")
    table = Table(box=None, show_header=False, padding=(0, 2))
    proved = "right on every word of every length: a proof" if nfsm["certified"] else "not proved right"
    failing = nfsm["failing_length"]
    tried = f"tried to {nfsm['max_length']:,} moves" if failing is None else f"fails at {failing:,} moves"
    table.add_row(Text("NFSM", style="bold"), f"{proved}, and {tried}")
    longest, share = max((int(length), share) for length, share in mamba["accuracies"].items())
    failing = mamba["failing_length"]
    seen = f"no failure up to {longest:,} moves" if failing is None else f"fails at {failing:,} moves"
    table.add_row(
        Text("Mamba", style="bold"), f"{seen}; {share:.0%} of the words right at {longest:,}; no proof to be had"
    )
    table.add_row("", Text("a small one, trained for seconds; `detent table results` has others", style="dim"))
    show(table)


def _found(failing: int | None) -> str:
    return "no word goes wrong anywhere" if failing is None else f"fails at length {failing:,}"


def _say(sentence: str, depth: int = 0) -> None:
    from rich.text import Text

    show(Text(f"  {sentence}" if depth else f"\n{sentence}", style="" if depth else "bold"))


def _close(report: Path, seconds: float) -> None:
    detent = _program()
    _say(f"All of it, in {seconds:.0f} s")
    for line in (
        f"{report}   open it in a browser",
        f"{detent} check {report.parent / 'certificate.json'}   check the proof again, without torch",
        f"echo '(0 1) (1 2)' | {detent} run {report.parent / 'machine.json'}   run the machine, without the network",
        f"{detent} tasks   what else there is; {detent} train YOUR_MACHINE.dot learns one of yours",
    ):
        _say(line, 1)


def _program() -> str:
    """What to type: `detent` where the shell finds it, else as it was called, such as .venv/bin/detent."""
    called = Path(sys.argv[0])
    if shutil.which("detent") is not None or called.name != "detent":
        return "detent"
    return os.path.relpath(called)

"""`exactstate demo`: learn S3, certify it, sweep it to a million steps beside a GRU, an LSTM and a Mamba."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.cli._errors import Interrupted
from exactstate.cli._output import AsJson, facts, print_json, show
from exactstate.records import Row

if TYPE_CHECKING:
    from exactstate.train import TrainConfig

MAX_LENGTH, BASELINE_MAX_LENGTH = 1 << 20, 1 << 12
BASELINES = {"gru": "GRU", "lstm": "LSTM", "mamba": "Mamba"}

Print = Callable[..., None]
STAGES = {
    "learned": "learned, with {heads} heads in training ({seconds:.1f} s)",
    "kept": "the kept heads alone are the network now, their margins widened, its read-out trained ({seconds:.1f} s)",
    "pruned": "pruned to {heads} heads ({seconds:.1f} s)",
    "compressed": "the machine distilled into {heads} heads ({seconds:.1f} s)",
}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the runs are saved.")] = Path(
        "runs/demo"
    ),
    max_length: Annotated[int, typer.Option("--max-length", min=2, help="Longest words of the sweep.")] = MAX_LENGTH,
    as_json: AsJson = False,
) -> None:
    """Learn S3 by gradient, certify it, sweep it to a million steps beside a GRU, an LSTM and a Mamba, report it.

    A second call shows the saved results. Exit code 0 when the NFSM is certified and does not fail, and the Mamba does.

    Examples:

        exactstate demo
        exactstate demo --out demos/s3 --json
    """
    import torch

    began = time.perf_counter()
    torch.set_num_threads(1)  # small batches: a second thread costs more than it saves
    write: Print = (lambda *_: None) if as_json else _write
    try:
        rows = {"nfsm": _nfsm(out / "nfsm", max_length, write)}
        rows |= {cell: _baseline(cell, out / cell, max_length, write) for cell in BASELINES}
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; repeat the command to resume {out}.") from None
    report = _write_reports(out, rows)
    nfsm_holds = rows["nfsm"]["certified"] and rows["nfsm"]["failing_length"] is None
    as_expected = nfsm_holds and rows["mamba"]["failing_length"] is not None
    if as_json:
        print_json({**rows, "report": str(report), "seconds": round(time.perf_counter() - began, 1)})
    else:
        _write_summary(rows)
        _write_next_steps(report, time.perf_counter() - began)
    raise typer.Exit(0 if as_expected else 1)


def _nfsm(folder: Path, max_length: int, write: Print) -> Row:
    from exactstate.evaluate import sweep_run
    from exactstate.report.sentences import claim
    from exactstate.train import train
    from exactstate.train.run_dir import RunDir

    write("Three cards in a row, and two moves: swap the first two, or swap the last two. What is their order now?")
    write("This is the task S3. Train an NFSM by gradient on short words, labeled with the order after every move")
    tell = _told(write)
    for row in RunDir(folder).history():
        tell(row)
    run = train("S3", watch=tell, out=folder)
    write("Extract the machine from the weights, compare it with S3 on every word, bound the rounding error")
    write(claim(run.certificate().content) if run.certified else run.verdict.explain(), 1)
    write(f"Test it as well: 64 words of {max_length:,} moves")
    swept, row = sweep_run(folder, max_length=max_length)
    write(f"{_result(swept.failing_length)} ({swept.seconds:.1f} s)", 1)
    return {**row, "steps": run.steps, "training_seconds": round(run.seconds, 2)}


def _told(write: Print) -> Callable[[Row], None]:
    """Say what a row of the history brings: heads that are kept, stages that are done."""
    from exactstate.report.figures.search import readings

    history = list[Row]()

    def tell(row: Row) -> None:
        history.append(row)
        if row["phase"] == "search" and (new := readings(history)[-1].new):
            sizes = " and ".join(f"a head of {size} indices" for size in new)
            follows = "follows" if len(new) == 1 else "follow"
            left = f"{row['open']:.2f} nats are left open" if row["open"] else "no two orders are confused"
            write(f"step {row['step']}: keep {sizes}, which {follows} a part of the order exactly; {left}", 1)
        elif row["phase"] == "stage":
            write(STAGES[row["stage"]].format(heads=len(row["heads"]), seconds=row["seconds"]), 1)

    return tell


def _baseline(cell: str, folder: Path, max_length: int, write: Print) -> Row:
    from exactstate.evaluate import sweep_run
    from exactstate.train import train

    config = _baseline_config(cell)
    write(f"Train a small {BASELINES[cell]} on the same task, on words of {config.end_to_end.length} moves")
    run = train(config, out=folder)
    write(f"{run.accuracy:.0%} of fresh words correct, {run.steps} steps, {run.seconds:.1f} s", 1)
    write("Test it on longer words")
    swept, row = sweep_run(folder, max_length=min(max_length, BASELINE_MAX_LENGTH))
    shares = [f"{length}: {share:.0%}" for length, share in sorted(swept.accuracies.items()) if length >= 8]
    write(f"{_result(swept.failing_length)}; words correct by length: {', '.join(shares)}", 1)
    return {**row, "steps": run.steps, "training_seconds": round(run.seconds, 2)}


def _baseline_config(cell: str) -> TrainConfig:
    """One layer, as small as learns the task in seconds."""
    from exactstate.train import EndToEndConfig, TrainConfig

    size, lr = (64, 1e-2) if cell != "mamba" else (32, 3e-3)
    return TrainConfig(
        task="S3", cell=cell, recipe="demo", layers=1, width=size, channels=size, states=16, dropout=0.0,
        end_to_end=EndToEndConfig(
            batch=64, length=16, lr=lr, final_lr=lr / 10, steps=400, check_every=25, check_words=256,
            stop_accuracy=0.99, stop_checks=2,
        ),
    )  # fmt: skip


def _write_reports(out: Path, rows: dict[str, Row]) -> Path:
    """The reports of all runs; that of the NFSM shows all sweeps."""
    from exactstate import records
    from exactstate.report import write_report
    from exactstate.train.run_dir import RunDir

    for name, shown in {**{cell: [cell] for cell in BASELINES}, "nfsm": [*rows]}.items():
        lines = "".join(json.dumps(rows[one]) + "\n" for one in shown)
        records.write_atomically(RunDir(out / name).sweeps_path, lines)
        report = write_report(out / name)
    return report


def _write_summary(rows: dict[str, Row]) -> None:
    _write("Summary")
    proved = "proved correct on every word of every length" if rows["nfsm"]["certified"] else "not proved correct"
    lines = [("NFSM", f"{proved}; {_tested(rows['nfsm'], 'tested up to')}")]
    for cell, name in BASELINES.items():
        longest, share = max((int(length), share) for length, share in rows[cell]["accuracies"].items())
        correct = f"{share:.0%} of words correct at {longest:,} moves"
        lines.append((name, f"nothing proved; {_tested(rows[cell], 'no failure up to')}; {correct}"))
    show(facts([*lines, ("", "small networks, trained for seconds")]))


def _tested(row: Row, held: str) -> str:
    failing, longest = row["failing_length"], max(map(int, row["accuracies"]))
    return f"{held} {longest:,} moves" if failing is None else f"fails at {failing:,} moves"


def _result(failing_length: int | None) -> str:
    return "no failure" if failing_length is None else f"fails at length {failing_length:,}"


def _write(sentence: str, depth: int = 0) -> None:
    from rich.text import Text

    show(Text(f"  {sentence}" if depth else f"\n{sentence}", style="" if depth else "bold"))


def _write_next_steps(report: Path, seconds: float) -> None:
    from exactstate.train.run_dir import RunDir

    called, run = Path(sys.argv[0]), RunDir(report.parent)
    is_found = shutil.which("exactstate") is not None or called.name != "exactstate"
    exactstate = "exactstate" if is_found else os.path.relpath(called)
    _write(f"Done in {seconds:.0f} s")
    for line in (
        f"{report}   open it in a browser",
        f"{exactstate} check {run.certificate_path}   check the proof, without torch",
        f"echo '(0 1) (1 2)' | {exactstate} run {run.machine_path}   run the machine, without the network",
        f"{exactstate} tasks   list the tasks; {exactstate} train MACHINE.dot trains on a machine of yours",
    ):
        _write(line, 1)

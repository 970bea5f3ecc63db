"""`python -m paper.experiments.stories`: Tracking Shuffled Objects for several seeds, one row per run.

Rows are appended to `results/tso.jsonl` as runs end; a run whose row is there is not done again. The certificate of
the first seed of every task is kept.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch

from detent import records
from detent.train import Run, train
from detent.train.free_text import extract_free_text

SEEDS = (42, 43, 44, 45, 46)
TASKS = ("TSO3", "TSO4", "TSO5")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.stories", description=__doc__.splitlines()[0]
    )  # fmt: skip
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="TSO3, TSO4, TSO5; all of them without")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="SEED")
    parser.add_argument("--alone", action="store_true", help="note in the rows that nothing else was running")
    parser.add_argument("--rows", type=Path, default=Path("results/tso.jsonl"), metavar="FILE")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="FOLDER", help="where the runs are kept")
    parser.add_argument("--certificates", type=Path, default=Path("results/certificates"), metavar="FOLDER")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    done = records.read(asked.rows) if asked.rows.exists() else iter(())
    known = {(row["task"], row["seed"]) for row in done if row["recipe"] == "distill"}
    for name in asked.tasks or TASKS:
        for seed in asked.seeds:
            if (name, seed) not in known:
                kept = asked.certificates / f"{name}-{seed}.json" if seed == SEEDS[0] else None
                begun = time.process_time()
                run = train(name, seed=seed, out=asked.runs / f"{name}-{seed}")
                spent = {"cpu_seconds": round(time.process_time() - begun, 1)}
                if run.certified and kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    run.certificate().write(kept)
                records.append(asked.rows, {**report(run), **spent, "alone": asked.alone, **records.stamp()})
                print(f"{name} seed {seed}: {run.verdict.explain()} ({run.seconds:.0f} s)", flush=True)


def report(run: Run) -> dict[str, Any]:
    """What there is to say of a run, from its certificate to what each head is for."""
    certificate = run.certificate() if run.certified else None
    free_text = extract_free_text(run.model, run.extracted)
    registers = {register.name: register.of_state for register in run.task.registers}
    return {
        "task": run.task.name, "recipe": run.config.recipe, "seed": run.config.seed,
        "layers": [list(layer) for layer in run.extracted.heads], "certified": run.certified,
        "verdict": run.verdict.explain(), "steps": run.steps, "restarts": run.restarts,
        "seconds": round(run.seconds, 1), "threads": torch.get_num_threads(),
        "joint_indices": run.extracted.joint_indices, "reached": len(run.extracted.reached),
        "configurations": run.verdict.configurations, "states": run.verdict.task_states,
        "weakest_margin": run.extracted.weakest.margin, "weights": run.extracted.weights,
        "certificate": None if certificate is None else certificate.sha256,
        "proved": [] if certificate is None else list(certificate.proved),
        "right_in_any_order": free_text.right, "configurations_in_any_order": free_text.configurations,
        "heads": run.extracted.describe(registers).splitlines()[1:],
    }  # fmt: skip


if __name__ == "__main__":
    main()

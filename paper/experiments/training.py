"""`python -m paper.experiments.training`: train the paper's algebraic tasks with five seeds each, one row per run.

Rows are appended to `results/training.jsonl` as runs end; a run whose row is there is not done again. The recipe of the
paper (`--recipe paper`) gets the paper's heads and a budget of steps, the first of 100,000, in one attempt or in
several that are as long as each other, and writes `results/paper_arm.jsonl`. The first seed's certificates, with heads
chosen by the library, are kept in `results/certificates`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from detent import records
from detent.train import EndToEndConfig, TrainConfig, train

SEEDS = (42, 43, 44, 45, 46)
CHOSEN = [(name, None) for name in ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF")]
"""Heads chosen by the library."""
AS_IN_THE_PAPER: list[tuple[str, tuple[int, ...] | None]] = [
    ("Z2", (2,)), ("Z16", (16,)), ("S3", (3, 2)), ("S4", (4, 3, 2)), ("A5", (5, 12)), ("M11", (11, 11, 11, 11)),
    ("DFF5", (3,)), ("FF", (3,)), ("S3", (6,)), ("S4", (24,)), ("A5", (60,)),
]  # fmt: skip

GENEROUS: list[tuple[str, tuple[int, ...] | None]] = [
    ("Z2", (2, 2, 2)), ("S3", (3, 3, 3, 2, 2)), ("S4", (24, 24, 24)), ("DFF5", (3, 3, 3)), ("FF", (3, 3, 3)),
]  # fmt: skip
"""More heads than needed, for the paper's recipe."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.experiments.training", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, metavar="FILE")
    parser.add_argument("--recipe", default="induce", help="induce, distill or paper")
    parser.add_argument("--tasks", nargs="*", metavar="TASK", help="only these")
    parser.add_argument("--budget", type=int, default=2000, metavar="STEPS", help="of the paper's recipe, per run")
    parser.add_argument("--attempts", type=int, default=1, help="among which that recipe may divide its budget")
    parser.add_argument("--generous", action="store_true", help="give that recipe more heads than the paper's")
    parser.add_argument("--masks", type=int, default=EndToEndConfig().masks, help="dropout masks per symbol")
    asked = parser.parse_args()
    paper = asked.recipe == "paper"
    asked.rows = asked.rows or Path("results") / ("paper_arm.jsonl" if paper else "training.jsonl")
    torch.set_num_threads(1)
    done = {_key(row) for row in records.read(asked.rows)} if asked.rows.exists() else set()
    given = GENEROUS if asked.generous else AS_IN_THE_PAPER[: len(CHOSEN)]
    for name, heads in given if paper else [*CHOSEN, *AS_IN_THE_PAPER]:
        for seed in SEEDS if not asked.tasks or name in asked.tasks else ():
            wanted = {
                "task": name,
                "recipe": asked.recipe,
                "seed": seed,
                "heads_given": None if heads is None else list(heads),
            }
            config = TrainConfig(task=name, seed=seed, heads=heads, recipe=asked.recipe)
            if paper:
                steps, horizon = asked.budget // asked.attempts, EndToEndConfig().steps
                phase = EndToEndConfig(steps=steps, horizon=horizon, masks=asked.masks)
                about = {"budget": asked.budget, "attempts": asked.attempts, "masks": asked.masks}
                wanted |= {**about, "horizon": phase.horizon}
                config = replace(config, restarts=asked.attempts - 1, end_to_end=phase)
            if _key(wanted) in done:
                continue
            begun = time.process_time()
            run = train(config)
            busy, ended = time.process_time() - begun, time.perf_counter()
            certificate = run.certificate() if run.certified else None
            proving = time.perf_counter() - ended
            if certificate is not None and heads is None and seed == SEEDS[0]:
                certificate.write(asked.rows.parent / "certificates" / f"{name}-{seed}.json")
            row = {
                **wanted, "heads": list(run.heads), "certified": run.certified, "steps": run.steps,
                "restarts": run.restarts, "seconds": round(run.seconds, 3), "cpu_seconds": round(busy, 3),
                "proving_seconds": round(proving, 3), "threads": torch.get_num_threads(),
                "joint_indices": run.extracted.joint_indices, "reached": len(run.extracted.reached),
                "states": run.task.machine.n_states, "weights": run.extracted.weights,
                "certificate": None if certificate is None else certificate.sha256,
                "proved": [] if certificate is None else list(certificate.proved),
                **({"last_check": run.history[-1]} if paper else {}), **records.stamp(),
            }  # fmt: skip
            records.append(asked.rows, row)
            verdict = "certified" if run.certified else "NOT certified"
            print(f"{name} {row['heads']} seed {seed}: {verdict}, {run.seconds:.1f} s", flush=True)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    about = (row.get(name) for name in ("budget", "attempts", "masks"))
    return row["task"], row["recipe"], row["seed"], str(row["heads_given"]), *about


if __name__ == "__main__":
    main()

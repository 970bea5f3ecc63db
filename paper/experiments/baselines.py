"""`python -m paper.experiments.baselines`: train the baselines over tasks and seeds, one row per run.

Rows are appended to `results/baselines.jsonl` as runs end, and the folders stay in `runs` for length sweeps. A run
whose row is there is not done again, and one that was cut off goes on. All of the first seed come before the second.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from detent import records
from detent.train import configure, train

CELLS = ("mamba", "aussm", "pdssm")
TASKS = ("FF", "DFF5", "Z2", "S3", "S4")
SEEDS = (42, 43, 44)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.experiments.baselines", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=Path("results/baselines.jsonl"), metavar="FILE")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="FOLDER")
    parser.add_argument("--recipe", default="cpu", help="cpu, cpu-long, cpu-short or paper")
    parser.add_argument("--tasks", nargs="+", default=TASKS, metavar="TASK")
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="CELL")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, metavar="SEED")
    parser.add_argument("--steps", type=int, metavar="N", help="put every run down at this step; its row says so")
    asked = parser.parse_args()
    torch.set_num_threads(1)  # arrays are small: two runs side by side are faster than one on two cores
    rows = records.read(asked.rows) if asked.rows.exists() else iter(())
    done = {_key(row) for row in rows if row.get("over", True)}
    for seed in asked.seeds:
        for name in asked.tasks:
            for cell in asked.cells:
                config = configure(name, cell=cell, recipe=asked.recipe, seed=seed)
                if _key(asdict(config)) in done:
                    continue
                folder = asked.runs / f"{name}-{seed}-{cell}-{asked.recipe}"
                run = train(config, out=folder, until=asked.steps)
                row = {**run.row(), "threads": torch.get_num_threads(), "folder": folder.name, **records.stamp()}
                records.append(asked.rows, row)
                said = "learned" if run.learned else "not learned"
                print(
                    f"{name} {cell} seed {seed}: {said}, accuracy {run.accuracy:.3f}, "
                    f"{run.steps} steps, {run.seconds:.0f} s",
                    flush=True,
                )


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["task"], row["cell"], row["recipe"], row["seed"]


if __name__ == "__main__":
    main()

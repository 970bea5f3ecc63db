"""`python -m paper.experiments.sweeps`: sweep the runs in a folder, one row each.

Rows are appended to `results/sweeps.jsonl`; a run whose row is there is not swept again, and one that is still being
trained is left for later.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from detent import records
from detent.evaluate.sweep_run import sweep_run
from detent.train.run_dir import RunDir


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.experiments.sweeps", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="FOLDER")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of runs, such as FF-*-mamba-cpu")
    parser.add_argument("--rows", type=Path, default=Path("results/sweeps.jsonl"), metavar="FILE")
    parser.add_argument("--batch", type=int, default=128, help="words per length")
    parser.add_argument("--max-length", type=int, default=1 << 20, help="of an NFSM")
    parser.add_argument("--baselines-max-length", type=int, default=1 << 16, help="of a baseline")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    done = {(row["folder"], row["batch"], row["max_length"]) for row in _rows(asked.rows)}
    for run in (found.path for found in RunDir.find(asked.runs, asked.only) if found.finished):
        machine = RunDir(run).config()["cell"] == "nfsm"
        longest = asked.max_length if machine else asked.baselines_max_length
        if (run.name, asked.batch, longest) in done:
            continue
        swept, row = sweep_run(run, max_length=longest, batch=asked.batch)
        records.append(asked.rows, {**row, "folder": run.name})
        print(f"{run.name}: {swept.sentence()}, {swept.seconds:.0f} s", flush=True)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [row for row in records.read(path) if "folder" in row] if path.exists() else []


if __name__ == "__main__":
    main()

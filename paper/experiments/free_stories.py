"""`python -m paper.experiments.free_stories`: the paper's recipe on Tracking Shuffled Objects.

Two layers, stories of 256 tokens in batches of 64, states at every token and the answer at the last. It ends when the
network is certified or the time is up; the row says how far it got.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from detent import records
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.train import EndToEndConfig, configure, train

LENGTH = 256


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.free_stories", description=__doc__.splitlines()[0]
    )
    parser.add_argument("task", nargs="?", default="TSO3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[42], metavar="SEED")
    parser.add_argument("--minutes", type=float, default=40.0, help="for every seed")
    parser.add_argument("--length", type=int, default=LENGTH, help="tokens of a story in training")
    parser.add_argument("--rows", type=Path, default=Path("results/tso.jsonl"), metavar="FILE")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for seed in asked.seeds:
        row = learn_freely(get_task(asked.task), seed, asked.minutes * 60, asked.length)
        records.append(asked.rows, {**row, **records.stamp()})


def learn_freely(task: Task, seed: int, seconds: float, length: int) -> dict[str, Any]:
    """Train until certified or out of time, and say how far it got."""
    assert task.layers is not None
    phase = EndToEndConfig(batch=64, length=length, check_words=128)
    config = configure(task.name, task=task, recipe="paper", seed=seed, restarts=0, end_to_end=phase)
    run = train(config, lambda row: print(row, flush=True), max_seconds=seconds)
    return {
        "task": task.name, "recipe": "paper", "seed": seed, "layers": [list(heads) for heads in task.layers],
        "certified": run.certified, "steps": run.steps, "seconds": round(run.seconds, 1),
        "budget_seconds": seconds, "restarts": 0, "length": length, "loss": run.last_state["loss"],
        "best_accuracy": run.accuracy, "first_error": run.first_error, "threads": torch.get_num_threads(),
    }  # fmt: skip


if __name__ == "__main__":
    main()

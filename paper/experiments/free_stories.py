"""`python -m paper.experiments.free_stories`: the paper's recipe on Tracking Shuffled Objects.

Two layers, stories of 256 tokens in batches of 64, states at every token and the answer at the last. It ends when the
network is certified or the time is up; the row says how far it got.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from detent import records
from detent.errors import BudgetExceeded
from detent.extract import Budget
from detent.nn import Backbone
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.train import Settings, Tracking
from detent.train.build import judged, network

PAPER = Settings(batch=64, length=256, check_words=128)
ENOUGH = Budget(configurations=1_000_000, seconds=300.0)
"""For the judge: a network that knows little may reach configurations without end."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.free_stories", description=__doc__.splitlines()[0]
    )
    parser.add_argument("task", nargs="?", default="TSO3")
    parser.add_argument("--seeds", type=int, nargs="+", default=[42], metavar="SEED")
    parser.add_argument("--minutes", type=float, default=40.0, help="for every seed")
    parser.add_argument("--length", type=int, default=PAPER.length, help="tokens of a story in training")
    parser.add_argument("--rows", type=Path, default=Path("results/tso.jsonl"), metavar="FILE")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for seed in asked.seeds:
        row = learn_freely(get_task(asked.task), seed, asked.minutes * 60, asked.length)
        records.append(asked.rows, {**row, **records.stamp()})


def learn_freely(task: Task, seed: int, seconds: float, length: int) -> dict[str, Any]:
    """Train until certified or out of time, and say how far it got."""
    assert task.layers is not None
    begun, best, verdict = time.perf_counter(), 0.0, None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = network(task, task.layers, generator=torch.Generator().manual_seed(seed))
        settings = Settings(batch=PAPER.batch, length=length, check_words=PAPER.check_words)
        phase = Tracking(model, task, settings, np.random.default_rng(seed))
        while not (verdict or phase.done or (phase.steps and time.perf_counter() - begun >= seconds)):
            phase.step()
            if phase.steps % phase.check_every == 0:
                check = phase.check()
                best = max(best, check["accuracy"])
                print(f"step {phase.steps}, {time.perf_counter() - begun:.0f} s: {check}", flush=True)
                verdict = check["accuracy"] == 1.0 and _certified(model, task)
    return {
        "task": task.name, "recipe": "paper", "seed": seed, "layers": [list(heads) for heads in task.layers],
        "certified": bool(verdict), "steps": phase.steps, "seconds": round(time.perf_counter() - begun, 1),
        "budget_seconds": seconds, "restarts": 0, "length": length, "loss": phase.loss, "best_accuracy": best,
        "first_error": phase.reached, "threads": torch.get_num_threads(),
    }  # fmt: skip


def _certified(model: Backbone, task: Task) -> bool:
    try:
        return bool(judged(model, task, ENOUGH)[1])
    except BudgetExceeded:
        return False


if __name__ == "__main__":
    main()

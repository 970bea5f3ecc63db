"""Redundant heads: how many of sixteen a trained network can do without, by a proof, before its machine is explored.

A plain model with the default NFSM layer learns a word problem by gradient, from words and states, until fresh words
are right, and some steps more. Its machine is extracted without pruning it first. Every row has the heads that were
kept, the configurations reached, whether the machine and float32 are certified; and where the proof failed, the margin
of the labels beside the spread of what the heads add. `python -m paper run redundancy` makes
`results/redundancy.jsonl`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

import exactstate
from exactstate.errors import BudgetExceeded
from exactstate.extract import Budget, rounding_errors
from exactstate.records import Row
from paper.experiments.comparison import sample
from paper.experiments.runner import Campaign, Job, Options

WIDTH, BATCH, LENGTH, CHECK_EVERY = 64, 64, 32, 25
READOUTS = ("linear", "mlp", "norm")


class WideModel(nn.Module):
    """Embedding, norm, the default layer, and a read-out of one of three kinds."""

    def __init__(self, symbols: int, labels: int, readout: str) -> None:
        super().__init__()
        self.embedding, self.norm, self.layer = (
            nn.Embedding(symbols, WIDTH),
            nn.LayerNorm(WIDTH),
            exactstate.NFSM(WIDTH, dictionary=None),
        )
        mlp = nn.Sequential(nn.Linear(WIDTH, 128), nn.ReLU(), nn.Linear(128, labels))
        self.readout: nn.Module = mlp
        if readout == "linear":
            self.readout = nn.Linear(WIDTH, labels)
        elif readout == "norm":
            self.readout = nn.Sequential(nn.LayerNorm(WIDTH), mlp)

    def forward(self, words: Tensor) -> Tensor:
        return self.readout(self.layer(self.norm(self.embedding(words)))[0])


def train(name: str, readout: str, seed: int, more: int, most: int = 1000) -> tuple[WideModel, int | None]:
    """(model, steps until fresh words were right; None if they never were); then so many steps more."""
    torch.manual_seed(seed)
    task, generator = exactstate.task(name), np.random.default_rng(seed)
    model = WideModel(task.machine.n_symbols, task.machine.n_states, readout)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0, fused=True)
    length, right_at = 8, None
    for step in range(1, most + 1):
        words, labels = sample(task, BATCH, length, generator)
        logits = model.train()(words)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if float((logits.detach().argmax(-1) == labels).float().mean()) > 0.9:
            length = min(LENGTH, length + 1)
        if right_at is None and step % CHECK_EVERY == 0 and length == LENGTH:
            words, labels = sample(task, BATCH, 256, generator)
            with torch.no_grad():
                right_at = step if bool((model.eval()(words).argmax(-1) == labels).all()) else None
        if right_at is not None and step >= right_at + more:
            break
    return model.eval(), right_at


@torch.no_grad()
def spread_and_margin(model: WideModel, name: str) -> tuple[float, float]:
    """(the sum over heads of the largest distance between what two indices add, relative to the median norm of the
    layer's output; the smallest margin of a label) on random words."""
    words, _ = sample(exactstate.task(name), BATCH, LENGTH, np.random.default_rng(0))
    layer, total, begin = model.layer, 0.0, 0
    for head, d in enumerate(layer.heads):
        columns = slice(head * layer.value_width, (head + 1) * layer.value_width)
        added = layer.values[begin : begin + d] @ layer.out_proj.weight[:, columns].T
        total, begin = total + float(torch.cdist(added, added).max()), begin + d
    outputs = layer(model.norm(model.embedding(words)))[0]
    top = model(words).topk(2, dim=-1).values
    return total / float(outputs.norm(dim=-1).median()), float((top[..., 0] - top[..., 1]).min())


def redundancy_row(name: str, readout: str, seed: int, more: int, configurations: int) -> Row:
    """Train, extract without pruning, certify."""
    target = exactstate.task(name).machine
    started = time.process_time()
    model, right_at = train(name, readout, seed, more)
    row: Row = {"task": name, "readout": readout, "seed": seed, "right_at": right_at, "more_steps": more,
                "heads": len(model.layer.heads), "train_seconds": round(time.process_time() - started, 2)}  # fmt: skip
    spread, margin = spread_and_margin(model, name)
    row |= {"relative_spread": round(spread, 3), "least_margin": round(margin, 3)}
    started = time.process_time()
    try:
        machine = exactstate.extract(
            model, symbols=target.symbols, labels=target.states, budget=Budget(configurations=configurations)
        )
    except BudgetExceeded as error:
        row |= {"kept": None, "configurations": None, "certified": False, "refused": str(error)}
    else:
        kept = len(machine.heads[0])
        row |= {"kept": kept, "configurations": len(machine.configurations),
                "certified": bool(exactstate.certify(machine, target))}  # fmt: skip
        if machine.dropped:
            errors = rounding_errors(model, machine, "float32")
            row["float32_proved"] = bool((machine.label_margins > 2.0 * errors.labels).all())
    return {**row, "extract_seconds": round(time.process_time() - started, 2)}


def jobs(options: Options) -> Iterator[Job]:
    more, configurations = int(options.settings["more"]), int(options.settings["configurations"])
    for name in options.tasks:
        for readout in options.cells:
            for seed in options.seeds:
                key = {"task": name, "readout": readout, "seed": seed, "more_steps": more}
                yield Job(key, partial(redundancy_row, name, readout, seed, more, configurations))


REDUNDANCY = Campaign(
    name="redundancy", summary="Heads that a trained wide network is proved to do without.", file="redundancy.jsonl",
    jobs=jobs, tasks=("S3", "S4", "A5"), cells=READOUTS, seeds=(42, 43, 44),
    settings={"more": 200, "configurations": 20_000},
)  # fmt: skip

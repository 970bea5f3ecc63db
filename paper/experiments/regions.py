"""Robust certificates: the largest radius that is certified around the symbols, beside the smallest that is broken.

Word problems whose symbols are Gaussian clouds: a network reads points near the prototypes. S3 is learned by gradient
from words and states. For A5 the tables of a factoring are the targets (`distilled`); with sixteen heads, pruned, and
clouds in sixteen dimensions it is learned by gradient, too (see `supervision.py`). Every row has the radius certified
by intervals and by linear relaxation, the radius at which an attack found a counterexample, their times, and how many
random and adversarial inputs of the certified regions changed a table: none may.
`python -m paper run regions` makes `results/regions.jsonl`.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import exactstate
from exactstate.automata import factor
from exactstate.extract import Extracted
from exactstate.extract.graph.network import layer_output
from exactstate.extract.regions import attack, broken_radii, largest_radii, random_changes
from exactstate.records import Row
from paper.experiments.runner import Campaign, Job, Options
from paper.experiments.supervision import CLOUD_DEVIATION, Data, fit, shrink
from paper.experiments.supervision import Model as WideModel

INPUTS, SPREAD = 3, 0.12
EXAMPLES = Path(__file__).parents[2] / "examples"
RECIPES = {"S3": ("gradient",), "A5": ("distilled", "gradient")}
SCRIPTS = {"digits": "digits_sum.py", "sensor": "noisy_sensor.py"}


class CloudReader(nn.Module):
    """An encoder, NFSM heads of the sizes that the task needs, and a read-out."""

    def __init__(
        self, inputs: int, heads: tuple[int, ...], labels: int, width: int = 32, initial_state: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width))
        self.memory = exactstate.NFSM(width, heads, noise=False, remember=1.0, temperature=1.0,
                                  initial_state=initial_state)  # fmt: skip
        self.readout = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, labels))

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


def centers(symbols: int) -> Tensor:
    """Prototypes that lie apart: points of a cube of radius 1, chosen one after the other far from the others."""
    generator = torch.Generator().manual_seed(0)
    candidates = 2 * torch.rand(4096, INPUTS, generator=generator) - 1
    chosen = [candidates[0]]
    while len(chosen) < symbols:
        far = torch.stack([(candidates - point).norm(dim=1) for point in chosen]).min(0).values
        chosen.append(candidates[far.argmax()])
    return torch.stack(chosen)


def train(name: str, heads: tuple[int, ...], steps: int, seed: int) -> tuple[CloudReader, Tensor, float]:
    """(model, prototypes, seconds): words of growing length, every label."""
    torch.manual_seed(seed)
    machine, rng = exactstate.task(name).machine, np.random.default_rng(seed)
    points = centers(machine.n_symbols)
    model = CloudReader(INPUTS, heads, machine.n_states)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    started, length, recent = time.process_time(), 2, 0.0
    for _ in range(steps):
        words = rng.integers(0, machine.n_symbols, (64, length))
        state, labels = np.full(64, machine.start), []
        for symbols in words.T:
            state = machine.tables[symbols, state]
            labels.append(state)
        target = torch.from_numpy(np.stack(labels, 1).astype(np.int64))
        x = points[torch.from_numpy(words)]
        logits = model.train()(x + SPREAD * torch.randn(x.shape))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = 0.9 * recent + 0.1 * float((logits.argmax(-1) == target).float().mean())
        if recent > 0.97 and length < 24:
            length, recent = length + 2, 0.8
    return model.eval(), points, time.process_time() - started


def train_wide(name: str, seed: int) -> tuple[nn.Module, Tensor, float]:
    """(model, prototypes, seconds): the default layer, learned by gradient and pruned on words of clouds."""
    torch.manual_seed(seed)
    data = Data(exactstate.task(name).machine, np.random.default_rng(seed), by_state=True, cloud=CLOUD_DEVIATION)
    started = time.process_time()
    model = WideModel(data)
    fit(model, data, steps=1000, lr=3e-3, first_length=6)
    return shrink(model, data), data.prototypes, time.process_time() - started


def distill(name: str, steps: int, seed: int) -> tuple[CloudReader, Tensor, float]:
    """(model, prototypes, seconds): the targets are the tables of a factoring and the labels of its states."""
    torch.manual_seed(seed)
    machine = exactstate.task(name).machine
    factoring, points = factor(machine), centers(machine.n_symbols)
    start = [int(chi[machine.start]) for chi in factoring.partitions]
    model = CloudReader(INPUTS, factoring.sizes, machine.n_states, initial_state=start)
    tables = [torch.tensor(table.tolist()) for table in factoring.tables]
    indices = torch.from_numpy(np.stack(factoring.partitions, 1)).long()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    started = time.process_time()
    for _ in range(steps):
        words = torch.randint(0, machine.n_symbols, (64,))
        logits = model.memory.logits(model.encoder(points[words] + SPREAD * torch.randn(64, INPUTS)))
        loss = sum(
            nn.functional.cross_entropy(head.transpose(1, 2).flatten(0, 1), table[words].flatten())
            for head, table in zip(logits, tables, strict=True)
        )
        read = model.readout(layer_output(model.memory, indices))
        loss = loss + nn.functional.cross_entropy(read, torch.arange(machine.n_states))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), points, time.process_time() - started


def robustness(machine: Extracted, tries: int) -> Row:
    """The entries of a row: radii in every coordinate, the smallest over the symbols and the median."""
    row: Row = {}
    certified: dict[str, float] = {}
    for method in ("interval", "linear"):
        started = time.process_time()
        certified = largest_radii(machine, method=method)
        row[f"{method}_seconds"] = round(time.process_time() - started, 2)
        row[f"{method}_least"], row[f"{method}_median"] = _summary(certified)
    started = time.process_time()
    broken = broken_radii(machine)
    row["attack_seconds"] = round(time.process_time() - started, 2)
    row["broken_least"], row["broken_median"] = _summary(broken)
    row["certified_below_broken"] = all(certified[symbol] <= broken[symbol] for symbol in certified)
    row["adversarial_changes"] = len(attack(machine, certified, restarts=8, seed=7))
    row["random_tries"], row["random_changes"] = tries, random_changes(machine, certified, tries=tries)
    return row


def _summary(radii: dict[str, float]) -> tuple[float, float]:
    values = np.array(list(radii.values()))
    return round(float(values.min()), 5), round(float(np.median(values)), 5)


def cloud_row(name: str, recipe: str, seed: int, steps: int, tries: int, attempts: int = 3) -> Row:
    """Train until certified, then measure."""
    target = exactstate.task(name).machine
    model: nn.Module
    for attempt in range(attempts):
        if recipe == "gradient" and name != "S3":
            model, points, seconds = train_wide(name, seed + 1000 * attempt)
        elif recipe == "gradient":
            model, points, seconds = train(name, (6, 4), steps, seed + 1000 * attempt)
        else:
            model, points, seconds = distill(name, steps, seed + 1000 * attempt)
        inputs = dict(zip(target.symbols, points, strict=True))
        machine = exactstate.extract(model, inputs=inputs, labels=target.states)
        verdict = exactstate.certify(machine, target)
        if verdict:
            break
    row: Row = {"task": f"{name}, clouds", "recipe": recipe, "seed": seed, "attempts": attempt + 1,
                "certified": bool(verdict), "train_seconds": round(seconds, 1),
                "configurations": len(machine.configurations)}  # fmt: skip
    return {**row, **robustness(machine, tries)} if verdict else row


def example_row(task: str, script: str) -> Row:
    """What the `main` of an example returns."""
    started = time.process_time()
    row = runpy.run_path(str(EXAMPLES / script))["main"]()
    return {"task": task, **row, "seconds": round(time.process_time() - started, 1)}


def jobs(options: Options) -> Iterator[Job]:
    steps, tries = int(options.settings["steps"]), int(options.settings["tries"])
    for name in options.tasks:
        if name in SCRIPTS:
            yield Job({"task": name}, partial(example_row, name, SCRIPTS[name]))
            continue
        for seed in options.seeds:
            for recipe in RECIPES[name]:
                key = {"task": f"{name}, clouds", "recipe": recipe, "seed": seed}
                yield Job(key, partial(cloud_row, name, recipe, seed, steps, tries))


REGIONS = Campaign(
    name="regions", summary="Radii certified over regions of inputs, beside radii broken by an attack.",
    file="regions.jsonl", jobs=jobs, tasks=("S3", "A5", "digits", "sensor"), seeds=(42, 43, 44),
    settings={"steps": 800, "tries": 1_000_000},
)  # fmt: skip

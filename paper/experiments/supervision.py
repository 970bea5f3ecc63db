"""Weaker supervision: labels at the last symbol only, outputs only, wrong labels, symbols that are clouds of vectors.

    B  words     L  length     n  coordinates of a cloud

A plain PyTorch model with the default NFSM layer is trained by cross-entropy on what it is given, pruned with
`exactstate.nn.prune`, extracted with `exactstate.extract` and certified. Until the verdict, everything is decided
on data of the same kind: where labels are wrong in training, they are wrong in every check.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from exactstate import NFSM, certify, extract
from exactstate.automata import Mealy, Moore
from exactstate.errors import BudgetExceeded
from exactstate.extract import Budget
from exactstate.nn import prune, prune_indices
from exactstate.records import Row
from exactstate.tasks import task as get_task

WIDTH, BATCH, LENGTH, CHECK_EVERY = 64, 64, 32, 25
CLOUD_WIDTH, CLOUD_DEVIATION = 16, 0.3
IGNORED = -100
"""The label of a position that has none."""

KINDS: dict[str, dict[str, float]] = {
    "every": {},
    "last": {"last": 1.0},
    "outputs": {},
    "wrong 5%": {"wrong": 0.05},
    "wrong 20%": {"wrong": 0.2},
    "cloud": {"cloud": CLOUD_DEVIATION},
}
"""Kinds of supervision: where labels are, how many are wrong, how far inputs lie from their symbol."""


def serial_adder() -> Mealy:
    """Adds two binary numbers, the lowest digits first: the state is the carry, the output the digit of the sum."""
    pairs = [(a, b) for a in (0, 1) for b in (0, 1)]
    return Mealy(
        symbols=tuple(f"{a}+{b}" for a, b in pairs), states=("0", "1"), outputs=("0", "1"),
        tables=np.array([[(a + b + carry) // 2 for carry in (0, 1)] for a, b in pairs]),
        readout=np.array([[(a + b + carry) % 2 for carry in (0, 1)] for a, b in pairs]),
    )  # fmt: skip


def login() -> Mealy:
    """A session that is locked after three wrong passwords in a row, until it is reset."""
    states = ("out", "one wrong", "two wrong", "in", "locked")
    rows = {
        "right": [(3, "ok"), (3, "ok"), (3, "ok"), (3, "ignored"), (4, "locked")],
        "wrong": [(1, "no"), (2, "no"), (4, "locked"), (3, "ignored"), (4, "locked")],
        "logout": [(0, "ignored"), (1, "ignored"), (2, "ignored"), (0, "bye"), (4, "locked")],
        "reset": [(0, "ignored"), (0, "ignored"), (0, "ignored"), (3, "ignored"), (0, "ok")],
    }
    outputs = ("ok", "no", "bye", "ignored", "locked")
    return Mealy(
        symbols=tuple(rows), states=states, outputs=outputs,
        tables=np.array([[to for to, _ in row] for row in rows.values()]),
        readout=np.array([[outputs.index(output) for _, output in row] for row in rows.values()]),
    )  # fmt: skip


MACHINES: dict[str, Callable[[], Moore | Mealy]] = {
    "S3": lambda: get_task("S3").machine,
    "S4": lambda: get_task("S4").machine,
    "A5": lambda: get_task("A5").machine,
    "adder": serial_adder,
    "login": login,
}


def colored(machine: Moore) -> Moore:
    """The machine with one random bit as the output of every state."""
    readout = np.random.default_rng(42).integers(0, 2, machine.n_states)
    return Moore(symbols=machine.symbols, tables=machine.tables, outputs=("no", "yes"), readout=readout)


@dataclass
class Data:
    """Words with labels of one kind of supervision."""

    machine: Moore | Mealy
    generator: np.random.Generator
    by_state: bool
    """Whether labels are states; outputs otherwise."""
    last: float = 0.0
    wrong: float = 0.0
    cloud: float = 0.0
    prototypes: Tensor = field(init=False)
    """A n: the vector of every symbol, where inputs are clouds."""

    def __post_init__(self) -> None:
        self.prototypes = torch.from_numpy(
            np.random.default_rng(7).normal(size=(self.machine.n_symbols, CLOUD_WIDTH)).astype(np.float32)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        return self.machine.states if self.by_state else self.machine.outputs

    def sample(self, batch: int, length: int) -> tuple[Tensor, Tensor]:
        """(inputs: B L tokens or B L n, labels: B L); labels that are not given are IGNORED."""
        words = self.generator.integers(0, self.machine.n_symbols, (batch, length))
        if self.by_state:
            assert isinstance(self.machine, Moore)
            labels = self.machine.trajectory(words).astype(np.int64)
        else:
            labels = self.machine.output_ids(words).astype(np.int64)
        if self.wrong:
            other = self.generator.integers(1, len(self.labels), labels.shape)
            labels = np.where(
                self.generator.random(labels.shape) < self.wrong, (labels + other) % len(self.labels), labels
            )
        if self.last:
            end = self.generator.integers(0, length, batch)
            labels = np.where(np.arange(length) == end[:, None], labels, IGNORED)
        if not self.cloud:
            return torch.from_numpy(words), torch.from_numpy(labels)
        noise = self.generator.normal(scale=self.cloud, size=(*words.shape, CLOUD_WIDTH)).astype(np.float32)
        return self.prototypes[torch.from_numpy(words)] + torch.from_numpy(noise), torch.from_numpy(labels)


class Model(nn.Module):
    """Tokens or vectors, the layer, a small MLP; the read-out sees the layer alone."""

    def __init__(self, data: Data) -> None:
        super().__init__()
        inputs = nn.Linear(CLOUD_WIDTH, WIDTH) if data.cloud else nn.Embedding(data.machine.n_symbols, WIDTH)
        self.inputs, self.norm, self.layer = inputs, nn.LayerNorm(WIDTH), NFSM(WIDTH, dictionary=None)
        self.token = nn.Linear(WIDTH, WIDTH) if isinstance(data.machine, Mealy) else None
        self.readout = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 128), nn.SiLU(), nn.Linear(128, len(data.labels))
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.inputs(x))
        y, _ = self.layer(h)
        return self.readout(y if self.token is None else y + self.token(h))


@torch.no_grad()
def is_right(model: Model, data: Data, words: int = 256, length: int = 64) -> bool:
    """Whether all given labels are right, but for the share that is known to be wrong and its chance deviation."""
    inputs, labels = data.sample(words, length)
    model.eval()
    given = labels != IGNORED
    predicted = torch.cat([model(part).argmax(-1) for part in inputs.split(64)])
    share = float((predicted == labels)[given].float().mean())
    deviation = (data.wrong * (1 - data.wrong) / int(given.sum())) ** 0.5
    return share >= 1 - data.wrong - 4 * deviation


def fit(model: Model, data: Data, *, steps: int, lr: float, first_length: int) -> int | None:
    """Train until fresh words are right; the number of steps, or None. Wrong labels take four such checks in a row."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0, fused=True)
    length, passed = first_length, 0
    for step in range(1, steps + 1):
        inputs, labels = data.sample(BATCH, length)
        logits = model.train()(inputs)
        given = labels != IGNORED
        loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if float((logits.detach().argmax(-1) == labels)[given].float().mean()) > 0.9 - data.wrong:
            length = min(LENGTH, length + 1)
        if step % CHECK_EVERY == 0:
            passed = passed + 1 if is_right(model, data) and is_right(model, data, 64, 512) else 0
            if passed == (4 if data.wrong else 1):
                return step
    return None


def shrink(model: Model, data: Data) -> Model:
    """The model without heads and indices that fresh words of the same kind do not need."""
    inputs, labels = data.sample(BATCH, LENGTH)

    @torch.no_grad()
    def loss(smaller: Model) -> float:
        logits = smaller.eval()(inputs).flatten(0, 1)
        return float(cross_entropy(logits, labels.flatten(), ignore_index=IGNORED))

    smaller = prune(
        model, inputs, loss=loss, accept=lambda small: is_right(small, data) and is_right(small, data, 64, 512),
        fine_tune=lambda small: fit(small, data, steps=100, lr=1e-3, first_length=LENGTH), max_failures=2,
    )  # fmt: skip
    if not data.cloud:
        with torch.no_grad():
            rows = smaller.norm(smaller.inputs(torch.arange(data.machine.n_symbols)))
        smaller.layer = prune_indices(smaller.layer, rows)
    return smaller.eval()


def supervision_row(name: str, kind: str, seed: int, steps: int) -> Row:
    """Learn a machine from one kind of supervision, prune, extract and certify it; its row."""
    machine = MACHINES[name]()
    by_state = isinstance(machine, Moore) and kind != "outputs"
    if isinstance(machine, Moore) and kind == "outputs":
        machine = colored(machine)
    torch.manual_seed(seed)
    data = Data(machine, np.random.default_rng(seed), by_state, **KINDS[kind])
    started = time.process_time()
    row: Row = {
        "task": name, "kind": kind, "seed": seed, "states": machine.n_states, "labels": len(data.labels),
        "certified": False, "steps": None, "heads": None, "reached": None, "verdict": None,
        "threads": torch.get_num_threads(),
    }  # fmt: skip
    model = Model(data)
    row["steps"] = fit(model, data, steps=steps, lr=3e-3, first_length=6)
    if row["steps"] is None:
        row["verdict"] = f"not learned in {steps} steps"
    else:
        model = shrink(model, data)
        row["heads"] = list(model.layer.heads)
        vectors = dict(zip(machine.symbols, data.prototypes, strict=True)) if data.cloud else None
        try:
            machine_found = extract(
                model, symbols=None if data.cloud else machine.symbols, inputs=vectors, labels=data.labels,
                budget=Budget(configurations=60_000, seconds=60.0),
            )  # fmt: skip
        except BudgetExceeded as error:
            row["verdict"] = str(error)
        else:
            verdict = certify(machine_found, machine, labels="states" if by_state else "outputs")
            row |= {
                "certified": bool(verdict), "verdict": verdict.explain(), "reached": len(machine_found.reached)
            }  # fmt: skip
    return {**row, "cpu_seconds": round(time.process_time() - started, 2)}

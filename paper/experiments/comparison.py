"""NFSM, GRU, LSTM and Mamba- in the same plain model, with the same loss and the same CPU time.

    B  words     L  length     m  width     n  labels

The model is an embedding, one recurrent layer with a residual connection, an MLP and a linear read-out; the loss is the
cross-entropy of the state after every symbol. Words of training grow from 8 symbols to 32 with the accuracy. The
result is the share of right labels among the last 64 of words of 64 to 32,768 symbols.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from exactstate import NFSM
from exactstate.baselines import GRU, LSTM, MambaMinus
from exactstate.records import Row
from exactstate.tasks import Task

WIDTH, BATCH, LENGTH, CHECK_EVERY = 64, 64, 32, 25
LENGTHS = (64, 512, 4_096, 32_768)
WORDS, LAST = 32, 64
"""Words of a test, and how many of their last labels count."""

CELLS: dict[str, Callable[[], nn.Module]] = {
    "nfsm": lambda: NFSM(WIDTH, dictionary=None),
    "gru": lambda: GRU(WIDTH),
    "lstm": lambda: LSTM(WIDTH),
    "mamba": lambda: MambaMinus(WIDTH, WIDTH, 8),
}


class Tracker(nn.Module):
    """Embedding, recurrent layer, MLP, read-out."""

    def __init__(self, symbols: int, labels: int, layer: nn.Module) -> None:
        super().__init__()
        self.embedding, self.norm, self.layer = nn.Embedding(symbols, WIDTH), nn.LayerNorm(WIDTH), layer
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 128), nn.SiLU(), nn.Linear(128, WIDTH))
        self.readout = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, labels))

    def forward(self, words: Tensor) -> Tensor:
        return self.hidden(words)[0]

    def hidden(self, words: Tensor, state: object = None) -> tuple[Tensor, object]:
        """(logits, state of the layer), from a state of the layer or from its initial one."""
        h = self.embedding(words)
        y, state = self.layer(self.norm(h), state)
        h = h + y
        return self.readout(h + self.mlp(h)), state


def sample(task: Task, batch: int, length: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    """(words, the state after every symbol)."""
    drawn = task.sample(batch, length, generator)
    return torch.from_numpy(drawn.inputs.astype(np.int64)), torch.from_numpy(drawn.states.astype(np.int64))


@torch.no_grad()
def accuracy(model: Tracker, words: Tensor, labels: Tensor, chunk: int = 4_096) -> float:
    """The share of right labels among the last 64 of every word; long words are read in chunks."""
    model.eval()
    state: object = None
    for part in words.split(chunk, dim=1):
        logits, state = model.hidden(part, state)
    last = min(LAST, logits.shape[1])
    return float((logits[:, -last:].argmax(-1) == labels[:, -last:]).float().mean())


def fit(model: Tracker, task: Task, generator: np.random.Generator, seconds: float) -> tuple[int, int | None, float]:
    """Train for so many CPU seconds: (steps, the step at which a check was all right for the first time, seconds)."""
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0, fused=True)
    steps, exact, used, length = 0, None, 0.0, 8
    while used < seconds:
        started = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, 2.0 * (1.0 - used / seconds) + 0.02)
        words, labels = sample(task, BATCH, length, generator)
        logits = model.train()(words)
        loss = cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        if float((logits.detach().argmax(-1) == labels).float().mean()) > 0.9:
            length = min(LENGTH, length + 1)
        used += time.process_time() - started
        if steps % CHECK_EVERY == 0 and length == LENGTH:
            words, labels = sample(task, 128, 64, generator)
            with torch.no_grad():
                right = bool((model.eval()(words).argmax(-1) == labels).all())
            exact = steps if exact is None and right else exact
            if right and isinstance(model.layer, NFSM) and accuracy(model, *sample(task, 128, 512, generator)) == 1.0:
                break  # tables do not wear out; a network that is right this far rarely gains by more steps
    return steps, exact, used


def comparison_row(task: Task, cell: str, seed: int, seconds: float) -> Row:
    """Train one cell on a task; its accuracy at every length."""
    torch.manual_seed(seed)
    model = Tracker(task.machine.n_symbols, task.machine.n_states, CELLS[cell]())
    steps, exact, used = fit(model, task, np.random.default_rng(seed), seconds)
    test = np.random.default_rng([seed, 1])
    return {
        "task": task.name, "cell": cell, "seed": seed, "budget_seconds": seconds, "steps": steps, "exact_at": exact,
        "cpu_seconds": round(used, 2), "parameters": sum(p.numel() for p in model.parameters()),
        "accuracy": {str(length): accuracy(model, *sample(task, WORDS, length, test)) for length in LENGTHS},
        "threads": torch.get_num_threads(),
    }  # fmt: skip

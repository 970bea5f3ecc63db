"""The state of trained models on Z5 under a constant word, projected on a plane, as rows for the figure `geometry`.

The NFSM is trained as by `exactstate train Z5`, the baselines small and on words of 24 letters. The state of the last
recurrent layer is followed under 1 1 1 ..., on which the five target states must stay distinct forever, and projected
on the first two principal components of that run:

    kind "run"     model, seed, layers, width, trained_steps; for the NFSM whether it is certified, for the others the
                   best accuracy of a check and the length of its words;
                   steps, first_wrong (null when every step was right), explained (shares of the variance)
    kind "window"  model, seed, first (step), points (x, y), states (target), read (predicted),
                   low, high (corners of the plane), regions (the read-out's label on a grid, a string per line)

A point of the plane determines a state only together with the other components. The regions take these, and the input
of the read-out, from the nearest point of the window. So they are exact at the points; elsewhere they are the label
that the model would predict if its state were moved within the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from exactstate.baselines import Recurrent
from exactstate.nn import NFSM, Backbone
from exactstate.nn.backbone import BackboneLayer
from exactstate.records import Row
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, Run, TrainConfig, train

TASK, LETTER, SEED = "Z5", "1", 46
WINDOWS = (1, 101, 1001)
"""First steps of the windows."""
SHOWN = 50
"""Steps of a window."""
GRID = 72


def geometry_rows(cell: str, seed: int, folder: Path) -> list[Row]:
    """Train a cell (or load its finished run) and follow its state."""
    machine = get_task(TASK).machine
    letter = machine.symbols.index(LETTER)
    target = machine.trajectory(np.full(WINDOWS[-1] + SHOWN - 1, letter)).astype(np.int64)
    run = train_cell(cell, seed, folder)
    about: Row = {"trained_steps": run.steps}
    if cell == "nfsm":
        about["certified"] = run.certified
    else:
        about |= {"accuracy": round(run.accuracy, 4), "length": run.config.end_to_end.length}
    first, *windows = follow(run.model.eval(), cell, letter, target)
    return [{**row, "seed": seed} for row in (first | about, *windows)]


def train_cell(cell: str, seed: int, folder: Path) -> Run:
    """A baseline is small enough for ten minutes of one core; an AUSSM needs the paper's four layers."""
    if cell == "nfsm":
        return train(TASK, seed=seed)
    layers, width = (4, 64) if cell == "aussm" else (2, 32)
    return train(
        TrainConfig(
            task=TASK, cell=cell, seed=seed, recipe="geometry", layers=layers, width=width, channels=32, states=8,
            dropout=0.0,
            end_to_end=EndToEndConfig(
                batch=32, length=24, lr=3e-3, final_lr=3e-4, steps=2_000, check_words=128, stop_accuracy=0.99,
                stop_checks=3, grow_length=True,
            ),
        ),
        out=folder,
    )  # fmt: skip


class StateReader(Protocol):
    """The last recurrent layer, from a state as a vector to its contribution to the residual stream."""

    def states(self, u: Tensor) -> Tensor:
        """Inputs L m -> states L k."""

    def read(self, states: Tensor, u: Tensor) -> Tensor:
        """States N k, with the inputs N m of their steps -> N m."""


@dataclass
class AffineState:
    """Of a layer whose state is a tensor."""

    block: Recurrent

    def states(self, u: Tensor) -> Tensor:
        state, states = self.block.initial_state(1), []
        self.shape = state.shape[1:]
        for row in u:
            _, state = self.block.step(row[None], state)
            states.append(state.flatten())
        return torch.stack(states)

    def read(self, states: Tensor, u: Tensor) -> Tensor:
        streams = self.block.streams(u)
        return self.block.finish(streams, self.block.read(streams, states.view(-1, *self.shape)))


@dataclass
class TableState:
    """Of an NFSM: the value vectors of its indices, in which its output is linear."""

    block: NFSM

    def states(self, u: Tensor) -> Tensor:
        state, states = None, []
        values = self.block.values.split(self.block.heads)
        for row in u:
            _, state = self.block.step(row[None], state)
            states.append(torch.cat([value[k] for value, k in zip(values, state[0], strict=True)]))
        return torch.stack(states)

    def read(self, states: Tensor, u: Tensor) -> Tensor:
        return self.block.out_proj(states)


@torch.no_grad()
def follow(model: Backbone, cell: str, letter: int, target: Any) -> list[Row]:
    """The rows of one model, except for how it was trained."""
    last = model.layers[-1]
    assert isinstance(last, BackboneLayer)
    reader: StateReader = TableState(last.block) if isinstance(last.block, NFSM) else AffineState(last.block)  # type: ignore[arg-type]
    h = model.encode(torch.full((1, len(target)), letter))
    for layer in list(model.layers)[:-1]:
        h, _ = layer(h, (None, None))
    u = last.block_input(h)[0][0]
    states = reader.states(u)

    def predict(moved: Tensor, at: Tensor) -> Any:
        return model.label_logits(last.feed_forward(h[0, at] + reader.read(moved, u[at]))).argmax(-1).numpy()

    predicted = predict(states, torch.arange(len(states)))
    mean = states.double().mean(0)
    _, singular, axes = torch.linalg.svd(states.double() - mean, full_matrices=False)
    plane = axes[:2]
    points = ((states.double() - mean) @ plane.T).numpy()
    wrong = np.flatnonzero(predicted != target)
    explained = (singular[:2].square() / singular.square().sum()).tolist()
    rows: list[Row] = [{
        "kind": "run", "model": cell, "layers": len(model.layers), "width": model.width, "steps": len(target),
        "first_wrong": int(wrong[0]) + 1 if len(wrong) else None, "explained": [round(share, 4) for share in explained],
    }]  # fmt: skip
    for first in WINDOWS:
        low, high = _frame(points, first)
        ticks = [np.linspace(low[i], high[i], GRID) for i in range(2)]
        grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
        window = np.arange(first - 1, min(first - 1 + SHOWN, len(target)))
        nearest = window[np.square(grid[:, None] - points[window]).sum(-1).argmin(1)]
        moved = states[nearest].double() + torch.from_numpy(grid - points[nearest]) @ plane
        labels = predict(moved.to(states.dtype), torch.from_numpy(nearest)).reshape(GRID, GRID)
        rows.append({
            "kind": "window", "model": cell, "first": first, "points": np.round(points[window], 4).tolist(),
            "states": target[window].tolist(), "read": predicted[window].tolist(), "low": low, "high": high,
            "regions": ["".join(map(str, line)) for line in labels],
        })  # fmt: skip
    return rows


def _frame(points: Any, last: int) -> tuple[list[float], list[float]]:
    """A rectangle around all points of the windows up to this one, with a margin; it never shrinks along a run."""
    seen = np.concatenate([points[first - 1 : first - 1 + SHOWN] for first in WINDOWS if first <= last])
    low, high = seen.min(0), seen.max(0)
    margin = 0.12 * np.maximum(high - low, 0.2 * (high - low).max() + 1e-6)
    return np.round(low - margin, 4).tolist(), np.round(high + margin, 4).tolist()

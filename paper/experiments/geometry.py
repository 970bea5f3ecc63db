"""`python -m paper.experiments.geometry`: where the state of a trained model goes on Z5 under a constant word, as rows.

The NFSM is trained as `detent train Z5`, the others small and on words of 24 letters; their runs are kept, so that a
second call goes on with them. The state of the last recurrent layer is followed under 1 1 1 ..., on which the five
target states must stay apart for ever, and projected on the first two principal components of that run:

    kind "run"     model, seed, layers, width, trained_steps, and for the NFSM whether it is certified, for the others
                   the accuracy of the check they were kept for and the length of its words;
                   steps, first_wrong (null when every step was right), explained (shares of the variance)
    kind "window"  model, seed, first (step), points (x, y), states (wanted), read (said),
                   low, high (corners of the plane shown), regions (what the read-out says on a grid, a string per line)

A place in the plane stands for a state only together with everything that is not in the plane. The regions take this
from the nearest point of the window: its other components, and what else the read-out reads at that step. So they are
exact at the points, and what the model would say if its state were moved within the plane elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from detent import records
from detent.nn import NFSM, Backbone
from detent.nn.backbone import BackboneLayer
from detent.nn.recurrent import Recurrent
from detent.tasks import task
from detent.train import EndToEndConfig, TrainConfig, train

CELLS = ("nfsm", "mamba", "aussm", "pdssm")
TASK, LETTER, SEED = "Z5", "1", 46
WINDOWS = (1, 101, 1001)
"""First steps of the windows."""
SHOWN = 50
"""Steps of a window."""
GRID = 72


class Reader(Protocol):
    """The last recurrent layer, from a state as a vector to what it adds to the residual stream."""

    def follow(self, u: Tensor) -> Tensor:
        """What it reads at every step, L m -> its states, L k."""

    def say(self, states: Tensor, u: Tensor) -> Tensor:
        """States N k, and what is read beside them N m -> N m."""


@dataclass
class Affine:
    """Of a layer whose state is a tensor."""

    block: Recurrent

    def follow(self, u: Tensor) -> Tensor:
        state, states = self.block.initial_state(1), []
        self.shape = state.shape[1:]
        for row in u:
            _, state = self.block.step(row[None], state)
            states.append(state.flatten())
        return torch.stack(states)

    def say(self, states: Tensor, u: Tensor) -> Tensor:
        streams = self.block.streams(u)
        return self.block.finish(streams, self.block.read(streams, states.view(-1, *self.shape)))


@dataclass
class Tables:
    """Of an NFSM: the value vectors of its indices, which is what its output is linear in."""

    block: NFSM

    def follow(self, u: Tensor) -> Tensor:
        state, states = None, []
        for row in u:
            _, state = self.block.step(row[None], state)
            states.append(torch.cat([values[k] for values, k in zip(self._values(), state[0], strict=True)]))
        return torch.stack(states)

    def say(self, states: Tensor, u: Tensor) -> Tensor:
        return self.block.out_proj(states)

    def _values(self) -> tuple[Tensor, ...]:
        return self.block.values.split(self.block.heads)


@torch.no_grad()
def follow(model: Backbone, cell: str, letter: int, wanted: Any) -> list[records.Row]:
    """The rows of one model, but for how it was trained."""
    last = model.layers[-1]
    assert isinstance(last, BackboneLayer)
    reader: Reader = Tables(last.block) if isinstance(last.block, NFSM) else Affine(last.block)  # type: ignore[arg-type]
    h = model.encode(torch.full((1, len(wanted)), letter))
    for layer in list(model.layers)[:-1]:
        h, _ = layer(h, (None, None))
    u = last.block_input(h)[0][0]
    states = reader.follow(u)

    def read_out(moved: Tensor, at: Tensor) -> Any:
        return model.label_logits(last.feed_forward(h[0, at] + reader.say(moved, u[at]))).argmax(-1).numpy()

    said = read_out(states, torch.arange(len(states)))
    mean = states.double().mean(0)
    _, spread, axes = torch.linalg.svd(states.double() - mean, full_matrices=False)
    plane = axes[:2]
    flat = ((states.double() - mean) @ plane.T).numpy()
    wrong = np.flatnonzero(said != wanted)
    shares = (spread[:2].square() / spread.square().sum()).tolist()
    rows: list[records.Row] = [{
        "kind": "run", "model": cell, "layers": len(model.layers), "width": model.width, "steps": len(wanted),
        "first_wrong": int(wrong[0]) + 1 if len(wrong) else None, "explained": [round(share, 4) for share in shares],
    }]  # fmt: skip
    for first in WINDOWS:
        low, high = _frame(flat, first)
        ticks = [np.linspace(low[i], high[i], GRID) for i in range(2)]
        grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
        here = np.arange(first - 1, min(first - 1 + SHOWN, len(wanted)))
        near = here[np.square(grid[:, None] - flat[here]).sum(-1).argmin(1)]
        moved = states[near].double() + torch.from_numpy(grid - flat[near]) @ plane
        labels = read_out(moved.to(states.dtype), torch.from_numpy(near)).reshape(GRID, GRID)
        rows.append({
            "kind": "window", "model": cell, "first": first, "points": np.round(flat[here], 4).tolist(),
            "states": wanted[here].tolist(), "read": said[here].tolist(), "low": low, "high": high,
            "regions": ["".join(map(str, line)) for line in labels],
        })  # fmt: skip
    return rows


def _frame(flat: Any, last: int) -> tuple[list[float], list[float]]:
    """A rectangle with all points of the windows up to this one and a margin: it grows with a run, never shrinks."""
    seen = np.concatenate([flat[first - 1 : first - 1 + SHOWN] for first in WINDOWS if first <= last])
    low, high = seen.min(0), seen.max(0)
    margin = 0.12 * np.maximum(high - low, 0.2 * (high - low).max() + 1e-6)
    return np.round(low - margin, 4).tolist(), np.round(high + margin, 4).tolist()


def trained(cell: str, folder: Path, seed: int) -> tuple[Backbone, records.Row]:
    """(the model, how it was trained), from the folder where it has been trained before."""
    if cell == "nfsm":
        run = train(TASK, seed=seed)
        return run.model.eval(), {"trained_steps": run.steps, "certified": run.certified}
    config = small(cell, seed)
    run = train(config, _tell(cell), out=folder)
    about = {
        "trained_steps": run.steps,
        "accuracy": round(run.accuracy, 4),
        "length": config.end_to_end.length,
    }
    return run.model.eval(), about


def small(cell: str, seed: int) -> TrainConfig:
    """Small enough for ten minutes of one core, on words of 24 letters; an AUSSM takes the paper's four layers."""
    layers, width = (4, 64) if cell == "aussm" else (2, 32)
    return TrainConfig(
        task=TASK, cell=cell, seed=seed, recipe="geometry", layers=layers, width=width, channels=32, states=8,
        dropout=0.0,
        end_to_end=EndToEndConfig(
            batch=32, length=24, lr=3e-3, final_lr=3e-4, steps=2_000, check_words=128, stop_accuracy=0.99,
            stop_checks=3, grow_length=True,
        ),
    )  # fmt: skip


def _tell(cell: str) -> Callable[[records.Row], None]:
    def tell(row: dict[str, Any]) -> None:
        print(f"{cell}: step {row['step']}, first error {row['first_error']:.1f}, accuracy {row['accuracy']:.2f}",
              flush=True)  # fmt: skip

    return tell


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.experiments.geometry", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=Path("results/geometry.jsonl"), metavar="FILE")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    machine = task(TASK).machine
    letter = machine.symbols.index(LETTER)
    wanted = machine.trajectory(np.full(WINDOWS[-1] + SHOWN - 1, letter)).astype(np.int64)
    done = {row["model"] for row in records.read(asked.rows)} if asked.rows.exists() else set()
    for cell in (cell for cell in CELLS if cell not in done):
        model, about = trained(cell, asked.runs / f"{TASK}-{asked.seed}-{cell}-geometry", asked.seed)
        for row in follow(model, cell, letter, wanted):
            extra = about | records.stamp() if row["kind"] == "run" else {}
            records.append(asked.rows, {**row, "seed": asked.seed, **extra})
        print(f"{cell}: followed", flush=True)


if __name__ == "__main__":
    main()

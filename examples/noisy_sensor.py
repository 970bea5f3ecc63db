"""A sensor of three axes whose mode is a machine of four states, watched for a million steps.

Events (rest, tilt, shake, turn) are vectors with noise; the mode of the device follows from them: idle, armed, active,
locked. The network learns the mode from noisy readings, is extracted, and certified over boxes around the events. Then
it runs on a stream with drift and outliers, and `machine.watch` says which steps the certificate covers.

    python examples/noisy_sensor.py [--steps 1000000]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import exactstate
from exactstate.automata import Moore
from exactstate.certify import Certificate
from exactstate.certify.check import check, region_sentences
from exactstate.extract import rounding_errors
from exactstate.extract.regions import broken_radii, largest_radii, prove

EVENTS = {"rest": (0.0, 0.0, 1.0), "tilt": (1.0, 0.0, 0.0), "shake": (0.0, -1.0, -0.5), "turn": (-1.0, 1.0, 0.0)}
MODES = ("idle", "armed", "active", "locked")
NEXT = {
    "rest": ("idle", "armed", "armed", "locked"),       # an active device calms down
    "tilt": ("armed", "armed", "active", "locked"),
    "shake": ("idle", "active", "locked", "locked"),
    "turn": ("idle", "idle", "active", "idle"),         # a turn unlocks
}  # fmt: skip


def device() -> Moore:
    tables = np.array([[MODES.index(mode) for mode in NEXT[event]] for event in EVENTS])
    return Moore(symbols=tuple(EVENTS), tables=tables, states=MODES, outputs=MODES, readout=np.arange(4))


class Reader(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width))
        self.memory = exactstate.NFSM(width, (6,), noise=False, remember=1.0, temperature=1.0)
        self.readout = nn.Linear(width, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


def readings(words: np.ndarray, noise: float, generator: torch.Generator) -> Tensor:
    centers = torch.tensor(list(EVENTS.values()))
    return centers[torch.from_numpy(words)] + noise * torch.randn(*words.shape, 3, generator=generator)


def train(steps: int = 400, seed: int = 0) -> Reader:
    torch.manual_seed(seed)
    model, target, rng = Reader(), device(), np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for step in range(steps):
        words = rng.integers(0, 4, (64, 2 + 10 * step // steps))
        labels, state = [], np.zeros(64, int)
        for symbols in words.T:
            state = target.tables[symbols, state]
            labels.append(state)
        logits = model.train()(readings(words, 0.15, generator))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(np.stack(labels, 1)).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def stream(steps: int, seed: int = 1) -> tuple[Tensor, np.ndarray]:
    """Readings with noise, a slow drift, and one outlier in two thousand; and the modes of the true events."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    words = rng.integers(0, 4, (1, steps))
    x = readings(words, 0.06, generator)[0]
    drift = 0.05 * torch.sin(torch.arange(steps) / 20_000.0)[:, None] * torch.tensor([1.0, -1.0, 0.5])
    outliers = torch.from_numpy(rng.random(steps) < 1 / 2000)
    x = x + drift + 3.0 * outliers[:, None] * torch.randn(steps, 3, generator=generator)
    modes, state, tables = np.zeros(steps, int), 0, device().tables.tolist()
    for step, symbol in enumerate(words[0].tolist()):
        state = tables[symbol][state]
        modes[step] = state
    return x, modes


def main(steps: int = 1_000_000, training: int = 400) -> dict[str, Any]:
    model = train(training)
    machine = exactstate.extract(
        model, inputs={event: torch.tensor(vector) for event, vector in EVENTS.items()}, labels=MODES
    )
    verdict = exactstate.certify(machine, device())
    print(verdict.explain())
    row: dict[str, Any] = {"certified": bool(verdict), "steps": steps}
    if not verdict:
        return row
    radii, broken = largest_radii(machine), broken_radii(machine)
    for event in EVENTS:
        print(f"{event}: certified within {radii[event]:.3f} in every coordinate, broken at {broken[event]:.3f}")
    proved, proof = prove(machine, {event: 0.999 * radius for event, radius in radii.items()})
    print(proof.explain())
    certificate = Certificate.of(
        proved, verdict, name="sensor", rounding={"float32": rounding_errors(model, proved, "float32")}
    )
    print(f"the certificate checks: {bool(check(certificate.content))};", *region_sentences(certificate.content))

    x, modes = stream(steps)
    started = time.perf_counter()
    watched = proved.watch(x)
    seconds = time.perf_counter() - started
    outside = watched.symbols < 0
    wrong = watched.labels != modes
    row |= {
        "radius": min(radii.values()), "broken": min(broken.values()), "outside": int(outside.sum()),
        "covered": int(watched.certified.sum()),
        "wrong": int(wrong.sum()), "microseconds_per_step": 1e6 * seconds / steps,
    }  # fmt: skip
    # between two inputs outside the regions, the network is the machine: it follows the symbols it has read
    symbols = watched.symbols
    before = np.concatenate([[0], watched.labels[:-1]])
    inside = np.flatnonzero(watched.certified)
    row["covered_steps_that_follow_the_machine"] = float(
        (device().tables[symbols[inside], before[inside]] == watched.labels[inside]).mean()
    )
    print(f"{steps:,} steps in {seconds:.1f} s; {outside.sum():,} inputs outside every certified region")
    print(*watched.warnings[:3], sep="\n")
    follow = row["covered_steps_that_follow_the_machine"]
    print(
        f"wrong modes: {wrong.sum():,} steps, after inputs outside; steps covered that follow the machine: {follow:.2%}"
    )
    first_wrong = int(np.flatnonzero(wrong)[0]) if wrong.any() else steps
    assert not wrong.any() or outside[: first_wrong + 1].any()
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    main(parser.parse_args().steps)

"""A T-maze: a sign at the entrance says left or right, then a corridor, then the turn. How long may the corridor be?

The network is trained on corridors of at most 64 steps and walks one of 100,000. What it carries is an index, an
integer, so there is nothing that could fade: the answer at the end is the answer at the beginning.

    python examples/t_maze.py
"""

from __future__ import annotations

import numpy as np
import torch

import detent

WALK, LEFT, RIGHT = 0, 1, 2
LENGTH = 100_000


def maze() -> detent.Moore:
    """Remember the last sign."""
    tables = [[0, 1, 2], [1, 1, 1], [2, 2, 2]]
    places = ("no sign yet", "turn left", "turn right")
    return detent.Moore(
        symbols=("walk", "left", "right"), tables=tables, states=places, outputs=places, readout=range(3)
    )


def corridors(count: int, generator: np.random.Generator) -> torch.Tensor:
    """A sign, then nothing but walking."""
    steps = np.full((count, LENGTH), WALK)
    steps[:, 0] = generator.integers(LEFT, RIGHT + 1, count)
    return torch.from_numpy(steps)


def main() -> None:
    run = detent.train(maze(), width=32)
    print(f"trained in {run.steps} steps; {run.verdict.explain()}")

    steps = corridors(4, np.random.default_rng(0))
    state = None
    with torch.no_grad():
        for piece in steps.split(10_000, dim=1):  # the state goes on from piece to piece, bit for bit
            logits, state = run.model(piece, state)
    turned = logits[:, -1].argmax(-1)
    assert torch.equal(turned, steps[:, 0]), "the sign was forgotten"
    print(f"after {LENGTH:,} steps: {[run.task.machine.states[k] for k in turned.tolist()]}, all as the signs said")


if __name__ == "__main__":
    main()
